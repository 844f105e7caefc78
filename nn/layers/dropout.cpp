#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/view.h>
#include <vesta/nn/layers/dropout.h>

#include <cmath>

namespace vesta::nn::detail {
namespace {

/// Scales and shifts the input, in place where that is asked for.
Tensor scaled(const Tensor& input, const Tensor& scale, const Tensor& shift, bool inplace) {
  if (inplace) {
    ops::mul(input, scale, Out{&input, Out::inplace});
    if (shift.defined()) ops::add(input, shift, 1, Out{&input, Out::inplace});
    return input;
  }
  return shift.defined() ? add(mul(input, scale), shift) : mul(input, scale);
}

/// Returns [N, C, 1, ...] for channels, or the input's sizes.
Dims mask_sizes(const Tensor& input, bool channels) {
  Dims sizes(input.sizes());
  for (size_t d = 2; channels && d < sizes.size(); ++d) sizes[d] = 1;
  return sizes;
}

}  // namespace

DropoutOptions checked_dropout(const std::string& op, DropoutOptions o) {
  VESTA_CHECK(o.p >= 0 && o.p <= 1, value, op, ": dropout probability has to be between 0 and 1, but got ", o.p, ".");
  return o;
}

Tensor dropped(const Tensor& input, const DropoutOptions& o, bool training) {
  const Tensor result = dropout(input, o.p, training);
  return o.inplace ? copy_(input, result) : result;
}

Tensor dropped_channels(const std::string& op, const Tensor& input, int64_t unbatched, const DropoutOptions& o,
                        bool training) {
  if (input.dim() == unbatched) {
    return squeeze(dropped_channels(op, unsqueeze(input, 0), 0, o, training), 0);
  }
  VESTA_CHECK(unbatched != 2 || input.dim() == 3, runtime, op, ": Expected 2D or 3D input, but received a ",
              input.dim(), "D input.");
  if (!training || o.p == 0 || input.numel() == 0) return input;
  VESTA_CHECK(input.dim() >= 2, runtime, op, ": Feature dropout requires at least 2 dimensions in the input, got ",
              input.dim(), ".");
  const Tensor mask = ones(mask_sizes(input, true), input.dtype(), input.device());
  return scaled(input, dropout(mask, o.p, true), {}, o.inplace);
}

Tensor alpha_dropped(const std::string& op, const Tensor& input, bool channels, const DropoutOptions& o,
                     bool training) {
  VESTA_CHECK(!channels || input.dim() >= 2, runtime, op,
              ": Feature dropout requires at least 2 dimensions in the input, got ", input.dim(), ".");
  if (!training || o.p == 0 || input.numel() == 0) return input;
  if (o.p == 1) return scaled(input, wrapped(0), {}, o.inplace);
  constexpr double depth = 1.7580993408473766;  // scale * alpha of SELU
  const double a = 1 / std::sqrt((depth * depth * o.p + 1) * (1 - o.p));
  const Tensor kept = bernoulli_(empty(mask_sizes(input, channels), input.dtype(), input.device()), 1 - o.p);
  const Tensor shift = mul(sub(kept, 1 - o.p), depth * a);
  return scaled(input, mul(kept, a), shift, o.inplace);
}

}  // namespace vesta::nn::detail
