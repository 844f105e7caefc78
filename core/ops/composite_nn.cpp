// Ops of neural networks that are made of other ops: their gradients come from those.
#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/softmax.h>

namespace vesta {

Tensor softmax_composite(const Tensor& input, int64_t dim, MaybeDType dtype) {
  if (!dtype) return _softmax(input, dim);
  autocast::Pause as_asked;
  return _softmax(input.to(*dtype), dim);
}

Tensor log_softmax_composite(const Tensor& input, int64_t dim, MaybeDType dtype) {
  if (!dtype) return _log_softmax(input, dim);
  autocast::Pause as_asked;
  return _log_softmax(input.to(*dtype), dim);
}

Tensor _dropout_composite(const Tensor& input, double p, bool training) {
  VESTA_CHECK(p >= 0 && p <= 1, value, "dropout: dropout probability has to be between 0 and 1, but got ", p, ".");
  if (!training || p == 0 || input.numel() == 0) return input;
  return std::get<0>(native_dropout(input, p, true));
}

}  // namespace vesta
