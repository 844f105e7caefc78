// Random ops on the device: checks, generators and the numbers are those of the CPU; those of the fills that take a
// logarithm, an exponential or a tangent, within its rounding.
#include <vesta/core/ops/distribution_checks.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/random.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <vesta/core/backend.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/random.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/sort_keys.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Starts a launch over contiguous `out` with the next stream of the generator.
RandomLaunch launch_of(const char* op, const Tensor& out, Generator* generator) {
  const RandomStream s = next_stream(generator, out.device(), op);
  RandomLaunch l;
  l.name = op;
  l.dtype = real_type(out.dtype());
  l.n = out.is_complex() ? 2 * out.numel() : out.numel();
  l.stream = stream_of(out);
  l.seed = s.seed, l.offset = s.offset;
  l.out = out.data_ptr();
  l.fault = fault_of(out.device().index());
  return l;
}

Tensor uniform_(const Tensor& t, double from, double to, Generator* generator) {
  check_uniform(t, from, to);
  DeviceGuard guard(t.device().index());
  return fill_at_random(t, "uniform_", [&](const Tensor& c) {
    RandomLaunch l = launch_of("uniform_", c, generator);
    l.a = from, l.b = to;
    l.below = from == to ? from : largest_below(l.dtype, to);
    run_uniform(l);
  });
}

Tensor normal_(const Tensor& t, double mean, double std, Generator* generator) {
  check_normal(t, std);
  DeviceGuard guard(t.device().index());
  return fill_at_random(t, "normal_", [&](const Tensor& c) {
    RandomLaunch l = launch_of("normal_", c, generator);
    l.pairs = c.is_complex();
    l.a = mean, l.b = l.pairs ? std * std::sqrt(0.5) : std;
    run_normal(l);
  });
}

Tensor random_(const Tensor& t, MaybeInt from, MaybeInt to, Generator* generator) {
  const IntegerRange range = integer_range(t, from, to);
  DeviceGuard guard(t.device().index());
  return fill_at_random(t, "random_", [&](const Tensor& c) {
    RandomLaunch l = launch_of("random_", c, generator);
    l.from = range.from, l.range = range.range;
    run_integers(l);
  });
}

Tensor bernoulli_(const Tensor& t, double p, Generator* generator) {
  check_bernoulli_(t, p);
  DeviceGuard guard(t.device().index());
  return fill_at_random(t, "bernoulli_", [&](const Tensor& c) {
    RandomLaunch l = launch_of("bernoulli_", c, generator);
    if (p == 0) return fill_values(c, 0, "bernoulli_");  // the kernel takes positive probabilities
    l.a = p;
    run_bernoulli(l);
  });
}

/// Fills a tensor with numbers of a distribution that has the parameters a and b.
Tensor drawn(const Tensor& t, const char* op, double a, double b, Generator* generator,
             void (*run)(const RandomLaunch&)) {
  DeviceGuard guard(t.device().index());
  return fill_at_random(t, op, [&](const Tensor& c) {
    RandomLaunch l = launch_of(op, c, generator);
    l.a = a, l.b = b;
    run(l);
  });
}

Tensor exponential_(const Tensor& t, double lambd, Generator* generator) {
  check_exponential_(t, lambd);
  return drawn(t, "exponential_", lambd, 0, generator, run_exponential);
}
Tensor geometric_(const Tensor& t, double p, Generator* generator) {
  check_geometric_(t, p);
  return drawn(t, "geometric_", std::log1p(-p), 0, generator, run_geometric);
}
Tensor cauchy_(const Tensor& t, double median, double sigma, Generator* generator) {
  check_cauchy_(t, sigma);
  return drawn(t, "cauchy_", median, sigma, generator, run_cauchy);
}
Tensor log_normal_(const Tensor& t, double mean, double std, Generator* generator) {
  check_log_normal_(t, std);
  return drawn(t, "log_normal_", mean, std, generator, run_log_normal);
}

Tensor truncated_normal_(const Tensor& t, double mean, double std, double a, double b, Generator* generator) {
  check_truncated_normal(t, mean, std, a, b);
  DeviceGuard guard(t.device().index());
  return fill_at_random(t, "trunc_normal_", [&](const Tensor& c) {
    run_truncated_normal(launch_of("trunc_normal_", c, generator), TruncatedNormal(mean, std, a, b));
  });
}

Tensor contiguous_copy(const Tensor& t) {
  if (t.is_contiguous()) return t;
  Tensor r = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_values(r, t);
  return r;
}

Tensor bernoulli(const Tensor& p, Generator* generator) {
  check_bernoulli(p);
  DeviceGuard guard(p.device().index());
  Tensor in = contiguous_copy(p), out = empty_tensor(p.sizes(), p.dtype(), p.device());
  RandomLaunch l = launch_of("bernoulli", out, generator);
  l.in = in.data_ptr();
  if (l.n) run_bernoulli_of(l);
  return out;
}

Tensor poisson(const Tensor& input, Generator* generator) {
  DeviceGuard guard(input.device().index());
  const Tensor in = contiguous_copy(input);
  Tensor out = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (input.numel() == 0) return out;
  RandomLaunch l = launch_of("poisson", out, generator);
  l.in = in.data_ptr();
  run_poisson(l, kNotRates);
  return out;
}

