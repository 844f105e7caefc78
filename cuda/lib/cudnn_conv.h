// Convolutions by cuDNN. It is fastest with channels last: operands that lie so are read in place and others are
// converted; a result keeps this layout, or is converted to rows, as the caller asks.
#pragma once
#include <vesta/core/ops/conv.h>
#include <vesta/cuda/lib/cudnn_graph.h>

namespace vesta::cuda {

/// A convolution of images or volumes x [n, c, in] with w [o, c / groups, kernel] to y [n, o, out]. No size is 0. Only
/// windows of three dimensions use their first, the depth.
struct ConvDesc {
  DType dtype = DType::float32;
  int64_t batch = 1, channels = 1, outputs = 1, groups = 1;
  Window window;
  bool bias = false, residual = false, relu = false;  // added to y, and done to it, before it is written; forward only
};

/// Builds the plan of a convolution with channels last, for any target; raises cudnn::Refused. For tests, and for
/// convolve().
VESTA_API cudnn::Plan plan_convolution(cudnn::Direction direction, const ConvDesc& desc, const cudnn::Target& target,
                                       const cudnn::Choice& choice);

/// Computes y from x and w (forward), the gradient of x from w and y's, or of w from x and y's, on the current stream
/// of their device. `first` and `second` are the operands in that order. The result is undefined if cuDNN is missing
/// or refuses; then nothing was queued.
Tensor convolve(cudnn::Direction direction, const ConvDesc& desc, const Tensor& first, const Tensor& second,
                bool result_channels_last);
/// Computes y from x and w with what `desc` adds: a bias [o] and a residual [n, o, out]. In float32, as in one sum,
/// and rounded once. Undefined like convolve(), and where cuDNN has no algorithm that does all at once.
Tensor convolve_with(const ConvDesc& desc, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                     bool result_channels_last);

}  // namespace vesta::cuda
