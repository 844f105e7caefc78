// The arguments of softmax: contiguous rows.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Softmax or log-softmax over `rows` contiguous rows of n columns; with `grad`, the gradient, x being the output.
struct SoftmaxLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const char* x = nullptr;
  const char* grad = nullptr;
  char* y = nullptr;
  int64_t rows = 0, n = 0;
  bool log = false;
  bool packed = false;  // rows consist of aligned packs
};

/// The gradient of logsumexp over rows: grad softmax(x), by way of the rows' results.
struct LogsumexpGradient {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const char *x = nullptr, *grad = nullptr, *result = nullptr;  // the last two: a number for each row
  char* out = nullptr;
  int64_t rows = 0, n = 0;
  bool packed = false;  // rows consist of aligned packs
};
/// Queues it in one launch.
void logsumexp_backward(const LogsumexpGradient& l);
/// Queues it over columns instead, as softmax_columns does.
void logsumexp_columns_backward(const LogsumexpGradient& l, int64_t inner);

/// Queues the launch.
void softmax(const SoftmaxLaunch& l);
/// Queues the launch over columns instead: of [outer, n, inner], of which `rows` is outer * inner. `packed`: rows of
/// `inner` elements consist of aligned packs of 16 bytes.
void softmax_columns(const SoftmaxLaunch& l, int64_t inner);

}  // namespace vesta::cuda
