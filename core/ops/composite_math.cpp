// Mathematical functions that are made of other ops: special functions, complex parts, activations of several pieces.
#include <algorithm>
#include <cmath>
#include <limits>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sort.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

/// Checks a sum with a factor of the second operand, and applies the factor to it, in the dtype of the sum if that is
/// complex.
Tensor factored(const PointwiseInfo& info, const Tensor* const* in, Scalar factor) {
  constexpr double kOnes[kMaxParams] = {1};
  if (info.check) info.check(in, kOnes);
  Promotion types;
  for (int i = 0; i < info.inputs; ++i) types.see(*in[i]);
  const Tensor& scaled = *in[1];
  const bool converts = is_complex(types.result()) && !scaled.impl()->wrapped_number;
  return mul(converts ? scaled.to(types.result()) : scaled, wrapped(factor));
}

/// The complex form adds to the operand with the larger real part, whose exponential would overflow.
Tensor logaddexp_composite(const Tensor& input, const Tensor& other, Out out) {
  if (!input.is_complex() && !other.is_complex()) {
    return named_step(ops::_logaddexp(input, other, out), "LogaddexpBackward0");
  }
  const DType d = promote(input.dtype(), other.dtype());
  const Tensor x = input.to(d), y = other.to(d), a = real(x.detach()), b = real(y.detach());
  const Tensor first = ge(a, b), large = where(first, x, y), small = where(first, y, x);
  const Tensor same = logical_and(eq(a, b), isinf(a));  // their difference is 0, not NaN
  const Tensor apart = where(same, wrapped(0.0), sub(small, large));
  return named_step(ops::add(large, log1p(exp(apart)), 1, out), "LogaddexpBackward0");
}

/// The scan of complex numbers, in order: which of the logarithms comes out depends on it.
Tensor logcumsumexp_composite(const Tensor& input, int64_t dim) {
  const int64_t d = wrap_dim(dim, input.dim(), "logcumsumexp");
  if (input.numel() < 2) return clone(input);
  TensorVector sums{narrow(input, d, 0, 1)};
  for (int64_t i = 1; i < input.size(d); ++i) sums.push_back(logaddexp(narrow(input, d, i, 1), sums.back()));
  return cat(sums, d);
}

/// The sum of g_j e^(x_i - y_j) over j >= i, by logarithms: those of the positive and of the negative g apart.
Tensor _logcumsumexp_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  const auto from_the_end = [&](const Tensor& t) { return flip(logcumsumexp(flip(t, dim), dim), dim); };
  if (grad.is_complex()) return conj(exp(add(from_the_end(sub(log(conj(grad)), result)), input)));
  const Tensor none = wrapped(-std::numeric_limits<double>::infinity());
  const auto part = [&](const Tensor& which, const Tensor& size) {
    const Tensor logarithms = where(which, sub(log(where(which, size, wrapped(1.0))), result), none);
    return exp(add(from_the_end(logarithms), input));
  };
  return sub(part(gt(grad, wrapped(0.0)), grad), part(lt(grad, wrapped(0.0)), neg(grad)));
}

// ---- special functions ----

Tensor mvlgamma_composite(const Tensor& input, int64_t p) {
  VESTA_CHECK(p >= 1, runtime, "mvlgamma: p has to be greater than or equal to 1, got ", p, ".");
  VESTA_CHECK(p <= 1 << 20, runtime, "mvlgamma: expected p of at most 2^20, got ", p, " (p).");
  check_real(input, "mvlgamma");
  Tensor r;
  for (int64_t i = 0; i < p; ++i) {
    const Tensor part = lgamma(i == 0 ? input : sub(input, wrapped(0.5 * double(i))));
    r = i == 0 ? part : add(r, part);
  }
  return p == 1 ? r : add(r, wrapped(0.25 * double(p) * double(p - 1) * std::log(std::acos(-1.0))));
}

