// Pooling over windows of the last 1 to 3 dimensions: the checks that all devices share.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/pool.h>
#include <vesta/core/ops/window.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_POOL)

/// Checks the arguments of _max_pool over a batch [N, C, ...] and works out the window.
VESTA_API Window check_max_pool(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                                bool ceil_mode);
/// Checks the tensors of max pooling's gradient: one index per gradient, as many planes in as out. Returns the elements
/// of a plane of the input.
VESTA_API int64_t check_max_pool_backward(const Tensor& grad, const Tensor& indices, IntList input_size);
/// Checks the arguments of _fractional_max_pool.
VESTA_API void check_fractional_max_pool(const Tensor& input, const Tensor& samples, IntList outputs, IntList kernel);

}  // namespace vesta
