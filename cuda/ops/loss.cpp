// Losses: sums of terms and of rows' losses, which are added up as they are computed; cross-entropy over rows, or down
// columns as they lie. Class numbers are checked on the device: a number out of range raises when the host next waits.
#include <vesta/cuda/kernels/alignment.h>
#include <vesta/cuda/kernels/loss.h>
#include <vesta/cuda/kernels/loss_sum.h>

#include <algorithm>
#include <limits>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/shape.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/reduce_whole.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// The operands in the form that the kernel reads.
struct Operands {
  bool by_columns, as_pixels;
  Tensor x, target, weight;  // x: [N, C], [N, C, inner], or as pixels or rows [N, inner, C]
  CrossEntropyLaunch launch;
  Operands(const Tensor& input, const Tensor& numbers, const Tensor& weights, int64_t ignore, double smoothing,
           DType loss)
      : by_columns(input.dim() == 3 && columns_pay(input.size(1), input.size(2), input.element_size())),
        as_pixels(input.dim() == 3 && transpose(input, 1, 2).is_contiguous() && !input.is_contiguous()),
        x(contiguous_values(in_rows(input.dim()) ? transpose(input, 1, 2) : input)),
        target(contiguous_values(numbers.dtype() == DType::int64 ? numbers : _to_copy(numbers, DType::int64))),
        weight(weights.defined() ? contiguous_values(weights) : weights) {
    launch.stream = stream_of(x), launch.dtype = x.dtype(), launch.wide_loss = loss != x.dtype();
    launch.x = x.impl()->data(), launch.target = target.data_ptr<int64_t>();
    launch.weight = weight.defined() ? weight.impl()->data() : nullptr;
    launch.rows = target.numel(), launch.classes = input.size(1);
    launch.inner = input.dim() == 3 ? input.size(2) : 1, launch.pixels = as_pixels;
    launch.ignore = ignore, launch.smoothing = smoothing;
    launch.fault = fault_of(x.device().index());
  }
  bool in_rows(int64_t dims) const { return dims == 3 && (!by_columns || as_pixels); }
  void run() {
    launch.packed = rows_are_packs(by_columns ? launch.inner : launch.classes, launch.dtype,
                                   {launch.x, launch.grad ? launch.out : nullptr});
    if (by_columns) cross_entropy_columns(launch);
    else cross_entropy(launch);
  }
};

TensorPair cross_entropy_kernel(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore,
                                double smoothing, MaybeDType dtype) {
  const DType loss_dtype = check_cross_entropy(input, target, weight, smoothing, dtype);
  DeviceGuard guard(input.device().index());
  Operands operands(input, target, weight, ignore, smoothing, loss_dtype);
  CrossEntropyLaunch& l = operands.launch;
  Tensor loss = empty_tensor(target.sizes(), loss_dtype, input.device());
  Tensor exp_sums = empty_tensor(exp_sums_shape(input), statistics_dtype(input.dtype()), input.device());
  if (l.rows == 0) return {loss, exp_sums};
  l.out = loss.impl()->data(), l.exp_sums = exp_sums.impl()->data();
  operands.run();
  return {loss, exp_sums};
}

Tensor cross_entropy_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& target, MaybeTensor weight,
                                     const Tensor& exp_sums, MaybeTensor total, int64_t ignore, double smoothing) {
  check_one_device("_cross_entropy_backward", {&grad, &input, &target, &*weight, &exp_sums, &*total});
  VESTA_CHECK(!total.defined() || (total->numel() == 1 && total->dtype() == statistics_dtype(input.dtype())), value,
              "_cross_entropy_backward: expected one number of ", statistics_dtype(input.dtype()), ", got ",
              total.defined() ? total->sizes() : IntSpan(), " (total).");
  check_cross_entropy_backward(grad, input, target, weight, exp_sums, smoothing);
  DeviceGuard guard(input.device().index());
  Operands operands(input, target, weight, ignore, smoothing, grad.dtype());
  CrossEntropyLaunch& l = operands.launch;
  Tensor gx = empty_tensor(operands.x.sizes(), input.dtype(), input.device());
  const auto as_input = [&] { return operands.in_rows(input.dim()) ? transpose(gx, 1, 2) : gx; };
  if (gx.numel() == 0) return as_input();
  l.one_grad = std::ranges::all_of(grad.strides(), [](int64_t stride) { return stride == 0; });
  Tensor g = l.one_grad ? grad : contiguous_values(grad), sums = contiguous_values(exp_sums);
  l.total = total.defined() ? total->impl()->data() : nullptr;
  l.grad = g.impl()->data(), l.exp_sums = sums.impl()->data(), l.out = gx.impl()->data();
  operands.run();
  return as_input();
}

