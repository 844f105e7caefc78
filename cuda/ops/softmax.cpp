// Softmax along a dimension: over rows, the dimension moved last where it is not.
#include <vesta/cuda/kernels/softmax.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Runs softmax over `x`, or its gradient over `grad` and the output `x`.
Tensor along(const Tensor& x, const Tensor& grad, int64_t dim, bool log, const char* op) {
  check_floating(x, op);
  DeviceGuard guard(x.device().index);
  const int64_t d = wrap_dim(dim, x.dim(), op);
  const bool last = x.dim() == 0 || d == x.dim() - 1;
  auto ready = [&](const Tensor& t) { return contiguous_values(last ? t : transpose(t, d, -1)); };
  Tensor a = ready(x), g = grad.defined() ? ready(grad) : Tensor();
  // Where the dimension was moved, y is not the result: an out= that happens to have its shape must not take it.
  Tensor y = last ? result_tensor(a.sizes(), x.dtype(), x.device()) : empty_tensor(a.sizes(), x.dtype(), x.device());
  if (y.numel()) {
    SoftmaxLaunch l;
    l.name = op, l.stream = stream_of(x), l.dtype = x.dtype(), l.log = log;
    l.x = a.impl()->data(), l.y = y.impl()->data(), l.grad = g.defined() ? g.impl()->data() : nullptr;
    l.n = a.dim() ? a.sizes()[size_t(a.dim() - 1)] : 1;
    l.rows = y.numel() / l.n;
    l.packed = rows_are_packs(l.n, x.dtype(), {l.x, l.y, l.grad});
    softmax(l);
  }
  return last ? y : contiguous_values(transpose(y, d, -1));
}

template <bool log>
Tensor softmax_kernel(const Tensor& x, int64_t dim) {
  return along(x, {}, dim, log, log ? "log_softmax" : "softmax");
}

Tensor softmax_gradient_kernel(const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  check_one_device("_softmax_backward", {&grad, &output});
  VESTA_CHECK(std::ranges::equal(grad.sizes(), output.sizes()) && grad.dtype() == output.dtype(), value,
              "_softmax_backward: expected grad of the output's shape and dtype, got ", grad.sizes(), " ", grad.dtype(),
              " and ", output.sizes(), " ", output.dtype(), ".");
  return along(output, grad, dim, log, "_softmax_backward");
}

}  // namespace

void register_softmax() {
  constexpr auto cuda = DeviceType::cuda;
  ops::_softmax.set_kernel(cuda, softmax_kernel<false>);
  ops::_log_softmax.set_kernel(cuda, softmax_kernel<true>);
  ops::_softmax_backward.set_kernel(cuda, softmax_gradient_kernel);
}

}  // namespace vesta::cuda
