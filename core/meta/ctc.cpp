// Connectionist temporal classification: shapes.
#include <vesta/core/ops/loss.h>

#include <algorithm>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

TensorPair ctc_loss(const Tensor& log_probs, const Tensor& targets, IntTuple input_lengths, IntTuple target_lengths,
                    int64_t blank) {
  check_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
  const int64_t n = log_probs.size(1);
  const int64_t longest = target_lengths.empty() ? 0 : *std::ranges::max_element(target_lengths);
  return {result({n}, log_probs.dtype()), result({n, log_probs.size(0), 2 * longest + 1}, DType::float64)};
}

Tensor ctc_loss_backward(const Tensor&, const Tensor& log_probs, const Tensor& targets, const Tensor&,
                         IntTuple input_lengths, IntTuple target_lengths, int64_t blank) {
  check_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
  return like(log_probs);
}

}  // namespace

void register_ctc() {
  ops::_ctc_loss.set_kernel(DeviceType::meta, ctc_loss);
  ops::_ctc_loss_backward.set_kernel(DeviceType::meta, ctc_loss_backward);
}

}  // namespace vesta::meta
