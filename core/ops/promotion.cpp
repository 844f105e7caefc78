#include <vesta/core/ops/promotion.h>

#include <cmath>
#include <limits>

namespace vesta {

int Promotion::combine(int high, int low) {
  if (high < 0) return low;
  if (low < 0) return high;
  DType h = DType(high), l = DType(low);
  if (is_complex(h)) return high;
  if (is_float(h)) return is_complex(l) ? int(complex_type(h)) : high;
  if (is_bool(h) || is_differentiable(l)) return int(promote(h, l));
  return high;
}

DType Promotion::result() const { return DType(combine(dims_, combine(zeros_, numbers_))); }

DType result_type(std::span<const Tensor> operands) {
  Promotion p;
  for (const Tensor& t : operands) p.see(t);
  VESTA_CHECK(p.any(), value, "result_type: expected at least one operand, got none.");
  return p.result();
}

void check_factor(DType d, double factor, const char* op, const char* argument) {
  if (is_bool(d)) return;
  VESTA_CHECK(factor == std::trunc(factor) && std::fabs(factor) <= 0x1p53, runtime, op,
              ": expected an integer of at most 2**53 for operands of ", d, ", got ", factor, " (", argument,
              "). Convert the operands to a floating-point dtype first.");
  visit<kIntegers>(d, [&]<class T>() {
    constexpr double high = double(std::numeric_limits<T>::max());
    constexpr double low = std::is_signed_v<T> ? double(std::numeric_limits<T>::lowest()) : -high;
    VESTA_CHECK(factor >= low && factor <= high, runtime, op, ": expected a number in the range of ", d, ", got ",
                factor, " (", argument, ").");
  });
}

void check_range(Scalar number, DType d, const char* op) {
  if (!is_differentiable(d)) return;
  visit<kFloats>(is_complex(d) ? real_type(d) : d, [&]<class T>() {
    const double most = double(static_cast<compute_t<T>>(std::numeric_limits<T>::max()));
    for (const double part : {number.real(), number.imag()}) {
      VESTA_CHECK(!std::isfinite(part) || std::abs(part) <= most, runtime, op, ": value ", part,
                  " cannot be converted to type ", d, " without overflow.");
    }
  });
}

void check_held(const Tensor& value, DType d, const char* op) {
  if (value.dtype() == d || value.device().type() != DeviceType::cpu) return;
  const Scalar number = value.item();
  check_range(number, d, op);
  if (!is_integral(d)) return;
  visit<kIntegers>(d, [&]<class T>() {
    const bool wraps = std::is_unsigned_v<T> && number.real() < 0 && -number.real() <= double(T(-1));
    if (!wraps) (void)number.to<T>(op);
  });
}

Scalar as_element(Scalar number, DType d) {
  if (!is_float(d) || number.is_complex()) return number;
  return visit<kFloats>(d, [&]<class T>() { return Scalar(double(compute_t<T>(number.to<T>("fill_")))); });
}

}  // namespace vesta