Tensor nan_to_num_composite(const Tensor& input, MaybeDouble nan, MaybeDouble posinf, MaybeDouble neginf, Out out) {
  if (input.is_complex()) {
    const Tensor parts = view_as_real(input);
    const bool inplace = out.kind == Out::inplace;
    const Tensor made = ops::nan_to_num(parts, nan, posinf, neginf, inplace ? Out{&parts, Out::inplace} : Out{});
    return inplace ? input : write_result(out, view_as_complex(made), "nan_to_num");
  }
  if (!is_float(input.dtype())) {
    if (out.kind != Out::inplace) return write_result(out, clone(input), "nan_to_num");
    check_writable(input, "nan_to_num_");
    input.impl()->bump("nan_to_num_");
    return input;
  }
  const double largest = visit<kFloats>(input.dtype(), []<class T>() -> double {
    if constexpr (std::is_same_v<T, Half>) return 65504;
    else if constexpr (std::is_same_v<T, BFloat16>) return 0x1.fep127;
    else return std::numeric_limits<T>::max();
  });
  return ops::_nan_to_num(input, nan.value_or(0), posinf.value_or(largest), neginf.value_or(-largest), out);
}

Tensor positive_composite(const Tensor& input) {
  VESTA_CHECK(input.dtype() != DType::bool_, not_implemented,
              "positive: The `+` operator, on a bool tensor is not supported.");
  return input;
}

Tensor float_power_composite(const Tensor& input, const Tensor& exponent, Out out) {
  const DType wide = input.is_complex() || exponent.is_complex() ? DType::complex128 : DType::float64;
  broadcast_shapes(input.sizes(), exponent.sizes(), "float_power");
  VESTA_CHECK(out.kind == Out::fresh || out.tensor->dtype() == wide, type, "float_power: expected ",
              out.kind == Out::inplace ? "self" : "out", " of ", wide, ", the dtype of its result, got ",
              out.tensor->dtype(), ".");
  return ops::pow(input.to(wide), exponent.to(wide), out);
}

Tensor ldexp_composite(const Tensor& input, const Tensor& other, Out out) {
  broadcast_shapes(input.sizes(), other.sizes(), "ldexp");
  return ops::mul(input, exp2(is_differentiable(other.dtype()) ? other : other.to(default_dtype())), out);
}

// ---- complex numbers ----

Tensor angle_composite(const Tensor& input) {
  if (!input.is_complex()) return _angle(input);
  return named_step(atan2(imag(input), real(input)), "AngleBackward0");
}

Tensor real_composite(const Tensor& input) { return input.is_complex() ? select(view_as_real(input), -1, 0) : input; }

Tensor imag_composite(const Tensor& input) {
  VESTA_CHECK(input.is_complex(), type, "imag: is not implemented for tensors with non-complex dtypes, got ",
              input.dtype(), ".");
  return select(view_as_real(input), -1, 1);
}

Tensor isreal_composite(const Tensor& input) {
  return input.is_complex() ? eq(imag(input), 0) : ones_like(input, DType::bool_);
}

// ---- membership ----

