// Convolutions whose every channel has a kernel of its own, plane by plane. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_direct.h>
#include <vesta/core/cpu/isa.h>

#include <cstdint>

namespace vesta::cpu {

/// Note [Depthwise convolution]
/// With one input and one output channel per group there is no matrix product to speak of: a plane is laid out on its
/// canvas (Note [Canvas] in conv_canvas.h) and its outputs, numbered by the pitch of the canvas, are summed in vectors,
/// tap by tap in the order of the taps. These are the sums that a product on the canvas has, so the bits are the same.
/// The gradient of the weights keeps kDepthwiseLanes sums per tap, whatever the width of a vector, and adds them by
/// halves at the end. Samples are cut into groups by shape alone, and the sums of the groups are added in order.
inline constexpr std::int64_t kDepthwiseLanes = 16;

/// What the kernels may read and write behind a plane, in elements.
inline constexpr std::int64_t kDepthwiseSlack = 64;

/// A plane of outputs: out[p] = sum over t of x[taps[t] + p] * w[t], plus the bias, for p < span. Up to kDepthwiseSlack
/// elements behind the plane are read and written as well.
template <class T>
struct DepthwisePlane {
  const T* x;
  const std::int32_t* taps;
  std::int64_t tap_count;
  const T* w;
  const T* bias;  ///< one number, or null
  std::int64_t span;
  T* out;
};

/// The gradient of the weights of a plane: sums[t][l] (+)= the sum over p of x[taps[t] + p] * gy[p], for p % lanes = l.
/// `span` is a multiple of kDepthwiseLanes.
template <class T>
struct DepthwiseGradient {
  const T* x;
  const std::int32_t* taps;
  std::int64_t tap_count;
  const T* gy;
  std::int64_t span;
  T* sums;  ///< [tap_count, kDepthwiseLanes]
  T* bias_sums;  ///< [kDepthwiseLanes], the sums of gy, or null
};

/// A copy of rows between an image and a canvas.
template <class T>
struct DepthwiseRows {
  std::int64_t rows, count;  ///< `count` elements of each row
  const T* in;
  std::int64_t in_row, in_step;
  T* out;
  std::int64_t out_row, out_step;
};

/// One pixel: out[c] = sum over t of lines[t][c] * w[t * w_row + c], plus the bias, for c < channels.
template <class T>
struct DepthwisePixel {
  const T* const* lines;
  std::int64_t tap_count;
  const T* w;
  std::int64_t w_row;
  const T* bias;  ///< [channels], or null
  std::int64_t channels;
  T* out;
};

/// The kernels of one instruction set for T = float or double.
template <class T>
struct DepthwiseKernels {
  void (*copy)(const DepthwiseRows<T>&);
  void (*plane)(const DepthwisePlane<T>&);
  void (*gradient)(const DepthwiseGradient<T>&);
  void (*pixel)(const DepthwisePixel<T>&);
};

/// Returns the kernels of the instruction set that gemm_kernels uses, T = float or double.
template <class T>
const DepthwiseKernels<T>& depthwise_kernels();

/// Returns whether every group has one input and one output channel.
template <class E>
bool goes_depthwise(const Correlated<E>& c) {
  return c.groups > 1 && c.from_channels == 1 && c.to_channels == 1;
}

/// Computes the convolution with the weights w, [groups, kernel...].
template <class E>
void correlate_depthwise(const Correlated<E>& c, const typename E::T* w);

/// Returns whether depthwise_weight_gradient computes the gradient of the weights, from the shape alone.
bool weight_gradient_goes_depthwise(const ConvShape& shape);

/// Computes the same as conv_backward_weights.
template <class E>
void depthwise_weight_gradient(const ConvShape& shape, const typename E::T* x, const ImageStrides& x_strides,
                               const typename E::T* gy, const ImageStrides& gy_strides, typename E::T* gw,
                               typename E::T* gbias);

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(const DepthwiseKernels<float>& depthwise_float_kernels();
                     const DepthwiseKernels<double>& depthwise_double_kernels())
