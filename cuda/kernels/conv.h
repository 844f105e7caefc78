// The arguments of the plain convolution kernels: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A convolution of x [batch, channels, in] with w [outputs, channels / groups, kernel] to y [batch, outputs, out], in
/// up to 3 dimensions, the last ones of Window. Images have strides in elements [batch, channel, depth, row, column]; w
/// is dense. All sizes are below 2^30, planes and windows below 2^31 elements.
struct ConvLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t batch = 0, channels = 0, outputs = 0, groups = 1;
  int in[3] = {}, out[3] = {}, kernel[3] = {}, stride[3] = {}, padding[3] = {}, dilation[3] = {};
  const void* image = nullptr;  // x; for the input's gradient: y's gradient
  int64_t image_strides[5] = {};
  const void* weight = nullptr;  // for the weight's gradient: y's gradient
  int64_t grad_strides[5] = {};  // of grad
  const void* bias = nullptr;  // [outputs], dense; null: none. Forward only
  void* result = nullptr;  // dense: y, or the gradient of x or of w
  void* partial = nullptr;  // for the weight's gradient: partial_bytes() of memory; null if that is 0
};

/// Queues y. Floating dtypes only, as below; 16-bit floats are summed in float.
void run_conv_forward(const ConvLaunch& launch);
/// Queues the gradient of x.
void run_conv_input_gradient(const ConvLaunch& launch);
/// Queues the gradient of w: sums over parts of the batch, then their sum in order. The cut depends on sizes alone.
void run_conv_weight_gradient(const ConvLaunch& launch);
/// Returns how much memory the weight's gradient needs for its partial sums.
int64_t partial_bytes(const ConvLaunch& launch);

}  // namespace vesta::cuda
