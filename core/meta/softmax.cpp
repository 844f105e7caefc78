// Softmax and cross-entropy: shapes.
#include <vesta/core/ops/softmax.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>

namespace vesta::meta {
namespace {

Tensor along(const Tensor& x, int64_t dim, const char* op) {
  check_floating(x, op);
  wrap_dim(dim, x.dim(), op);
  return like(x);
}
Tensor softmax(const Tensor& x, int64_t dim) { return along(x, dim, "softmax"); }
Tensor log_softmax(const Tensor& x, int64_t dim) { return along(x, dim, "log_softmax"); }
Tensor softmax_backward(const Tensor& grad, const Tensor&, int64_t dim, bool) {
  return along(grad, dim, "_softmax_backward");
}

TensorPair cross_entropy(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t, double smoothing,
                         MaybeDType dtype) {
  const DType loss = check_cross_entropy(input, target, weight, smoothing, dtype);
  return {result(Dims(target.sizes()), loss), result(exp_sums_shape(input), statistics_dtype(input.dtype()))};
}
Tensor cross_entropy_backward(const Tensor&, const Tensor& input, const Tensor&, MaybeTensor, const Tensor&,
                              MaybeTensor, int64_t, double) {
  return like(input);
}

}  // namespace

void register_softmax() {
  ops::_softmax.set_kernel(DeviceType::meta, softmax);
  ops::_log_softmax.set_kernel(DeviceType::meta, log_softmax);
  ops::_softmax_backward.set_kernel(DeviceType::meta, softmax_backward);
  ops::_cross_entropy.set_kernel(DeviceType::meta, cross_entropy);
  ops::_cross_entropy_backward.set_kernel(DeviceType::meta, cross_entropy_backward);
}

}  // namespace vesta::meta