/// An input and its target in one dense order of elements, the input's if both lie in it.
struct DenseOperands {
  Tensor input, target;
  DenseOperands(const Tensor& x, const Tensor& t) : input(x), target(t) {
    if (is_non_overlapping_and_dense(x.sizes(), x.strides()) && std::ranges::equal(x.strides(), t.strides())) return;
    input = contiguous_values(x), target = contiguous_values(t);
  }
};

/// Adds up the losses of rows, whose classes are `target`; `l` says what they are computed from. Writes the weights'
/// sum to `total`, if that is defined, and divides by it.
Tensor sum_of_rows(ClassLosses l, const Tensor& target, const Tensor& total, DType result, const char* name) {
  const DType wide = statistics_dtype(l.dtype);
  Tensor out = empty_tensor({}, result, target.device());
  if (target.numel() == 0) {
    fill_values(out, Scalar(total.defined() ? std::numeric_limits<double>::quiet_NaN() : 0.0), name);
    if (total.defined()) fill_values(total, Scalar(0.0), name);
    return out;
  }
  VESTA_ASSERT(!total.defined() || total.dtype() == wide);
  l.mean = total.defined(), l.total = total.defined() ? total.impl()->data() : nullptr;
  ReduceStage s;
  s.name = name, s.op = Reduction::class_losses, s.classes = &l;
  s.out = out.impl()->data(), s.out_dtype = result;
  reduce_whole(s, target);
  return out;
}

ClassLosses class_losses(DType dtype, const Tensor& weight, int64_t classes, int64_t inner, int64_t ignore) {
  ClassLosses l;
  l.dtype = dtype, l.weight = weight.defined() ? weight.impl()->data() : nullptr;
  l.classes = classes, l.inner = inner, l.ignore = ignore;
  return l;
}

TensorTriple cross_entropy_mean_kernel(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore,
                                       double smoothing, MaybeDType dtype) {
  const auto [losses, exp_sums] = cross_entropy_kernel(input, target, weight, ignore, smoothing, dtype);
  DeviceGuard guard(input.device().index());
  const Tensor numbers = contiguous_values(target.dtype() == DType::int64 ? target : _to_copy(target, DType::int64));
  const Tensor weights = weight.defined() ? contiguous_values(*weight) : Tensor();
  const Tensor total = empty_tensor({}, statistics_dtype(losses.dtype()), input.device());
  ClassLosses l = class_losses(losses.dtype(), weights, input.size(1), 1, ignore);
  l.losses = losses.impl()->data();
  return {sum_of_rows(l, numbers, total, losses.dtype(), "cross_entropy"), exp_sums, total};
}

TensorPair nll_loss_kernel(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore,
                           int64_t reduction) {
  check_one_device("nll_loss", {&input, &target, &*weight});
  check_nll_loss(input, target, weight, reduction);
  DeviceGuard guard(input.device().index());
  const Tensor x = contiguous_values(input), numbers = contiguous_values(target),
               weights = weight.defined() ? contiguous_values(*weight) : Tensor();
  ClassLosses l = class_losses(x.dtype(), weights, x.size(1), x.dim() == 3 ? x.size(2) : 1, ignore);
  l.probabilities = x.impl()->data(), l.fault = fault_of(x.device().index());
  if (reduction != 0) {
    const Tensor total = reduction == 1 ? empty_tensor({}, statistics_dtype(x.dtype()), x.device()) : Tensor();
    return {sum_of_rows(l, numbers, total, x.dtype(), "nll_loss"), total};
  }
  Tensor out = empty_tensor(target.sizes(), x.dtype(), x.device());
  if (out.numel() == 0) return {out, Tensor()};
  NllRows rows;
  rows.stream = stream_of(x), rows.rows = l, rows.target = numbers.data_ptr<int64_t>(), rows.count = numbers.numel();
  rows.out = out.impl()->data();
  nll_rows(rows);
  return {out, Tensor()};
}

