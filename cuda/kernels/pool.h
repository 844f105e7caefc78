// The arguments of the pooling kernels: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/kernels/in_place.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A max pooling of dense planes [planes, in] to [planes, out], in 3 dimensions (of size 1 if there are fewer).
struct PoolLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t planes = 0;
  int64_t channels = 1;  ///< that lie side by side: an element's neighbour in its plane is so many elements away
  int64_t in[3] = {}, out[3] = {}, kernel[3] = {}, stride[3] = {}, padding[3] = {}, dilation[3] = {};
  const void* input = nullptr;
  void* values = nullptr;
  int64_t* indices = nullptr;  ///< null: values only
};
/// Queues values and indices. NaN wins over everything, else the first of the largest; a window that covers only
/// padding gives -inf and -1. Real dtypes.
void run_max_pool(const PoolLaunch& launch);

/// A max pooling of windows that begin where a plane's numbers of [0, 1), `samples` [planes, dims], say: the last one
/// is the width's for images, the first one the depth's for volumes. Images have one layer, and dims is 2.
struct FractionalPoolLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;  ///< of the samples too
  int dims = 2;
  int64_t planes = 0, in[3] = {1, 1, 1}, out[3] = {1, 1, 1}, kernel[3] = {1, 1, 1};
  const void *input = nullptr, *samples = nullptr;
  void* values = nullptr;
  int64_t* indices = nullptr;
  Fault* fault = nullptr;
};
/// Queues values and indices. The last NaN of a window wins over everything, else the first of the largest. A window
/// that would begin outside of its plane is reported.
void run_fractional_max_pool(const FractionalPoolLaunch& launch);

/// The gradient of max pooling: `grad`, at `indices` [planes, out], is summed in `result` [planes, in].
struct PoolGradientLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t planes = 0, in = 0, out = 0;  // elements of a plane
  int64_t channels = 1;  ///< as in PoolLaunch
  const void* grad = nullptr;
  const int64_t* indices = nullptr;
  void* result = nullptr;
  Fault* fault = nullptr;
  PoolLaunch window;  ///< that gave the indices: its sizes, kernel, stride, padding and dilation
};
/// Queues the gradient for floating dtypes where an element lies in few windows; else returns false. Writes all of
/// `result`. Trusts that each index lies in its window.
bool run_max_pool_backward_of_windows(const PoolGradientLaunch& launch);
/// Queues the gradient, for floating dtypes, added to `result`. The terms of an element are added in the order of the
/// outputs, so the bits are fixed.
void run_max_pool_backward(const PoolGradientLaunch& launch);
/// Queues the gradient with the terms of an element added to `result` in any order, for float32 and float64.
void run_max_pool_backward_in_any_order(const PoolGradientLaunch& launch);

}  // namespace vesta::cuda
