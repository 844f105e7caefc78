// Random numbers of further distributions, made of uniform and normal ones: the same values on every device.
#include <cmath>
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/distribution_checks.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta {
namespace {

/// Draws uniform numbers of (0, 1) in t's shape: in float64 where t holds doubles or integers, else in float32.
Tensor inner_uniform(const Tensor& t, Generator* generator) {
  const bool wide = t.dtype() == DType::float64 || !is_differentiable(t.dtype());
  const DType dtype = wide ? DType::float64 : DType::float32;
  const double smallest = wide ? 0x1p-54 : 0x1p-25;  // half a step of uniform_'s numbers
  return clamp_min(uniform_(empty(t.sizes(), dtype, t.device()), 0, 1, generator), wrapped(smallest));
}

void check_real_floating(const Tensor& t, const char* op) {
  VESTA_CHECK(is_float(t.dtype()), not_implemented, op, ": expected a floating-point dtype, got ", t.dtype(), ".");
}

bool is_recorded(const Tensor& t) { return layer_state.grad_enabled && t.requires_grad(); }

/// Returns what was drawn by `parameter`, whose gradient is zero, as PyTorch has it.
Tensor drawn_from(const Tensor& parameter, const Tensor& made) {
  return is_recorded(parameter) ? copy_(clone(parameter, "contiguous_format"), made) : made;
}

}  // namespace

/// Drops complex elements: the draws are those of real ones.
TensorPair native_dropout_composite(const Tensor& input, double p, bool train) {
  const DType d = input.dtype();
  const Tensor drawn = ones(input.sizes(), is_complex(d) ? real_type(d) : d, input.device());
  const Tensor mask = std::get<1>(native_dropout(drawn, p, train));
  return {native_dropout_backward(input, mask, train && p < 1 ? 1 / (1 - p) : 1), mask};
}

Tensor native_dropout_backward_composite(const Tensor& grad_output, const Tensor& mask, double scale) {
  if (mask.dtype() != DType::bool_) return mul(mul(grad_output, scale), mask);
  return where(mask, mul(grad_output, scale), wrapped(0.0));
}

// ---- one distribution for all elements ----

void check_exponential_(const Tensor& t, double lambd) {
  check_real_floating(t, "exponential_");
  VESTA_CHECK(lambd > 0, runtime, "exponential_: expects lambda > 0.0, but found lambda=", lambd, ".");
}
void check_geometric_(const Tensor& t, double p) {
  VESTA_CHECK(p > 0 && p < 1, runtime, "geometric_: expects p to be in (0, 1), but got p=", p, ".");
  check_real(t, "geometric_");
}
void check_cauchy_(const Tensor& t, double sigma) {
  check_real_floating(t, "cauchy_");
  VESTA_CHECK(sigma > 0, runtime, "cauchy_: expects sigma > 0.0, but found sigma=", sigma, ".");
}
void check_log_normal_(const Tensor& t, double std) {
  check_real_floating(t, "log_normal_");
  VESTA_CHECK(std > 0, runtime, "log_normal_: expects std > 0.0, but found std=", std, ".");
}

Tensor exponential__composite(const Tensor& input, double lambd, Generator* generator) {
  check_exponential_(input, lambd);
  return copy_(input, div(log(inner_uniform(input, generator)), wrapped(-lambd)));
}

Tensor geometric__composite(const Tensor& input, double p, Generator* generator) {
  check_geometric_(input, p);
  return copy_(input, ceil(div(log(inner_uniform(input, generator)), wrapped(std::log1p(-p)))));
}

Tensor cauchy__composite(const Tensor& input, double median, double sigma, Generator* generator) {
  check_cauchy_(input, sigma);
  const Tensor angle = mul(sub(inner_uniform(input, generator), wrapped(0.5)), wrapped(std::acos(-1.0)));
  return copy_(input, add(mul(tan(angle), wrapped(sigma)), wrapped(median)));
}

Tensor log_normal__composite(const Tensor& input, double mean, double std, Generator* generator) {
  check_log_normal_(input, std);
  return copy_(input, exp(normal_(empty_like(input), mean, std, generator)));
}

// ---- parameters per element ----

namespace {

void check_deviations(const Tensor& std, const char* op) {
  VESTA_CHECK(!std.is_complex(), runtime, op, ": expects standard deviation to be non-complex.");
  if (std.numel() == 0 || !has_values(std)) return;
  VESTA_CHECK(ge(amin(std), 0).item<bool>(), runtime, op, ": expects all elements of std >= 0.0.");
}

}  // namespace

Tensor normal_composite(const Tensor& mean, const Tensor& std, Generator* generator) {
  const Tensor mu = mean.detach(), sigma = std.detach();
  check_deviations(sigma, "normal");
  const Dims shape = broadcast_shapes(mean.sizes(), std.sizes(), "normal");
  const Tensor noise = normal_(empty(shape, mean.dtype(), mean.device()), 0, 1, generator);
  const Tensor made = add(mul(noise, sigma), mu).to(mean.dtype());
  return is_recorded(mean) || is_recorded(std) ? drawn_from(add(mean, std).to(mean.dtype()), made) : made;
}
Tensor normal_Tensor_float_composite(const Tensor& mean, double std, Generator* generator) {
  VESTA_CHECK(std >= 0, runtime, "normal: expects std >= 0.0, but found std ", std, ".");
  const Tensor noise = normal_(empty(mean.sizes(), mean.dtype(), mean.device()), 0, std, generator);
  return drawn_from(mean, add(noise, mean.detach()));
}
Tensor normal_float_Tensor_composite(double mean, const Tensor& std, Generator* generator) {
  const Tensor sigma = std.detach();
  check_deviations(sigma, "normal");
  const Tensor noise = normal_(empty(std.sizes(), std.dtype(), std.device()), 0, 1, generator);
  return drawn_from(std, add(mul(noise, sigma), wrapped(mean)));
}
Tensor normal_float_float_composite(double mean, double std, IntList size, Generator* generator, MaybeDType dtype,
                                    MaybeDevice device) {
  return normal_(empty(size, dtype.value_or(default_dtype()), device), mean, std, generator);
}

Tensor randint_like_low_dtype_composite(const Tensor& input, int64_t low, int64_t high, Generator* generator,
                                        MaybeDType dtype, MaybeDevice device) {
  VESTA_CHECK(low < high, runtime, "randint_like: expected low < high, got low=", low, " and high=", high, ".");
  return random_(empty_like(input, dtype, device), low, high, generator);
}

Tensor _checked_probabilities_composite(const Tensor& input) {
  Tensor p = input.to(DType::float64);
  if (!has_values(p)) return p;
  VESTA_CHECK(all(logical_and(isfinite(p), ge(p, 0))).item<bool>(), runtime, kNotProbabilities);
  VESTA_CHECK(all(any(gt(p, 0), MaybeDims(-1))).item<bool>(), runtime, kNoProbability);
  return p;
}

Tensor multinomial_composite(const Tensor& input, int64_t num_samples, bool replacement, Generator* generator) {
  constexpr const char* op = "multinomial";
  VESTA_CHECK(input.dim() == 1 || input.dim() == 2, runtime, op, ": prob_dist must be 1 or 2 dim, got shape ",
              input.sizes(), ".");
  VESTA_CHECK(is_float(input.dtype()), runtime, op,
              ": only supports floating-point dtypes for input, got: ", input.dtype(), ".");
  VESTA_CHECK(num_samples > 0, runtime, op, ": cannot sample n_sample <= 0 samples, got ", num_samples, ".");
  const int64_t n = input.size(-1);
  VESTA_CHECK(replacement || num_samples <= n, runtime, op, ": cannot sample n_sample > prob_dist.size(-1) samples ",
              "without replacement, got ", num_samples, " of ", n, ".");
  NoGrad off;
  Dims shape(input.sizes());
  shape.back() = num_samples;
  if (input.numel() == 0 || !has_values(input)) return empty(shape, DType::int64, input.device());
  const Tensor p = _checked_probabilities(input);
  if (!replacement) {  // the largest of p / e with exponential e are a sample without replacement; e is -log(u)
    const Tensor negative = div(p, log(inner_uniform(p, generator)));
    if (num_samples == 1) return argmin(negative, -1, true);
    return std::get<1>(topk(negative, num_samples, -1, false, true));
  }
  const Tensor sums = cumsum(p, -1), total = narrow(sums, -1, n - 1, 1);
  const Tensor at = mul(uniform_(empty(shape, DType::float64, input.device()), 0, 1, generator), total);
  // the last category with a probability: rounding must not lead beyond it
  const Tensor last = searchsorted(sums, contiguous(total), false, false);
  return minimum(searchsorted(sums, at, false, true), last);
}

// ---- Poisson ----

Tensor poisson_composite(const Tensor& input, Generator* generator) {
  check_real_floating(input, "poisson");
  return drawn_from(input, _poisson(input.detach(), generator));
}

}  // namespace vesta
