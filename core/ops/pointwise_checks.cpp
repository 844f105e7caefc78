// Checks of pointwise ops that look at values: integers have no infinity to divide into.
#include <vesta/core/backend.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/core/ops/pointwise/numbers.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/core/ops/pointwise/special.h>
#include <vesta/core/ops/pointwise/trigonometric.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/reduce.h>

#include <cmath>
#include <limits>
#include <utility>

namespace vesta::def {
inline namespace VESTA_ISA_NS {

void check_integer_divisor(const Tensor* const* in) {
  static constexpr char kMessage[] =
      "division: expected a divisor without zeros for integers, got one with a zero (other). ZeroDivisionError.";
  const Tensor& divisor = *in[1];
  if (is_differentiable(divisor.dtype()) || is_differentiable(in[0]->dtype()) || divisor.numel() == 0) return;
  if (divisor.impl()->wrapped_number) {
    VESTA_CHECK(divisor.item().integer() != 0, runtime, kMessage);
    return;
  }
  NoGrad off;
  const Tensor zero = any(eq(divisor, 0));
  if (divisor.device().type() == DeviceType::cpu) VESTA_CHECK(!zero.item<bool>(), runtime, kMessage);
  else backend(divisor.device().type()).raise_later(static_cast<const bool*>(zero.data_ptr()), kMessage, zero.device());
}

void check_integer_alpha(const Tensor* const* in, double alpha) {
  if (alpha == 1) return;
  Promotion types;
  types.see(*in[0]);
  types.see(*in[1]);
  if (!is_differentiable(types.result())) check_factor(types.result(), alpha, "add, sub", "alpha");
}

void check_difference(const Tensor* const* in, double alpha) {
  VESTA_CHECK(in[0]->dtype() != DType::bool_ && in[1]->dtype() != DType::bool_, type,
              "sub: Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a ",
              "mask, use the `~` or `logical_not()` operator instead.");
  check_integer_alpha(in, alpha);
}

void check_heaviside(const Tensor* const* in) {
  VESTA_CHECK(in[0]->dtype() == in[1]->dtype(), type, "heaviside: is not yet implemented for tensors with different ",
              "dtypes, got ", in[0]->dtype(), " (input) and ", in[1]->dtype(), " (values).");
}

void check_lerp(const Tensor* const* in) {
  constexpr const char* names[] = {"input", "end", "weight"};
  const DType d = in[0]->dtype();
  VESTA_CHECK(is_differentiable(d), type, "lerp: expected a float or complex dtype, got ", d, " (input).");
  for (int i = 1; i < 3; ++i) {
    const bool is_number = i == 2 && in[i]->dim() == 0;
    VESTA_CHECK(in[i]->dtype() == d || is_number, type, "lerp: expected dtype ", d, " for `", names[i],
                "` but got dtype ", in[i]->dtype(), ".");
  }
  if (!in[2]->impl()->wrapped_number) return;
  const Scalar weight = in[2]->item();
  VESTA_CHECK(is_complex(d) || !weight.is_complex(), runtime, "lerp: expected a real number for operands of ", d,
              ", got a complex one (weight).");
  check_range(weight, compute_type(d), "lerp");
}

void check_integer_exponent(const Tensor* const* in) {
  const Tensor& exponent = *in[1];
  if (!exponent.impl()->wrapped_number || !is_integral(in[0]->dtype()) || exponent.dtype() != DType::int64) return;
  VESTA_CHECK(exponent.item<int64_t>() >= 0, runtime,
              "pow: Integers to negative integer powers are not allowed. Convert the base to float first.");
  visit<kIntegers>(in[0]->dtype(), [&]<class T>() { (void)exponent.item().to<T>("pow"); });  // never wraps around
}

void check_integer_value(const Tensor* const* in, double value) {
  if (value == 1) return;
  Promotion types;
  for (int i = 0; i < 3; ++i) types.see(*in[i]);
  if (!is_differentiable(types.result())) check_factor(types.result(), std::trunc(value), "addcmul", "value");
}

void check_quotient(const Tensor* const* in, double) {
  VESTA_CHECK(is_differentiable(in[1]->dtype()) || is_differentiable(in[2]->dtype()), runtime,
              "addcdiv: expected a float or complex dtype of tensor1 or tensor2, got ", in[1]->dtype(), " and ",
              in[2]->dtype(), ". Integer division with addcdiv is no longer supported. Use input + value * tensor1 / ",
              "tensor2.");
}

void check_celu_alpha(const Tensor* const*, double alpha) {
  VESTA_CHECK(alpha != 0, runtime, "celu: expected an alpha that is not 0, got 0 (alpha). ZeroDivisionError.");
}

void check_integer_bounds(const Tensor* const* in, double min_val, double max_val) {
  const DType d = in[0]->dtype();
  if (!is_integral(d)) return;
  const int64_t low = Scalar(min_val).to<int64_t>("hardtanh"), high = Scalar(max_val).to<int64_t>("hardtanh");
  visit<kIntegers>(d, [&]<class T>() {
    VESTA_CHECK(std::cmp_less_equal(low, std::numeric_limits<T>::max()), runtime, "hardtanh: min_val ", low,
                " is outside the representable range of ", d, ".");
    VESTA_CHECK(std::cmp_greater_equal(high, std::numeric_limits<T>::min()), runtime, "hardtanh: max_val ", high,
                " is outside the representable range of ", d, ".");
  });
}

void check_integer_threshold(const Tensor* const* in, double threshold, double value) {
  if (!is_integral(in[0]->dtype())) return;
  visit<kIntegers>(in[0]->dtype(), [&]<class T>() {
    for (double v : {threshold, value}) (void)Scalar(v).to<T>("threshold");
  });
}

void check_softshrink_lambd(const Tensor* const* in, double lambd) {
  const DType d = in[0]->dtype();
  if (!is_float(d)) return;  // is refused
  visit<kFloats>(d, [&]<class T>() {
    const double most = double(static_cast<compute_t<T>>(std::numeric_limits<T>::max()));
    VESTA_CHECK(lambd >= 0 && lambd <= most, runtime, "softshrink: lambda must be in range [0, ", most,
                "] for operands of ", d, ", but found to be ", lambd, ".");
  });
}

void check_round_decimals(const Tensor* const* in, int64_t decimals) {
  const DType d = in[0]->dtype();
  VESTA_CHECK(decimals == 0 || is_float(d), type, "round: expected a floating-point dtype with decimals, got ", d, ".");
}

void check_polygamma_order(const Tensor* const*, int64_t n) {
  VESTA_CHECK(n >= 0, runtime, "polygamma: expected n >= 0, got ", n, " (n).");
  VESTA_CHECK(n < (1 << 30), runtime, "polygamma: expected n below 2^30, got ", n, " (n).");
}

void check_choices(const Tensor* const* in) {
  const auto is_fraction = [](const Tensor& t) { return t.impl()->wrapped_number && is_differentiable(t.dtype()); };
  if (!is_fraction(*in[1]) && !is_fraction(*in[2])) return;
  Promotion types;
  types.see(*in[1]);
  types.see(*in[2]);
  const DType d = types.result();
  if (compute_type(d) != d) return;  // 16-bit elements round it, to infinity if need be
  for (int i = 1; i < 3; ++i) {
    if (is_fraction(*in[i])) check_range(in[i]->item(), d, "where");
  }
}

void check_parts(const Tensor* const* in) {
  VESTA_CHECK(in[0]->dtype() == in[1]->dtype(), type,
              "complex, polar: expected two tensors of one dtype, float32 or float64, got ", in[0]->dtype(), " and ",
              in[1]->dtype(), ". Convert one with .to().");
}

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
