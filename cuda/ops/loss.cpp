// Cross-entropy over rows, or down columns as they lie. Class numbers are checked on the device: a number out of range
// raises when the host next waits.
#include <vesta/cuda/kernels/loss.h>

#include <algorithm>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/ops/operands.h>
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
    launch.fault = fault_of(x.device().index);
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
  DeviceGuard guard(input.device().index);
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
                                     const Tensor& exp_sums, int64_t ignore, double smoothing) {
  check_one_device("_cross_entropy_backward", {&grad, &input, &target, &*weight, &exp_sums});
  check_cross_entropy_backward(grad, input, target, weight, exp_sums, smoothing);
  DeviceGuard guard(input.device().index);
  Operands operands(input, target, weight, ignore, smoothing, grad.dtype());
  CrossEntropyLaunch& l = operands.launch;
  Tensor gx = empty_tensor(operands.x.sizes(), input.dtype(), input.device());
  const auto as_input = [&] { return operands.in_rows(input.dim()) ? transpose(gx, 1, 2) : gx; };
  if (gx.numel() == 0) return as_input();
  l.one_grad = std::ranges::all_of(grad.strides(), [](int64_t stride) { return stride == 0; });
  Tensor g = l.one_grad ? grad : contiguous_values(grad), sums = contiguous_values(exp_sums);
  l.grad = g.impl()->data(), l.exp_sums = sums.impl()->data(), l.out = gx.impl()->data();
  operands.run();
  return as_input();
}

}  // namespace

void register_loss() {
  ops::_cross_entropy.set_kernel(DeviceType::cuda, cross_entropy_kernel);
  ops::_cross_entropy_backward.set_kernel(DeviceType::cuda, cross_entropy_backward_kernel);
}

}  // namespace vesta::cuda
