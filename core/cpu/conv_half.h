// Convolutions of 16-bit floats: widened to float, or bfloat16 by pairs of channels. Internal to convolution.cpp and
// conv_weight_gradient.cpp.
#pragma once

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/convolution.h>
#include <vesta/core/cpu/gemm_kernel.h>

#include <cstdint>

namespace vesta::cpu {

/// Note [Pairs of channels]
/// Where the machine multiplies pairs of bfloat16 (Note [Pairs of bfloat16] in gemm_kernel.h), a convolution over C
/// channels is one over C / 2 pairs of them, elements of 32 bits that travel as floats; an odd last channel is paired
/// with zeros. The float paths run on these unchanged, with kernels that multiply pairs, and their sums are floats that
/// are rounded once into the result. With channels last, an even number of channels is in pairs already, and 1 x 1
/// kernels are plain products of bfloat16 (Note [Pixels in rows] in conv_pointwise.h); so is the gradient of their
/// weights. One channel per group is widened, and so are the images for the gradient of larger kernels' weights, whose
/// sums run over pixels. 3 x 3 kernels are computed on pairs as well: half of the products, without the transforms and
/// the error of Note [Winograd's convolution] in conv_winograd.h, take about as long as a quarter of them. Shape and
/// machine decide, so that both layouts have the same bits.
/// Where products use tiles (Note [Tiles of pairs] in gemm_kernel.h), 1 x 1 kernels are plain products in every
/// layout (correlate_pointwise), others are products of unfolded images (Note [Unfolded images] in conv_unfolded.h) but
/// for those over single channels or with few terms or results: these are widened, as the instruction for vectors of
/// pairs is slower there than that for floats (Sapphire Rapids, compare_torch.py --family bfloat16).

/// Returns whether a convolution of bfloat16 over `channels` channels per group is computed on pairs, also backward.
bool goes_in_pairs(std::int64_t channels);

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

/// Images of floats in place of images of 16 bits: they lie as those of `like` do, channels last or not, without gaps.
class WideImages {
 public:
  WideImages(std::int64_t batch, std::int64_t channels, const Spatial& size, const ImageStrides& like);
  float* data() const { return data_.data(); }
  const ImageStrides& strides() const { return strides_; }

  /// Widens images of any strides into these.
  void widen(const HalfFormat& format, const std::uint16_t* in, const ImageStrides& strides) const;
  /// Rounds these into images of any strides.
  void narrow(const HalfFormat& format, std::uint16_t* out, const ImageStrides& strides) const;

 private:
  template <class Move>
  void move(const ImageStrides& strides, const Move& move) const;

  std::int64_t batch_, channels_;
  Spatial size_;
  ImageStrides strides_;
  HostArray<float> data_;
};

/// Returns n numbers as floats, none if `in` is null.
HostArray<float> widened(const HalfFormat& format, const void* in, std::int64_t n);

/// Returns whether pair_weight_gradient computes the gradient of weights of bfloat16.
bool weight_gradient_goes_in_pairs(const ConvShape& shape);

/// Computes the same as conv_backward_weights, as one product over the positions of all samples.
void pair_weight_gradient(const ConvShape& shape, const std::uint16_t* x, const ImageStrides& x_strides,
                          const std::uint16_t* gy, const ImageStrides& gy_strides, std::uint16_t* gw,
                          std::uint16_t* gbias);

}  // namespace vesta::cpu