TensorPair dropout_kernel(const Tensor& input, double p, bool train) {
  check_native_dropout(input, p);
  if (input.is_complex()) return ops::native_dropout.body()(input, p, train);
  DeviceGuard guard(input.device().index());
  if (!input.is_contiguous()) {  // draws go by the number of an element, whatever the layout
    const auto [values, kept] = dropout_kernel(contiguous_copy(input), p, train);
    Tensor out = empty_preserving(input, input.dtype(), input.device());
    Tensor mask = empty_preserving(input, DType::bool_, input.device());
    copy_values(out, values);
    copy_values(mask, kept);
    return {out, mask};
  }
  Tensor out = empty_tensor(input.sizes(), input.dtype(), input.device());
  Tensor mask = empty_tensor(input.sizes(), DType::bool_, input.device());
  if (!train) {
    copy_values(out, input);
    fill_values(mask, true, "native_dropout");
    return {out, mask};
  }
  RandomLaunch l = launch_of("native_dropout", out, nullptr);
  if (p == 1) {  // the kernel takes positive probabilities
    fill_values(out, 0, "native_dropout");
    fill_values(mask, false, "native_dropout");
    return {out, mask};
  }
  Tensor in = contiguous_copy(input);
  l.in = in.data_ptr(), l.mask = static_cast<bool*>(mask.data_ptr());
  l.a = 1 - p, l.b = 1 / (1 - p);
  if (l.n) run_dropout(l);
  return {out, mask};
}

Tensor dropout_backward_kernel(const Tensor& grad, const Tensor& mask, double scale) {
  const bool fits = is_float(grad.dtype()) && is_bool(mask.dtype()) && std::ranges::equal(grad.sizes(), mask.sizes());
  if (!fits || !mask.is_contiguous()) return ops::native_dropout_backward.body()(grad, mask, scale);
  DeviceGuard guard(grad.device().index());
  const Tensor g = contiguous_copy(grad);
  Tensor out = empty_tensor(grad.sizes(), grad.dtype(), grad.device());
  RandomLaunch l;
  l.name = "native_dropout_backward", l.dtype = grad.dtype(), l.stream = stream_of(grad), l.n = grad.numel();
  l.in = g.data_ptr(), l.out = out.data_ptr(), l.mask = static_cast<bool*>(mask.data_ptr()), l.b = scale;
  if (l.n) run_dropout_gradient(l);
  return out;
}

Tensor checked_probabilities(const Tensor& input) {
  const OperandDevice device(input);
  const Tensor in = contiguous_values(input);
  Tensor out = empty_tensor(in.sizes(), DType::float64, in.device());
  if (out.numel() == 0) return out;
  WeightsLaunch l;
  l.dtype = in.dtype(), l.stream = device.stream(), l.n = in.size(-1), l.rows = in.numel() / l.n;
  l.in = in.data_ptr(), l.out = out.data_ptr<double>();
  l.not_weights = kNotProbabilities, l.none = kNoProbability;
  l.fault = fault_of(device.index());
  run_checked_weights(l);
  return out;
}

/// The numbers below n in the order of 64 random bits each. Only the highest bits are sorted, as many as leave few of
/// them equal; a last kernel looks at the others there.
Tensor randperm(int64_t n, Generator* generator, MaybeDType dtype, MaybeDevice device) {
  const DType d = check_randperm(n, dtype);
  const Device on = resolved(*device);
  DeviceGuard guard(on.index());
  const bool wide = n >= int64_t(1) << 31;
  Tensor order = empty_tensor({{n}}, DType::int64, on);
  RandomLaunch l = launch_of("randperm", order, generator);
  if (n == 0) return empty_tensor({{0}}, d, on);
  Keys keys(n, wide ? 64 : std::min(32, int(std::bit_width(uint64_t(n))) + 8), wide, on);
  RandomLaunch drawn = l;
  drawn.out = keys.input();
  if (wide) run_random_bits(drawn);
  else run_random_keys(drawn, keys.bits());
  keys.sort();
  if (wide) order = keys.order_tensor();
  else run_permutation(l, static_cast<const uint32_t*>(keys.keys()), static_cast<const uint32_t*>(keys.order()));
  if (d == DType::int64) return order;
  Tensor r = empty_tensor({{n}}, d, on);
  copy_values(r, order);
  return r;
}

}  // namespace

void register_random() {
  ops::uniform_.set_kernel(DeviceType::cuda, &uniform_);
  ops::normal_.set_kernel(DeviceType::cuda, &normal_);
  ops::_truncated_normal_.set_kernel(DeviceType::cuda, &truncated_normal_);
  ops::_poisson.set_kernel(DeviceType::cuda, &poisson);
  ops::_random_.set_kernel(DeviceType::cuda, &random_);
  ops::bernoulli_.set_kernel(DeviceType::cuda, &bernoulli_);
  ops::exponential_.set_kernel(DeviceType::cuda, &exponential_);
  ops::geometric_.set_kernel(DeviceType::cuda, &geometric_);
  ops::cauchy_.set_kernel(DeviceType::cuda, &cauchy_);
  ops::log_normal_.set_kernel(DeviceType::cuda, &log_normal_);
  ops::bernoulli.set_kernel(DeviceType::cuda, &bernoulli);
  ops::native_dropout.set_kernel(DeviceType::cuda, &dropout_kernel);
  ops::native_dropout_backward.set_kernel(DeviceType::cuda, &dropout_backward_kernel);
  ops::_checked_probabilities.set_kernel(DeviceType::cuda, &checked_probabilities);
  ops::randperm.set_kernel(DeviceType::cuda, &randperm);
}

}  // namespace vesta::cuda
