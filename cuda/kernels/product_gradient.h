// The arguments of the gradients of products and of running products.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Products along the middle dimension of x [outer, length, inner], contiguous, floating-point or complex; `grad` and
/// `result` are [outer, inner], of running products [outer, length, inner].
struct ProductGradient {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  int64_t outer = 1, length = 1, inner = 1;
  const void *x = nullptr, *grad = nullptr, *result = nullptr;
  void* out = nullptr;
};

/// Queues out = the gradient of x, a team of threads per line.
void run_product_gradient(const ProductGradient& l);
/// Queues the same for running products, a thread or a block per line.
void run_running_product_gradient(const ProductGradient& l);

}  // namespace vesta::cuda
