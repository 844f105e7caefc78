// Convolutions of bfloat16 by pairs of channels. Internal to convolution.cpp and conv_weight_gradient.cpp.
#pragma once

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/convolution.h>

#include <cstdint>

namespace vesta::cpu {

/// Note [Pairs of channels]
/// Where the machine multiplies pairs of bfloat16 (Note [Pairs of bfloat16] in gemm_kernel.h), a convolution over C
/// channels is one over C / 2 pairs of them, elements of 32 bits that travel as floats; an odd last channel is paired
/// with zeros. The ways of float run on these as they are, with kernels that multiply pairs, and their sums are floats
/// that are rounded once into the result. With channels last an even number of channels lies in pairs already, and 1 x 1
/// kernels are plain products of bfloat16 (Note [Pixels in rows] in conv_pointwise.h); so is the gradient of their
/// weights. Not by pairs: one channel per group; 3 x 3 kernels that need a quarter of the multiplications (Note
/// [Winograd's convolution] in conv_winograd.h), which is more than pairs save; gradients of larger kernels' weights,
/// whose sums run over pixels. Shape and machine decide, so a layout has the bits of the other.

/// Returns whether a direction of a convolution of bfloat16, over `channels` channels per group, goes by pairs.
bool goes_in_pairs(const ConvShape& shape, std::int64_t channels);

/// Images or weights as pairs of channels: in place, or in memory of their own.
struct Pairs {
  const float* data;
  ImageStrides strides;  // of images
  HostArray<float> room;
};

/// Pairs the channels of images [batch, groups * channels, size]; every group begins with a new pair.
Pairs pair_images(std::int64_t batch, std::int64_t groups, std::int64_t channels, const Spatial& size,
                  const std::uint16_t* in, const ImageStrides& strides);

/// Pairs the lines of dense matrices [rows, channels, length] along their channels.
Pairs pair_lines(std::int64_t rows, std::int64_t channels, std::int64_t length, const std::uint16_t* in);

/// Sums that are rounded to images of bfloat16.
struct Sums {
  /// Allocates images that lie as those of `strides` do, without gaps.
  Sums(std::int64_t batch, std::int64_t channels, const Spatial& size, const ImageStrides& strides);
  /// Rounds the sums into images of any strides.
  void round(std::uint16_t* out, const ImageStrides& out_strides) const;

  std::int64_t batch, channels;
  Spatial size;
  ImageStrides strides;
  HostArray<float> data;
};

/// Returns whether pair_weight_gradient computes the gradient of weights of bfloat16.
bool weight_gradient_goes_in_pairs(const ConvShape& shape);

/// Computes the same as conv_backward_weights, as one product over the positions of all samples.
void pair_weight_gradient(const ConvShape& shape, const std::uint16_t* x, const ImageStrides& x_strides,
                          const std::uint16_t* gy, const ImageStrides& gy_strides, std::uint16_t* gw,
                          std::uint16_t* gbias);

}  // namespace vesta::cpu
