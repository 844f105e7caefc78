// The arguments of vectors divided by their lengths, and of the gradient.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Vectors along the middle dimension of x [outer, length, inner], contiguous; `size` [outer, inner] is float, or
/// double for float64.
struct UnitVectors {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  int64_t outer = 1, length = 1, inner = 1;
  double eps = 0;
  bool raises_value = false;  // the gradient is that of |x| where eps is larger, too
  const void *x = nullptr, *grad = nullptr;
  void *out = nullptr, *size = nullptr;
};

/// Queues size = |x| and out = x / max(size, eps), a team of threads per vector.
void run_unit_vectors(const UnitVectors& l);
/// Queues out = the gradient of x.
void run_unit_vectors_gradient(const UnitVectors& l);

}  // namespace vesta::cuda
