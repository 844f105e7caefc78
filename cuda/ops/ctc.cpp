// Connectionist temporal classification: one kernel forward and two backward. The lengths of the sequences, which
// programs give as numbers, are copied to the device once for both. A label out of range raises when the host next
// waits.
#include <vesta/cuda/kernels/ctc.h>

#include <algorithm>
#include <vector>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/loss.h>
#include <vesta/cuda/constants.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// The operands in the form that the kernels read.
struct CtcOperands {
  Tensor labels;
  StoragePtr lengths;
  CtcLaunch launch;
  CtcOperands(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
              int64_t blank)
      : labels(contiguous_values(targets)) {
    const std::vector<int64_t> begins = check_ctc_loss(log_probs, labels, input_lengths, target_lengths, blank);
    std::vector<int64_t> all(input_lengths.begin(), input_lengths.end());
    all.insert(all.end(), target_lengths.begin(), target_lengths.end());
    all.insert(all.end(), begins.begin(), begins.end());
    lengths = constant_memory(all.data(), all.size() * sizeof(int64_t), log_probs.device().index());
    launch.stream = stream_of(log_probs), launch.dtype = log_probs.dtype(), launch.log_probs = log_probs.impl()->data();
    std::ranges::copy(log_probs.strides(), launch.strides);
    launch.steps = log_probs.size(0), launch.batch = log_probs.size(1), launch.classes = log_probs.size(2);
    launch.targets = labels.data_ptr<int64_t>(), launch.lengths = static_cast<const int64_t*>(lengths->data());
    launch.longest = *std::ranges::max_element(target_lengths), launch.blank = blank;
    launch.fault = fault_of(log_probs.device().index());
  }
};

TensorPair ctc_loss_kernel(const Tensor& log_probs, const Tensor& targets, IntTuple input_lengths,
                           IntTuple target_lengths, int64_t blank) {
  check_one_device("ctc_loss", {&log_probs, &targets});
  DeviceGuard guard(log_probs.device().index());
  const int64_t n = log_probs.dim() == 3 ? log_probs.size(1) : 0;
  Tensor loss = empty_tensor(Dims{n}, log_probs.dtype(), log_probs.device());
  if (n == 0) {
    check_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
    return {loss, loss};
  }
  CtcOperands operands(log_probs, targets, input_lengths, target_lengths, blank);
  CtcLaunch& l = operands.launch;
  Tensor alpha = empty_tensor(Dims{n, l.steps, l.states() + 1}, log_probs.dtype(), log_probs.device());
  l.alpha = alpha.impl()->data(), l.loss = loss.impl()->data();
  ctc_loss(l);
  return {loss, alpha};
}

Tensor ctc_loss_backward_kernel(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& alpha,
                                IntTuple input_lengths, IntTuple target_lengths, int64_t blank) {
  constexpr const char* op = "_ctc_loss_backward";
  check_one_device(op, {&grad, &log_probs, &targets, &alpha});
  DeviceGuard guard(log_probs.device().index());
  const DType dtype = log_probs.dtype();
  const Device device = log_probs.device();
  Tensor out = empty_tensor(log_probs.sizes(), dtype, device);
  if (out.numel() == 0) return out;
  CtcOperands operands(log_probs, targets, input_lengths, target_lengths, blank);
  CtcLaunch& l = operands.launch;
  VESTA_CHECK(grad.dim() == 1 && grad.numel() == l.batch && grad.dtype() == dtype, value, op, ": expected grad [N] of ",
              dtype, ", got ", grad.sizes(), " of ", grad.dtype(), ".");
  VESTA_CHECK(alpha.dtype() == dtype && alpha.numel() == l.batch * l.steps * (l.states() + 1) && alpha.is_contiguous(),
              value, op, ": expected alpha as _ctc_loss returned it, got ", alpha.sizes(), ".");
  const Tensor shares = empty_tensor(Dims{l.batch, l.steps, l.states()}, dtype, device),
               chain = empty_tensor(Dims{l.batch, l.longest}, DType::int32, device),
               rows = l.rows_in_shared() ? Tensor() : empty_tensor(Dims{l.batch, 2, l.states()}, dtype, device);
  l.alpha = alpha.impl()->data(), l.grad = grad.impl()->data(), l.grad_stride = grad.stride(0);
  l.shares = shares.impl()->data(), l.chain = chain.data_ptr<int32_t>(), l.out = out.impl()->data();
  l.rows = rows.defined() ? rows.impl()->data() : nullptr;
  ctc_loss_backward(l);
  return out;
}

}  // namespace

void register_ctc() {
  ops::_ctc_loss.set_kernel(DeviceType::cuda, ctc_loss_kernel);
  ops::_ctc_loss_backward.set_kernel(DeviceType::cuda, ctc_loss_backward_kernel);
}

}  // namespace vesta::cuda
