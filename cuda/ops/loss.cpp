// Cross-entropy over rows. Class numbers are checked on the device: a number out of range raises when the host next
// waits.
#include <vesta/cuda/kernels/loss.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// The operands in the form that the kernel reads.
struct Operands {
  Tensor x, target, weight;
  CrossEntropyLaunch launch;
  Operands(const Tensor& input, const Tensor& numbers, const Tensor& weights, int64_t ignore, double smoothing,
           DType loss)
      : x(contiguous_values(input)),
        target(contiguous_values(numbers.dtype() == DType::int64 ? numbers : _to_copy(numbers, DType::int64))),
        weight(weights.defined() ? contiguous_values(weights) : weights) {
    launch.stream = stream_of(x), launch.dtype = x.dtype(), launch.wide_loss = loss != x.dtype();
    launch.x = x.impl()->data(), launch.target = target.data_ptr<int64_t>();
    launch.weight = weight.defined() ? weight.impl()->data() : nullptr;
    launch.rows = x.sizes()[0], launch.classes = x.sizes()[1];
    launch.ignore = ignore, launch.smoothing = smoothing;
    launch.fault = fault_of(x.device().index);
  }
};

TensorPair cross_entropy_kernel(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore,
                                double smoothing, MaybeDType dtype) {
  check_one_device("cross_entropy", {&input, &target, &*weight});
  const DType loss_dtype = check_cross_entropy(input, target, weight, smoothing, dtype);
  DeviceGuard guard(input.device().index);
  Operands operands(input, target, weight, ignore, smoothing, loss_dtype);
  CrossEntropyLaunch& l = operands.launch;
  Tensor loss = empty_tensor({&l.rows, 1}, loss_dtype, input.device());
  Tensor exp_sums = empty_tensor(exp_sums_shape(input), statistics_dtype(input.dtype()), input.device());
  if (l.rows == 0) return {loss, exp_sums};
  l.out = loss.impl()->data(), l.exp_sums = exp_sums.impl()->data();
  l.packed = rows_are_packs(l.classes, l.dtype, {l.x});
  cross_entropy(l);
  return {loss, exp_sums};
}

Tensor cross_entropy_gradient_kernel(const Tensor& grad, const Tensor& input, const Tensor& target, MaybeTensor weight,
                                     const Tensor& exp_sums, int64_t ignore, double smoothing) {
  check_one_device("_cross_entropy_backward", {&grad, &input, &target, &*weight, &exp_sums});
  check_cross_entropy_backward(grad, input, target, weight, exp_sums, smoothing);
  DeviceGuard guard(input.device().index);
  Operands operands(input, target, weight, ignore, smoothing, grad.dtype());
  CrossEntropyLaunch& l = operands.launch;
  Tensor gx = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (gx.numel() == 0) return gx;
  Tensor g = contiguous_values(grad), sums = contiguous_values(exp_sums);
  l.grad = g.impl()->data(), l.exp_sums = sums.impl()->data(), l.out = gx.impl()->data();
  l.packed = rows_are_packs(l.classes, l.dtype, {l.x, l.out});
  cross_entropy(l);
  return gx;
}

}  // namespace

void register_loss() {
  ops::_cross_entropy.set_kernel(DeviceType::cuda, cross_entropy_kernel);
  ops::_cross_entropy_backward.set_kernel(DeviceType::cuda, cross_entropy_gradient_kernel);
}

}  // namespace vesta::cuda
