// Convolutions whose every channel has a kernel of its own, plane by plane. Internal to convolution.cpp.
#pragma once

#include <vesta/core/cpu/conv_direct.h>
#include <vesta/core/cpu/isa.h>

#include <cstdint>
#include <vector>

namespace vesta::cpu {

/// Note [Depthwise convolution]
/// With one input and one output channel per group there is no matrix product to speak of: a row of outputs is summed
/// in vectors, tap by tap in the order of the taps, from the rows of the image where they lie. What lies outside the
/// image is read as zeros, so these are the sums that a product on the canvas has (Note [Canvas] in conv_canvas.h), and
/// so are the bits. Several rows are summed together, to hide the latency of an addition. With a stride of 2, forward
/// reads every other column of two vectors, which serve two of three neighbouring taps; the gradient of x stores the
/// outputs of two products in turn. The gradient of the weights keeps kDepthwiseLanes sums per tap, whatever the width
/// of a vector, to which columns are added in turn, and adds them by halves at the end. Samples are cut into groups by
/// shape alone, and the sums of the groups are added in order.
inline constexpr std::int64_t kDepthwiseLanes = 16;

/// The source and destination of one product: rows of an image of one channel, whose columns lie side by side. Taps
/// that read the same row are a line of the kernel.
struct DepthwiseProduct {
  std::int64_t rows, columns;  ///< of outputs
  std::int64_t line_count, tap_count;
  const std::int64_t* lines;  ///< [rows, line_count]: where the row that is read begins, -1 for zeros
  const std::int64_t* first_tap;  ///< [line_count + 1], of each line
  const std::int64_t* line_of;  ///< [tap_count]
  const std::int64_t* column;  ///< [tap_count]: what output 0 of a row reads; may lie outside the row
  const std::int64_t* weight;  ///< [tap_count]: where the weight lies
  std::int64_t step;  ///< from output to output
  std::int64_t width;  ///< columns of the image
  const std::int64_t* out;  ///< [rows]: where output 0 of the row lies
  bool is_window;  ///< 3 x 3 neighbours, a step of 1 or 2: line k + step of a row is line k of the next
};

/// Planes of outputs: sums over the taps, plus the bias.
template <class T>
struct DepthwisePlanes {
  const DepthwiseProduct* first;
  const DepthwiseProduct* second;  ///< null, or of as many rows: outputs lie in turn, beginning with the first's
  std::int64_t planes;
  const T* x;
  std::int64_t x_plane;  ///< from plane to plane
  const T* zeros;  ///< [width]
  const T* w;
  std::int64_t w_plane;
  const T* bias;  ///< [planes], or null
  T* out;
  std::int64_t out_plane;
  std::int64_t out_step;  ///< from output to output, of a single product
  const T** room;  ///< for kDepthwiseRows pointers per line of both products
};
inline constexpr std::int64_t kDepthwiseRows = 4;

/// The gradient of the weights of a channel: sums[t][l] += the sum over planes, rows and columns j of x[the row of tap
/// t][column[t] + j * step] * gy[out[row] + j], for j % lanes = l.
template <class T>
struct DepthwiseGradient {
  const DepthwiseProduct* product;
  std::int64_t planes;
  const T* x;
  std::int64_t x_plane;
  const T* zeros;  ///< [width]
  const T* gy;
  std::int64_t gy_plane;
  T* sums;  ///< [tap_count, kDepthwiseLanes]
  T* bias_sums;  ///< [kDepthwiseLanes], the sums of gy, or null
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
  void (*planes)(const DepthwisePlanes<T>&);
  void (*gradient)(const DepthwiseGradient<T>&);
  void (*pixel)(const DepthwisePixel<T>&);
};

/// Returns the kernels of the instruction set that gemm_kernels uses, T = float or double.
template <class T>
const DepthwiseKernels<T>& depthwise_kernels();

/// Returns what output 0 reads of the image for each tap of a product: output j reads j * canvas.step + that.
std::vector<Spatial> tap_positions(const Canvas& canvas, const Taps& taps);

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
