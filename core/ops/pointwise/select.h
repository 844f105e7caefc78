// Choosing between values: where, and the clamps. A value that lies on its bound gets no gradient, as in PyTorch where
// the bound is a number; bounds that are tensors share it: in ClampByTensors, and one of them in maximum or minimum
// (core/ops/composite.cpp).
#pragma once
#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::def {
inline namespace VESTA_ISA_NS {
using math::lit;

struct ClampMin {
  static constexpr auto doc = "_clamp_min(input, min): max(x, min), elementwise with broadcasting; NaN stays NaN.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::maximum(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) { return math::select(a > b, g, lit<T>(0)); }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return math::select(a <= b, g, lit<T>(0)); }
};

struct ClampMax {
  static constexpr auto doc = "_clamp_max(input, max): min(x, max), elementwise with broadcasting; NaN stays NaN.";
  static constexpr auto accepts = kReals | kBool;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V a, V b) { return math::minimum(a, b); }
  template <class T> VESTA_HD static T backward_a(T g, T a, T b, Unused) { return math::select(a < b, g, lit<T>(0)); }
  template <class T> VESTA_HD static T backward_b(T g, T a, T b, Unused) { return math::select(a >= b, g, lit<T>(0)); }
};

struct ClampBetween {
  static constexpr auto doc = "_clamp_between(input, min, max): min(max(x, min), max), elementwise with broadcasting.";
  static constexpr auto accepts = kReals;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V x, V low, V high) {
    return math::minimum(math::maximum(x, low), high);
  }
  template <class T> VESTA_HD static T backward_a(T g, T x, T low, T high, Unused) {
    return math::select(x > low, math::select(x < high, g, lit<T>(0)), lit<T>(0));
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, T low, T high, Unused) {
    return math::select(x <= low, math::select(low < high, g, lit<T>(0)), lit<T>(0));
  }
  template <class T> VESTA_HD static T backward_c(T g, T x, T low, T high, Unused) {
    return math::select(x >= high, g, math::select(high <= low, g, lit<T>(0)));
  }
};

struct ClampByTensors {
  static constexpr auto doc =
      "_clamp_by_tensors(input, min, max): min(max(x, min), max), elementwise with broadcasting; a value that lies on "
      "one of two bounds shares the gradient with it.";
  static constexpr auto accepts = kFloats;
  static constexpr bool rounds_numbers = true;
  template <class V> VESTA_HD static V forward(V x, V low, V high) {
    return math::minimum(math::maximum(x, low), high);
  }
  // As in PyTorch: bounds that are equal, or NaN, share nothing, and NaN goes to x.
  template <class T> VESTA_HD static T backward_a(T g, T x, T low, T high, Unused) {
    const T half = g * lit<T>(0.5), on_high = math::select(x == high, half, g);
    const T inside = math::select(low < high, math::select(x == low, half, on_high), g);
    return math::select(x < low, lit<T>(0), math::select(x > high, lit<T>(0), inside));
  }
  template <class T> VESTA_HD static T backward_b(T g, T x, T low, T high, Unused) {
    const T on_low = math::select(low < high, math::select(x == low, g * lit<T>(0.5), lit<T>(0)), lit<T>(0));
    return math::select(low <= high, math::select(x < low, g, on_low), lit<T>(0));
  }
  template <class T> VESTA_HD static T backward_c(T g, T x, T low, T high, Unused) {
    const T on_high = math::select(low < high, math::select(x == high, g * lit<T>(0.5), lit<T>(0)), lit<T>(0));
    const T in_order = math::select(low <= high, math::select(x > high, g, on_high), lit<T>(0));
    return math::select(low > high, g, in_order);
  }
};

/// Raises for a number that the result's dtype does not hold.
VESTA_API void check_choices(const Tensor* const* in);

struct Where {
  static constexpr auto doc = "where(condition, input, other): x where the bool condition holds, else y; broadcasting.";
  static constexpr auto accepts = kAllTypes;
  static constexpr bool mask_first = true;
  static constexpr auto check = &check_choices;
  template <class V> VESTA_HD static V forward(bool condition, V a, V b) { return condition ? a : b; }
  template <class T> VESTA_HD static T backward_b(T g, T c, Unused, Unused, Unused) {
    return math::select(c, g, lit<T>(0));
  }
  template <class T> VESTA_HD static T backward_c(T g, T c, Unused, Unused, Unused) {
    return math::select(c, lit<T>(0), g);
  }
};

struct EqualsExtremum {
  static constexpr auto doc =
      "_equals_extremum(input, extremum): 1 where they are equal or both NaN, 0 elsewhere, in their dtype, elementwise "
      "with broadcasting.";
  static constexpr auto accepts = kFloats;
  static constexpr bool differentiable = false;
  template <class V> VESTA_HD static V forward(V x, V top) {
    const V missing = math::select(x != x, math::select(top != top, lit<V>(1), lit<V>(0)), lit<V>(0));
    return math::select(x == top, lit<V>(1), missing);
  }
};

struct ShareOfEquals {
  static constexpr auto doc =
      "_share_of_equals(equal, grad, count): grad / count where equal is 1, 0 elsewhere, elementwise with "
      "broadcasting.";
  static constexpr auto accepts = kFloats;
  template <class V> VESTA_HD static V forward(V equal, V g, V count) {
    return math::select(equal > lit<V>(0), g / count, lit<V>(0));
  }
  static constexpr Zero backward_a{};
  template <class T> VESTA_HD static T backward_b(T g, T equal, Unused, T count, Unused) {
    return math::select(equal > lit<T>(0), g / count, lit<T>(0));
  }
  static constexpr Zero backward_c{};
};

}  // namespace VESTA_ISA_NS
}  // namespace vesta::def
