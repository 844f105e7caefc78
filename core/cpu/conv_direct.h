// The common input of both ways to compute a convolution's output or data gradient, and the direct way. Internal to
// convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_canvas.h>
#include <vesta/core/cpu/conv_images.h>
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/conv_weights.h>
#include <vesta/core/cpu/gemm_kernel.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace vesta::cpu {

/// Returns the kernels that multiply elements of type E.
template <class E>
const GemmKernels<typename E::T>& product_kernels_of() {
  if constexpr (std::is_same_v<E, Paired>) return pair_kernels()->products;
  else return gemm_kernels<typename E::T>();
}
template <class E>
const DirectKernels<typename E::T>& direct_kernels_of() {
  if constexpr (std::is_same_v<E, Paired>) return *pair_direct_kernels();
  else return direct_kernels<typename E::T>();
}

/// One direction of a convolution: images `from`, products, images `to`. E is the element type.
template <class E>
struct Correlated {
  using T = typename E::T;

  Canvas canvas;
  std::vector<Taps> products;
  std::shared_ptr<const PackedWeights<T>> weights = nullptr;
  std::int64_t batch, groups, from_channels, to_channels;  // channels per group
  Spatial from_size, to_size;
  const T* from;
  ImageStrides from_strides;
  T* to;
  ImageStrides to_strides;
  const T* bias = nullptr;  // [groups * to_channels]

  const T* from_image(std::int64_t sample, std::int64_t group) const {
    return from + sample * from_strides.batch + group * from_channels * from_strides.channel;
  }
  T* to_image(std::int64_t sample, std::int64_t group) const {
    return to + sample * to_strides.batch + group * to_channels * to_strides.channel;
  }
  /// Returns the number of outputs of a product per image and channel.
  std::int64_t outputs() const {
    const Spatial& count = products.front().count;
    return count[0] <= 0 || count[1] <= 0 || count[2] <= 0 ? 0 : count[0] * count[1] * count[2];
  }
  /// Returns whether the outputs of a product are the image, in its order.
  bool covers_image(const Taps& taps) const {
    return taps.count == to_size && taps.first == Spatial{0, 0, 0} && taps.step == Spatial{1, 1, 1} &&
           is_dense(to_strides, to_size);
  }
};

/// Note [Direct convolution]
/// With a vector or more of output channels there is no need to pack columns: vectors run along the output channels,
/// every value of x is broadcast from where it lies, and the weights are packed once. A register tile holds up to 14
/// pixels of an image row times 32 channels, sums over a block of taps (Taps::block) and is added to a strip of outputs
/// that stays in L2; at the end the strip is written transposed. A tap that lies outside of the image for
/// a whole row is skipped, and where the kernel is three wide with one pixel of padding, so are those left and right of
/// the image (7 x 7 images: a fifth of the work); x is then read in place. Every other kernel reads a canvas, zeros
/// around it, and gives the same bits as products on that canvas. What is skipped is decided by the shape alone, so
/// that weights which are not finite show in the same elements whatever the batch, the threads and the instruction set.

/// Returns whether correlate_direct is faster. The shape alone decides where the results could differ.
template <class E>
bool goes_direct(const Correlated<E>& c);

/// Computes the convolution; weights are packed for WeightUse::direct_forward or direct_backward_data.
template <class E>
void correlate_direct(const Correlated<E>& c);

/// Note [Direct weight gradient]
/// The gradient of one tap's weights is a product over the outputs for which the tap lies in the image: nothing is
/// padded and no work is wasted. Blocks of about 512 outputs of x and gy are packed with the channels innermost and
/// stay in L2 while all taps are summed from them; the sums of a block are added to a partial of [inputs, taps,
/// outputs]. A task is a group of samples times a piece of the channels; at the end partials are added in the order of
/// the samples.

/// Returns whether direct_weight_gradient is faster, from the shape alone.
bool weight_gradient_goes_direct(const ConvShape& shape);

/// Computes the same as conv_backward_weights.
template <class E>
void direct_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                            const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                            typename E::T* gbias);

/// Adds `count` partials [lines, panel] of a gradient of weights, `step` elements apart, in order, and writes their
/// first `columns` columns as rows of `to`, which are `row` elements apart.
template <class E>
void write_partials(const DirectKernels<typename E::T>& kernels, const typename E::T* from, std::int64_t count,
                    std::int64_t step, std::int64_t lines, std::int64_t columns, typename E::T* to, std::int64_t row);

}  // namespace vesta::cpu
