// Random ops: checks. No numbers are drawn, and no generator moves on.
#include <vesta/core/ops/random.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/kernel_checks.h>

namespace vesta::meta {
namespace {

const auto kNothing = [](const Tensor&) {};

Tensor uniform_(const Tensor& t, double from, double to, Generator*) {
  check_uniform(t, from, to);
  return fill_at_random(t, "uniform_", kNothing);
}

Tensor normal_(const Tensor& t, double, double std, Generator*) {
  check_normal(t, std);
  return fill_at_random(t, "normal_", kNothing);
}

Tensor truncated_normal_(const Tensor& t, double mean, double std, double a, double b, Generator*) {
  check_truncated_normal(t, mean, std, a, b);
  return fill_at_random(t, "trunc_normal_", kNothing);
}

Tensor poisson(const Tensor& input, Generator*) { return like(input); }

Tensor random_(const Tensor& t, MaybeInt from, MaybeInt to, Generator*) {
  integer_range(t, from, to);
  return fill_at_random(t, "random_", kNothing);
}

Tensor bernoulli_(const Tensor& t, double p, Generator*) {
  check_bernoulli_(t, p);
  return fill_at_random(t, "bernoulli_", kNothing);
}

Tensor bernoulli(const Tensor& p, Generator*) {
  check_bernoulli(p);
  return like(p);
}

TensorPair native_dropout(const Tensor& input, double p, bool) {
  check_native_dropout(input, p);
  if (!input.is_contiguous())
    return {empty_preserving(input, input.dtype(), kMeta), empty_preserving(input, DType::bool_, kMeta)};
  return {like(input), like(input, DType::bool_)};
}

Tensor randperm(int64_t n, Generator*, MaybeDType dtype, MaybeDevice) { return result({n}, check_randperm(n, dtype)); }

}  // namespace

void register_random() {
  ops::uniform_.set_kernel(DeviceType::meta, uniform_);
  ops::normal_.set_kernel(DeviceType::meta, normal_);
  ops::_truncated_normal_.set_kernel(DeviceType::meta, truncated_normal_);
  ops::_poisson.set_kernel(DeviceType::meta, poisson);
  ops::_random_.set_kernel(DeviceType::meta, random_);
  ops::bernoulli_.set_kernel(DeviceType::meta, bernoulli_);
  ops::bernoulli.set_kernel(DeviceType::meta, bernoulli);
  ops::native_dropout.set_kernel(DeviceType::meta, native_dropout);
  ops::randperm.set_kernel(DeviceType::meta, randperm);
}

}  // namespace vesta::meta