Tensor nll_loss_backward_kernel(const Tensor& grad, const Tensor& target, MaybeTensor weight, MaybeTensor total,
                                int64_t ignore, IntList sizes) {
  check_one_device("_nll_loss_backward", {&grad, &target, &*weight, &*total});
  check_nll_loss_backward(grad, target, sizes);
  DeviceGuard guard(grad.device().index());
  Tensor gx = empty_tensor(sizes, grad.dtype(), grad.device());
  if (gx.numel() == 0) return gx;
  NllRows l;
  l.one_grad = std::ranges::all_of(grad.strides(), [](int64_t stride) { return stride == 0; });
  const Tensor g = l.one_grad ? grad : contiguous_values(grad), numbers = contiguous_values(target),
               weights = weight.defined() ? contiguous_values(*weight) : Tensor();
  l.rows = class_losses(gx.dtype(), weights, gx.size(1), gx.dim() == 3 ? gx.size(2) : 1, ignore);
  l.stream = stream_of(gx), l.target = numbers.data_ptr<int64_t>(), l.count = numbers.numel();
  l.grad = g.impl()->data(), l.total = total.defined() ? total->impl()->data() : nullptr, l.out = gx.impl()->data();
  nll_rows_backward(l);
  return gx;
}

Tensor loss_sum_kernel(const Tensor& input, const Tensor& target, int64_t term, double first, double second,
                       double divisor) {
  check_one_device("_loss_sum", {&input, &target});
  check_loss_sum(input, target, term, "_loss_sum");
  if (input.numel() == 0) return ops::_loss_sum.body()(input, target, term, first, second, divisor);
  DeviceGuard guard(input.device().index());
  const DenseOperands x(input, target);
  Tensor out = empty_tensor({}, input.dtype(), input.device());
  const LossTerms terms{LossTerm(term), x.target.impl()->data(), {first, second}};
  ReduceStage s;
  s.name = "_loss_sum", s.op = Reduction::loss_terms, s.terms = &terms;
  s.out = out.impl()->data(), s.out_dtype = out.dtype(), s.divisor = divisor;
  reduce_whole(s, x.input);
  return out;
}

TensorPair loss_sum_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t term,
                                    double first, double second, double divisor, int64_t wanted) {
  constexpr const char* op = "_loss_sum_backward";
  check_one_device(op, {&grad, &input, &target});
  check_loss_sum(input, target, term, op);
  VESTA_CHECK(grad.numel() == 1 && grad.dtype() == input.dtype(), value, op, ": expected grad of one number of ",
              input.dtype(), ", got ", grad.sizes(), " of ", grad.dtype(), ".");
  DeviceGuard guard(input.device().index());
  const DenseOperands x(input, target);
  const auto made = [&](int64_t bit) { return wanted & bit ? empty_like(x.input) : Tensor(); };
  const Tensor of_input = made(1), of_target = made(2);
  if (input.numel() == 0 || wanted == 0) return {of_input, of_target};
  const auto at = [](const Tensor& t) { return t.defined() ? t.impl()->data() : nullptr; };
  LossTermsGradient l{.stream = stream_of(input),
                      .dtype = input.dtype(),
                      .terms = {LossTerm(term), at(x.target), {first, second}},
                      .x = at(x.input),
                      .grad = at(grad),
                      .divisor = divisor,
                      .of_x = at(of_input),
                      .of_target = at(of_target),
                      .n = input.numel()};
  l.packed = is_aligned(l.x) && is_aligned(l.terms.target);
  loss_terms_backward(l);
  return {of_input, of_target};
}

}  // namespace

void register_loss() {
  ops::_cross_entropy.set_kernel(DeviceType::cuda, cross_entropy_kernel);
  ops::_cross_entropy_backward.set_kernel(DeviceType::cuda, cross_entropy_backward_kernel);
  ops::_cross_entropy_mean.set_kernel(DeviceType::cuda, cross_entropy_mean_kernel);
  ops::_nll_loss.set_kernel(DeviceType::cuda, nll_loss_kernel);
  ops::_nll_loss_backward.set_kernel(DeviceType::cuda, nll_loss_backward_kernel);
  ops::_loss_sum.set_kernel(DeviceType::cuda, loss_sum_kernel);
  ops::_loss_sum_backward.set_kernel(DeviceType::cuda, loss_sum_backward_kernel);
}

}  // namespace vesta::cuda
