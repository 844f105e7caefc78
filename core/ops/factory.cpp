#include <vesta/core/ops/factory.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/factory.h>

#include <cmath>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_FACTORY)

DType dtype_of_value(Scalar value) {
  if (value.dtype() == DType::bool_ || value.dtype() == DType::int64) return value.dtype();
  return value.is_complex() ? complex_type(default_dtype()) : default_dtype();
}

ArangePlan arange_plan(Scalar start, Scalar end, Scalar step, MaybeDType dtype) {
  bool integers = start.is_integral() && end.is_integral() && step.is_integral();
  DType d = dtype.value_or(integers ? DType::int64 : default_dtype());
  VESTA_CHECK(kReals.has(d) && !start.is_complex() && !end.is_complex() && !step.is_complex(), not_implemented,
              "arange: expected real numbers and a real dtype, got ", d, " (dtype).");
  double a = start.real(), b = end.real(), by = step.real();
  VESTA_CHECK(std::isfinite(a) && std::isfinite(b), runtime, "arange: unsupported range: ", a, " -> ", b, ".");
  VESTA_CHECK(by != 0 && !std::isnan(by), runtime, "arange: step must be nonzero.");
  VESTA_CHECK(by > 0 ? b >= a : b <= a, runtime, "arange: upper bound and lower bound inconsistent with step sign (", a,
              " -> ", b, ", step ", by, ").");
  VESTA_CHECK(!is_integral(d) || step.to<int64_t>("arange") != 0 || follows_torch(), runtime,
              "arange: step must be nonzero as ", d, ", got ", by, ", which becomes 0. Use a floating-point dtype.");
  double count = std::ceil((b - a) / by);
  if (d == DType::int64 && integers) {  // exact beyond 2^53
    __int128 from = start.to<int64_t>("arange"), to = end.to<int64_t>("arange"), s = step.to<int64_t>("arange");
    __int128 n = s > 0 ? (to - from + s - 1) / s : (from - to - s - 1) / -s;
    count = double(n);
    if (n <= INT64_MAX) return {d, int64_t(n)};
  }
  VESTA_CHECK(count <= 0x1p62, runtime, "arange: invalid size, possible overflow? (", a, " -> ", b, ", step ", by,
              ").");
  return {d, int64_t(count)};
}

DType linspace_dtype(Scalar start, Scalar end, int64_t steps, MaybeDType dtype) {
  VESTA_CHECK(steps >= 0, runtime, "linspace: number of steps must be non-negative, got ", steps, ".");
  bool complex = start.is_complex() || end.is_complex();
  DType d = dtype.value_or(complex ? complex_type(default_dtype()) : default_dtype());
  VESTA_CHECK(kNumbers.has(d), not_implemented, "linspace: expected a dtype of numbers, got ", d, " (dtype).");
  VESTA_CHECK(!complex || is_complex(d), runtime, "linspace: expected a complex dtype for complex bounds, got ", d,
              ".");
  for (const Scalar& bound : {start, end}) check_range(bound, d, "linspace");
  return d;
}

namespace factory_ops {
namespace {

Tensor empty(IntList size, MaybeDType dtype, MaybeDevice device) {
  return result_tensor(size, dtype.value_or(default_dtype()), device.value_or(Device()));
}

Tensor full(IntList size, Scalar value, MaybeDType dtype, MaybeDevice device) {
  DType d = dtype ? *dtype : dtype_of_value(value);
  checked_mul(numel_of(size, "full"), itemsize(d), "full");
  Tensor r = result_tensor(size, d, device.value_or(Device()));
  fill_values(r, value, "full");
  return r;
}

Tensor eye(int64_t n, int64_t m, MaybeDType dtype, MaybeDevice device) {
  VESTA_CHECK(n >= 0, runtime, "eye: n must be greater or equal to 0, got ", n, ".");
  VESTA_CHECK(m >= 0, runtime, "eye: m must be greater or equal to 0, got ", m, ".");
  Tensor r = factory_ops::full({n, m}, 0, dtype.value_or(default_dtype()), device);
  int64_t length = std::min(n, m);
  fill_values(alias(r, {{length}}, {{m + 1}}, r.storage_offset(), "eye"), 1, "eye");  // r may be a part of out=
  return r;
}

}  // namespace
}  // namespace factory_ops

void register_factory_ops() {
  ops::empty.set_kernel(&factory_ops::empty);
  ops::full.set_kernel(&factory_ops::full);
  ops::eye_m.set_kernel(&factory_ops::eye);
}

}  // namespace vesta
