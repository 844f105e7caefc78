// Convolution in 1 to 3 dimensions on raw memory: forward and both gradients, equal bits for any number of threads.
#pragma once

#include <vesta/core/cpu/gemm.h>

#include <array>
#include <cstdint>

namespace vesta::cpu {

/// One number per spatial dimension. A convolution over fewer than 3 dimensions puts its own last; the others hold the
/// neutral value (1 for sizes, strides and dilations, 0 for padding).
using Spatial = std::array<std::int64_t, 3>;

/// Returns the positions of one plane.
constexpr std::int64_t plane_of(const Spatial& s) { return s[0] * s[1] * s[2]; }

/// The shape of a convolution y[n, o, out...] = sum over c, k of x[n, c, out * stride + k * dilation - pad] * w[o, c,
/// k...].
struct ConvShape {
  std::int64_t batch, in_channels, out_channels;
  std::int64_t groups = 1;  ///< divides both channel counts; w is [out_channels, in_channels / groups, kernel...]
  Spatial in{1, 1, 1}, kernel{1, 1, 1}, out{1, 1, 1};
  Spatial stride{1, 1, 1}, dilation{1, 1, 1},
      pad{0, 0, 0};  ///< pad: zeros before each dimension; `out` says how many after
};

/// Returns the number of weights.
constexpr std::int64_t weight_count(const ConvShape& s) {
  return s.out_channels * (s.in_channels / s.groups) * s.kernel[0] * s.kernel[1] * s.kernel[2];
}

inline constexpr std::int64_t kPartialBytes = std::int64_t{32} << 20;  ///< most memory for partial sums of weights

/// Returns the output size for padding on both sides, floor((in + 2 pad - dilation (kernel - 1) - 1) / stride) + 1; 0
/// or less if the kernel does not fit.
constexpr std::int64_t conv_out_size(std::int64_t in, std::int64_t kernel, std::int64_t stride, std::int64_t pad,
                                     std::int64_t dilation) {
  const std::int64_t room = in + 2 * pad - dilation * (kernel - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

/// The strides, in elements, of an image tensor [batch, channels, spatial...]: NCHW, channels last or any other.
struct ImageStrides {
  std::int64_t batch, channel;
  Spatial spatial;
};

/// Returns the strides of a dense [batch, channels, size...] tensor.
VESTA_API ImageStrides dense_strides(std::int64_t channels, const Spatial& size);

/// Returns the strides of a dense [batch, size..., channels] tensor (channels last).
VESTA_API ImageStrides channels_last_strides(std::int64_t channels, const Spatial& size);

// Element types: f32 and f64 as chains of fused multiply-adds (gemm_kernel.h); bf16 and f16 are widened, computed in
// f32 and rounded once, bf16 by pairs where the machine has instructions for it (Note [Pairs of channels] in
// conv_half.h). Others throw std::invalid_argument. A sample's output and input gradient depend on that sample
// and the weights only. The caller checks sizes; sizes of 0 are allowed everywhere. All throw Error(memory) if
// working memory is short, and std::length_error for one sample's group of more than 2^31 elements.

/// Computes y = convolution of x and w plus bias ([out_channels] or null). w is dense. `weight` is its identity, if
/// what is packed of it may be kept.
VESTA_API void conv_forward(Elem elem, const ConvShape& shape, const void* x, const ImageStrides& x_strides,
                            const void* w, const void* bias, void* y, const ImageStrides& y_strides,
                            const Weight& weight = {});

/// Computes gx, the gradient of x, from gy, the gradient of y. Overwrites gx. This is also the transposed convolution
/// of gy, whose bias ([in_channels] or null) is added to every element of gx.
VESTA_API void conv_backward_data(Elem elem, const ConvShape& shape, const void* gy, const ImageStrides& gy_strides,
                                  const void* w, const void* bias, void* gx, const ImageStrides& gx_strides,
                                  const Weight& weight = {});

/// Computes gw, the gradient of w (dense), and, if not null, gbias [out_channels], the sum of gy. Overwrites both. The
/// batch is cut into groups by shape alone; their sums are added in order.
VESTA_API void conv_backward_weights(Elem elem, const ConvShape& shape, const void* x, const ImageStrides& x_strides,
                                     const void* gy, const ImageStrides& gy_strides, void* gw, void* gbias);

}  // namespace vesta::cpu
