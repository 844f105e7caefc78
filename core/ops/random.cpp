#include <vesta/core/ops/random.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/random.h>

#include <cmath>
#include <limits>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_RANDOM)

void check_uniform(const Tensor& t, double from, double to) {
  VESTA_CHECK(is_differentiable(t.dtype()), not_implemented, "uniform_: expected a floating-point dtype, got ",
              t.dtype(), ".");
  VESTA_CHECK(from <= to, runtime, "uniform_: expects to return a [from, to) range, but found from=", from,
              " > to=", to, ".");
  double limit = visit<kFloats>(real_type(t.dtype()), []<class T>() { return double(std::numeric_limits<T>::max()); });
  VESTA_CHECK(from >= -limit && to <= limit, runtime, "uniform_: from and to must lie in the range of ", t.dtype(),
              ", got ", from, " and ", to, ".");
  VESTA_CHECK(to - from <= limit, runtime, "uniform_: expects to - from <= ", limit, " (the largest ", t.dtype(),
              "), got ", to, " - ", from, ".");
}

void check_normal(const Tensor& t, double std) {
  VESTA_CHECK(is_differentiable(t.dtype()), not_implemented, "normal_: expected a floating-point dtype, got ",
              t.dtype(), ".");
  VESTA_CHECK(std >= 0, runtime, "normal_: expects std >= 0.0, but found std ", std, ".");
}
void check_truncated_normal(const Tensor& t, double mean, double std, double a, double b) {
  constexpr const char* op = "trunc_normal_";
  check_normal(t, std);
  VESTA_CHECK(is_float(t.dtype()), type, op, ": expected a floating-point tensor, got ", t.dtype(), ".");
  VESTA_CHECK(a < b, value, op, ": expected a < b, got ", a, " and ", b, " (a, b). Swap them.");
  VESTA_CHECK(std::isfinite(mean) && std > 0 && std::isfinite(std), value, op,
              ": expected a finite mean and std > 0, got ", mean, " and ", std, " (mean, std).");
}

void check_probability(double p, const char* op) {
  VESTA_CHECK(p >= 0 && p <= 1, value, op, ": expected a probability between 0 and 1, got ", p, " (p).");
}

IntegerRange integer_range(const Tensor& t, MaybeInt from, MaybeInt to) {
  VESTA_CHECK(!is_complex(t.dtype()), not_implemented, "random_: expected a real dtype, got ", t.dtype(), ".");
  // The integers that a dtype represents exactly: [low, high], high at most 2^63 - 1.
  int64_t low = 0, high = 1;
  visit<kReals | kBool>(t.dtype(), [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_integral_v<T>) {
      low = int64_t(+Limits::min()), high = int64_t(Limits::max());
    } else {
      high = int64_t(1) << Limits::digits;
      low = -high;
    }
  });
  if (!from && !to) return {0, t.dtype() == DType::int64 ? uint64_t(1) << 63 : uint64_t(high) + 1};
  if (!from) from = 0;
  if (!to) {  // up to the largest number of the dtype
    VESTA_CHECK(*from >= low && *from <= high, value, "random_: from = ", *from, " is out of bounds for ", t.dtype(),
                ".");
    return {*from, uint64_t(high) - uint64_t(*from) + 1};
  }
  VESTA_CHECK(*from < *to, value, "random_: expects 'from' to be less than 'to', but got from=", *from, " >= to=", *to,
              ".");
  VESTA_CHECK(*from >= low && *from <= high, value, "random_: from = ", *from, " is out of bounds for ", t.dtype(),
              ".");
  VESTA_CHECK(*to - 1 <= high, value, "random_: to - 1 = ", *to - 1, " is out of bounds for ", t.dtype(), ".");
  return {*from, uint64_t(*to) - uint64_t(*from)};
}

double largest_below(DType dtype, double to) {
  return visit<kFloats>(dtype, [&]<class T>() {
    if constexpr (sizeof(T) >= 4) {
      return double(std::nextafter(T(to), -std::numeric_limits<T>::infinity()));
    } else {
      T v(static_cast<float>(to));
      if (float(v) == 0) return -double(float(std::numeric_limits<T>::denorm_min()));
      return double(float(T::from_bits(uint16_t(float(v) > 0 ? v.bits - 1 : v.bits + 1))));
    }
  });
}

DType check_randperm(int64_t n, MaybeDType dtype) {
  VESTA_CHECK(n >= 0, runtime, "randperm: n must be non-negative, got ", n, ".");
  DType d = dtype.value_or(DType::int64);
  VESTA_CHECK(kReals.has(d), not_implemented, "randperm: expected a real dtype, got ", d, " (dtype).");
  visit<kReals>(d, [&]<class T>() {
    using Limits = std::numeric_limits<T>;
    int64_t most = std::is_integral_v<T> ? int64_t(Limits::max()) : (int64_t(1) << Limits::digits);
    VESTA_CHECK(n - 1 <= most, runtime, "randperm: n is too large for result tensor type ", d, ", got ", n, ".");
  });
  return d;
}

}  // namespace vesta
