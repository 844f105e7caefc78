// Max pooling: shapes.
#include <vesta/core/ops/pool.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

TensorPair max_pool(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                    bool ceil_mode) {
  const Window w = check_max_pool(input, kernel, stride, padding, dilation, ceil_mode);
  const Dims sizes = w.result_sizes(input.sizes()[0], input.sizes()[1]);
  const bool last = suggests_channels_last(input);
  return {image(sizes, last, input.dtype()), image(sizes, last, DType::int64)};
}

Tensor max_pool_backward(const Tensor& grad, const Tensor& indices, IntList input_size, IntList, IntList, IntList,
                         IntList) {
  check_max_pool_backward(grad, indices, input_size);
  return image(input_size, suggests_channels_last(indices), grad.dtype());
}

}  // namespace

void register_pool() {
  ops::_max_pool.set_kernel(DeviceType::meta, max_pool);
  ops::_max_pool_backward.set_kernel(DeviceType::meta, max_pool_backward);
}

}  // namespace vesta::meta
