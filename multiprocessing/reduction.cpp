#include <vesta/multiprocessing/reduction.h>

#include <cmath>

#include <vesta/core/ops/math.h>

namespace vesta {
namespace {

template <class T>
T times(T a, T b) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {  // wraps; never undefined
    using U = std::make_unsigned_t<T>;
    return T(U(uint64_t(U(a)) * uint64_t(U(b))));
  } else {
    return T(a * b);
  }
}

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_integral_v<T> && std::is_signed_v<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(U(a) + U(b)));
  } else {
    return T(a + b);
  }
}

/// The min and max of the library's own ops: a NaN wins.
template <class T>
T smaller(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? a : (b < a || b != b ? b : a);
  } else {
    return b < a ? b : a;
  }
}
template <class T>
T larger(T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    return a != a ? a : (b > a || b != b ? b : a);
  } else {
    return b > a ? b : a;
  }
}

template <class T, class F>
void loop(void* to, const void* a, const void* b, size_t n, F f) {
  T* t = static_cast<T*>(to);
  const T *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
  using C = compute_t<T>;
  for (size_t i = 0; i < n; ++i) t[i] = T(f(C(x[i]), C(y[i])));
}

template <class T>
Reduction of(void (*f)(void*, const void*, const void*, size_t)) {
  return {f, sizeof(T)};
}

/// Makes the function of one operator: `f` is a stateless lambda over the compute type.
template <class T, class F>
Reduction make(F) {
  return of<T>([](void* to, const void* a, const void* b, size_t n) { loop<T>(to, a, b, n, F{}); });
}

template <class T>
Reduction arithmetic(ReduceOp::Kind op) {
  using C = compute_t<T>;
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::avg:
    case ReduceOp::premul_sum: return make<T>([](C a, C b) { return plus(a, b); });
    case ReduceOp::product: return make<T>([](C a, C b) { return times(a, b); });
    default: break;
  }
  if constexpr (!is_complex(dtype_of<T>)) {
    if (op == ReduceOp::min) return make<T>([](C a, C b) { return smaller(a, b); });
    if (op == ReduceOp::max) return make<T>([](C a, C b) { return larger(a, b); });
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == ReduceOp::band) return make<T>([](C a, C b) { return C(a & b); });
    if (op == ReduceOp::bor) return make<T>([](C a, C b) { return C(a | b); });
    if (op == ReduceOp::bxor) return make<T>([](C a, C b) { return C(a ^ b); });
  }
  return {};
}

Reduction logical(ReduceOp::Kind op) {
  switch (op) {
    case ReduceOp::sum:
    case ReduceOp::max:
    case ReduceOp::bor: return make<bool>([](bool a, bool b) { return a || b; });
    case ReduceOp::product:
    case ReduceOp::min:
    case ReduceOp::band: return make<bool>([](bool a, bool b) { return a && b; });
    case ReduceOp::bxor: return make<bool>([](bool a, bool b) { return a != b; });
    default: return {};
  }
}

}  // namespace

Reduction reduction(ReduceOp op, DType dtype) {
  const bool scales = op.kind == ReduceOp::avg || op.kind == ReduceOp::premul_sum;
  Reduction r;
  if (!scales || is_float(dtype) || is_complex(dtype)) {
    r = visit(dtype, [&]<class T>() {
      if constexpr (std::is_same_v<T, bool>) return logical(op.kind);
      else return arithmetic<T>(op.kind);
    });
  }
  VESTA_CHECK(r.combine, type, "ReduceOp.", name(op), ": expected another dtype, got ", dtype,
              ". AVG and PREMUL_SUM are for floating-point and complex tensors, MIN and MAX for all but complex, ",
              "BAND, BOR and BXOR for integers and bool.");
  return r;
}

namespace {

/// Applies `f(value, number)` to floating-point and complex values in place.
template <class F>
void with_number(void* data, size_t n, DType dtype, double number, F f) {
  visit(dtype, [&]<class T>() {
    if constexpr (is_differentiable(dtype_of<T>)) {
      using C = compute_t<T>;
      using R = decltype(std::abs(C()));
      T* t = static_cast<T*>(data);
      for (size_t i = 0; i < n; ++i) t[i] = T(f(C(t[i]), R(number)));
    } else {
      fail(Cause::type, "ReduceOp: expected floating-point values to scale, got ", dtype, ".");
    }
  });
}

}  // namespace

void multiply(void* data, size_t n, DType dtype, double factor) {
  with_number(data, n, dtype, factor, [](auto v, auto number) { return v * number; });
}

void divide(void* data, size_t n, DType dtype, double divisor) {
  // As the division of tensors: a complex quotient by a real number is Smith's, too.
  with_number(data, n, dtype, divisor, [](auto v, auto number) { return math::quotient(v, decltype(v)(number)); });
}

}  // namespace vesta