Tensor isin_composite(const Tensor& elements, const Tensor& test_elements, bool, bool invert) {
  for (const Tensor* t : {&elements, &test_elements}) {
    VESTA_CHECK(!t->is_complex() && t->dtype() != DType::bool_, not_implemented,
                "isin: expected a real dtype that is not bool, got ", t->dtype(), ".");
  }
  NoGrad off;
  const Tensor tests = flatten(test_elements);
  Tensor found;
  if (tests.numel() == 0 || elements.numel() == 0) {
    found = zeros(elements.sizes(), DType::bool_, elements.device());
  } else if (double(tests.numel()) < 10 * std::pow(double(elements.numel()), 0.145)) {
    found = any(eq(unsqueeze(elements, -1), tests), MaybeDims(-1));
  } else {  // sorted together with their origin: an element is found if a test of its value stands in front of it
    const DType joint = promote(elements.dtype(), tests.dtype());
    const Tensor all = cat({tests.to(joint), flatten(elements).to(joint)});
    const auto [values, order] = sort(all, MaybeBool(true), 0, false);
    const int64_t n = all.numel(), count = tests.numel();
    const Tensor places = arange(0, n, 1, DType::int64, all.device());
    const Tensor is_test = lt(order, count);
    // the first index of each run of equal values, and whether a test stands there (tests come first, as sort is
    // stable)
    const Tensor fresh =
        cat({ones(1, DType::bool_, all.device()), ne(slice(values, 0, 1, {}, 1), slice(values, 0, 0, n - 1, 1))});
    const Tensor start = std::get<0>(cummax(where(fresh, places, wrapped(int64_t(0))), 0));
    const Tensor hit = index_select(is_test, 0, start);
    found = zeros(n, DType::bool_, all.device());
    found = index_put(found, {order}, hit);
    found = reshape(slice(found, 0, count, {}, 1), elements.sizes());
  }
  return invert ? logical_not(found) : found;
}

// ---- activations ----

Tensor prelu_composite(const Tensor& input, const Tensor& weight) {
  VESTA_CHECK(input.dtype() == weight.dtype(), runtime, "prelu: Type promoting not supported. Got ", input.dtype(),
              " (input) and ", weight.dtype(), " (weight).");
  VESTA_CHECK(weight.dim() <= 1, runtime,
              "prelu: expected `weight` to be a scalar or 1D tensor, but got: ndim = ", weight.dim(), ".");
  if (weight.dim() == 0) return _prelu(input, weight);
  const int64_t count = weight.numel();
  if (count != 1) {
    VESTA_CHECK(input.dim() > 0, runtime, "prelu: Not allow zero-dim input tensor.");
    const int64_t channels = input.dim() > 1 ? input.size(1) : 1;
    VESTA_CHECK(channels == count, runtime,
                "prelu: Mismatch of parameter numbers and input channel size. Found parameter numbers = ", count,
                " and channel size = ", channels, ".");
  }
  if (input.dim() == 0) return _prelu(input, select(weight, 0, 0));
  Dims shape(size_t(input.dim()), 1);
  shape[input.dim() > 1 ? 1 : 0] = count;
  return _prelu(input, reshape(weight, shape));
}

Tensor glu_composite(const Tensor& input, int64_t dim) {
  check_floating(input, "glu");
  VESTA_CHECK(input.dim() > 0, runtime, "glu: does not support 0-dimensional tensors.");
  const int64_t d = wrap_dim(dim, input.dim(), "glu"), n = input.size(d);
  VESTA_CHECK(n % 2 == 0, runtime, "glu: Halving dimension must be even, but dimension ", d, " is size ", n, ".");
  return _gated(slice(input, d, 0, n / 2, 1), slice(input, d, n / 2, n, 1));
}

Tensor softsign_composite(const Tensor& input) { return div(input, add(abs(input), 1)); }

Tensor tanhshrink_composite(const Tensor& input) { return sub(input, tanh(input)); }

Tensor rrelu_composite(const Tensor& input, double lower, double upper, bool training, Generator* generator) {
  VESTA_CHECK(lower <= upper, runtime, "rrelu: Lower bound should be less than or equal to the upper bound, got ",
              lower, " and ", upper, ".");
  check_floating(input, "rrelu");
  if (!training) return leaky_relu(input, (lower + upper) / 2);
  Tensor slope;
  {
    NoGrad off;
    slope = uniform_(empty_like(input), lower, upper, generator);
  }
  return contiguous(where(gt(input, 0), input, mul(input, slope)));  // as PyTorch has it, whatever input is
}

Tensor rrelu__composite(const Tensor& input, double lower, double upper, bool training, Generator* generator) {
  const Tensor before = layer_state.grad_enabled && input.requires_grad() ? clone(input) : input;
  return copy_(input, rrelu(before, lower, upper, training, generator));
}

}  // namespace vesta
