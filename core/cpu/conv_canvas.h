// Geometry of the convolution: how an image is laid out so that every tap of the kernel is a plain shift of it.
#pragma once

#include <vesta/core/cpu/convolution.h>

#include <cstdint>
#include <vector>

namespace vesta::cpu {

/// Note [Canvas]
/// A convolution with stride 1 reads, for tap (c, k) and all outputs, its padded input plane c shifted by k: in memory
/// this is one run of values starting at a fixed offset. So the product w[o, (c, k)] @ x[(c, k), outputs] needs no
/// im2col: row (c, k) of its right matrix is `canvas + table[(c, k)]`, as long as outputs are numbered by the pitch of
/// the padded plane; the few numbers between two image rows are computed and dropped. A stride s splits each padded
/// dimension into s residue classes (phases) stored apart: position p = out * s + k * dilation has residue r = k *
/// dilation % s and index out + k * dilation / s within its class, again a plain shift. The gradient of x is the same
/// product on gy, once per residue class of x with the taps of that class; the gradient of w is the product of the
/// shifted rows with gy. Rejected: im2col (writes each value once per tap; on LeNet-sized images as long as the
/// product itself), oneDNN for these (its plain NCHW paths reorder, its sums depend on batch and threads).
struct Canvas {
  Spatial phases;  ///< residue classes kept per dimension
  Spatial size;  ///< extent of one class per dimension; the last is the row pitch
  Spatial step;  ///< distance in the image of neighbours within a class
  Spatial before;  ///< image position of canvas index i, class r: i * step + residues[r] - before
  std::array<std::vector<std::int64_t>, 3> residues;

  std::int64_t plane() const { return size[0] * size[1] * size[2]; }
  std::int64_t channel() const { return plane() * phases[0] * phases[1] * phases[2]; }
};

/// One product on a canvas: the taps it sums over and the outputs it produces.
struct Taps {
  std::vector<std::int32_t> table;  ///< offset on the canvas of (channel, tap), channel-major
  std::vector<std::int64_t> tap;  ///< index of each tap in the flattened kernel
  Spatial count;  ///< outputs per dimension, numbered by the pitch of the canvas
  Spatial first, step;  ///< output j lies at image position first + j * step

  /// Returns the length of the blocks into which the sum over (channel, tap) is cut: about 256, in whole channels,
  /// whose number is a power of two.
  std::int64_t block() const;
  /// Returns how many numbers the outputs span, those between rows included.
  std::int64_t span(const Canvas& canvas) const;
};

/// Lays out x for the forward product and the weight gradient. Pixels past the last output are left out.
Canvas input_canvas(const ConvShape& shape);

/// Returns the taps of the forward product over `channels` channels. Throws std::length_error past 2^31 elements.
Taps forward_taps(const ConvShape& shape, const Canvas& canvas, std::int64_t channels);

/// Lays out gy for the gradient of x.
Canvas gradient_canvas(const ConvShape& shape);

/// Returns one product per residue class of x; a class that no tap reaches is a product without taps.
std::vector<Taps> backward_taps(const ConvShape& shape, const Canvas& canvas, std::int64_t channels);

/// Returns whether the canvas is the image itself, so that a dense plane can be used where it lies.
bool is_image(const Canvas& canvas, const Spatial& in);

}  // namespace vesta::cpu
