// Softmax along a dimension: over rows, or down columns as they lie; few long columns are made rows.
#include <vesta/cuda/kernels/softmax.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/reduce.h>
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
  DeviceGuard guard(x.device().index());
  const int64_t d = wrap_dim(dim, x.dim(), op), n = x.dim() ? x.size(d) : 1;
  int64_t inner = 1;
  for (int64_t i = d + 1; i < x.dim(); ++i) inner *= x.size(i);
  const bool by_columns = columns_pay(n, inner, x.element_size());
  const bool in_place = inner == 1 || by_columns;
  auto ready = [&](const Tensor& t) { return contiguous_values(in_place ? t : transpose(t, d, -1)); };
  Tensor a = ready(x), g = grad.defined() ? ready(grad) : Tensor();
  // Where the dimension was moved, y is not the result: an out= that happens to have its shape must not take it.
  Tensor y =
      in_place ? result_tensor(a.sizes(), x.dtype(), x.device()) : empty_tensor(a.sizes(), x.dtype(), x.device());
  if (y.numel()) {
    SoftmaxLaunch l;
    l.name = op, l.stream = stream_of(x), l.dtype = x.dtype(), l.log = log;
    l.x = a.impl()->data(), l.y = y.impl()->data(), l.grad = g.defined() ? g.impl()->data() : nullptr;
    l.n = n, l.rows = y.numel() / n;
    l.packed = rows_are_packs(by_columns ? inner : n, x.dtype(), {l.x, l.y, l.grad});
    if (by_columns) softmax_columns(l, inner);
    else softmax(l);
  }
  return in_place ? y : contiguous_values(transpose(y, d, -1));
}

template <bool log>
Tensor softmax_kernel(const Tensor& x, int64_t dim) {
  return along(x, {}, dim, log, log ? "log_softmax" : "softmax");
}

Tensor softmax_backward_kernel(const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  check_one_device("_softmax_backward", {&grad, &output});
  VESTA_CHECK(std::ranges::equal(grad.sizes(), output.sizes()) && grad.dtype() == output.dtype(), value,
              "_softmax_backward: expected grad of the output's shape and dtype, got ", grad.sizes(), " ", grad.dtype(),
              " and ", output.sizes(), " ", output.dtype(), ".");
  return along(output, grad, dim, log, "_softmax_backward");
}

/// Returns whether the dimensions are the last ones of x, and no row is empty.
bool are_last(const Tensor& x, IntSpan dim) {
  if (x.numel() == 0 || x.dim() == 0) return false;
  const uint64_t mask = dim.empty() ? ~uint64_t(0) : dim_mask(dim, x.dim(), "logsumexp");
  int64_t d = x.dim();
  while (d > 0 && (mask >> (d - 1) & 1)) --d;
  for (int64_t i = 0; i < d; ++i) {
    if (mask >> i & 1) return false;
  }
  return true;
}

Tensor logsumexp_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& result, IntList dim) {
  check_one_device("_logsumexp_backward", {&grad, &input, &result});
  const DType dtype = input.dtype();
  const int64_t rows = result.numel();
  const bool last = are_last(input, IntSpan(dim));
  if (!kFloats.has(dtype) || grad.dtype() != dtype || result.dtype() != dtype || grad.numel() != rows ||
      input.numel() == 0 || (!last && (dim.size() != 1 || result.dim() != input.dim()))) {
    return ops::_logsumexp_backward.body()(grad, input, result, dim);
  }
  DeviceGuard guard(input.device().index());
  const int64_t d = last ? 0 : wrap_dim(dim[0], input.dim(), "logsumexp");
  int64_t inner = 1;
  for (int64_t i = d + 1; i < input.dim() && !last; ++i) inner *= input.size(i);
  const bool by_columns = !last && columns_pay(input.size(d), inner, input.element_size()),
             moved = !last && !by_columns;
  const auto ready = [&](const Tensor& t) { return contiguous_values(moved ? transpose(t, d, -1) : t); };
  const Tensor x = ready(input), g = ready(grad), y = ready(result);
  Tensor out = empty_tensor(x.sizes(), dtype, x.device());
  LogsumexpGradient l;
  l.stream = stream_of(x), l.dtype = dtype, l.rows = rows, l.n = x.numel() / rows;
  l.x = x.impl()->data(), l.grad = g.impl()->data(), l.result = y.impl()->data(), l.out = out.impl()->data();
  if (by_columns) {
    l.packed = rows_are_packs(inner, dtype, {l.x, l.out, l.grad, l.result});
    logsumexp_columns_backward(l, inner);
  } else {
    l.packed = rows_are_packs(l.n, dtype, {l.x, l.out});
    logsumexp_backward(l);
  }
  return moved ? contiguous_values(transpose(out, d, -1)) : out;
}

}  // namespace

void register_softmax() {
  constexpr auto cuda = DeviceType::cuda;
  ops::_softmax.set_kernel(cuda, softmax_kernel<false>);
  ops::_log_softmax.set_kernel(cuda, softmax_kernel<true>);
  ops::_softmax_backward.set_kernel(cuda, softmax_backward_kernel);
  ops::_logsumexp_backward.set_kernel(cuda, logsumexp_backward_kernel);
}

}  // namespace vesta::cuda
