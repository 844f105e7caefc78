// The parts of a pointwise struct, for its author and for the device code that compiles it: no tensors, no containers,
// nothing that would slow a kernel's compilation down.
//
// The shapes of a struct (see README.md in this folder):
//
// clang-format off
//   struct Exp {                                             // unary
//     static constexpr auto doc = "exp(x): e**x, elementwise.";
//     static constexpr auto accepts = kFloats | kComplexes;  // computes in these; bool and integers go to float
//     template <class V> VESTA_HD static V forward(V x) { using math::exp; return exp(x); }
//     template <class T> VESTA_HD static T backward(T g, Unused, T y) { return g * conj(y); }
//   };
//   struct LeakyRelu { ... forward(V x, double slope);  backward(T g, T x, Unused, double slope); }   // parametrised
//   struct Logit { ... forward(V x, Maybe<double> eps);  ... }          // with a parameter that may be missing
//   struct Mul { ... forward(V a, V b);  backward_a(T g, Unused, T b, Unused);  backward_b(T g, T a, Unused, Unused); }
//   struct Add { ... static constexpr Pass backward_a{}; ... }          // the gradient is g itself
//   struct Floor { ... static constexpr Zero backward{}; ... }          // the gradient is 0 wherever there is one
//   struct Add { ... static bool passes_b(double alpha) ... }   // the gradient of b is g for these parameters
//   struct Frexp { ... static constexpr auto second = Result::int32;  Both<V> forward(V x); }         // two results
//   struct Polar { ... static constexpr auto result = Result::complex;  Both<V> forward(V abs, V angle); }
//   struct Lt { static constexpr auto result = Result::boolean; static constexpr bool differentiable = false; ... }
// clang-format on
//
// `Unused` in a backward signature is the save-for-backward policy: what is not used is not saved.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/math.h>
#include <vesta/core/parameter.h>

namespace vesta {

/// A placeholder for an operand that a gradient does not need.
struct Unused {};
/// A marker: the gradient is the incoming one.
struct Pass {
  static constexpr bool pass_tag = true;
};
/// A marker: the gradient is 0 wherever it exists, as for a step function.
struct Zero {
  static constexpr bool zero_tag = true;
};
/// The dtype of a pointwise result: the dtype computed in, bool, the real type of a complex one, the complex type of a
/// real one, or int32.
enum class Result : uint8_t { same, boolean, real, complex, int32 };

/// The two values of a formula: its results, or the real and the imaginary part of a complex one.
template <class A, class B = A>
struct Both {
  A first;
  B second;
};
/// A parameter of a formula that may be missing: what a MaybeDouble of the op list is there.
template <class T>
struct Maybe {
  bool given;
  T value;
  VESTA_HD VESTA_INLINE explicit operator bool() const { return given; }
  VESTA_HD VESTA_INLINE T value_or(T other) const { return given ? value : other; }
  operator std::optional<T>() const { return given ? std::optional<T>(value) : std::nullopt; }
};

inline constexpr int kMaxInputs = 4;  // operands of a kernel: of the op, or g and what its gradient uses
inline constexpr int kMaxParams = 4;  // doubles that hold the parameters of an op; one that may be missing takes two

}  // namespace vesta
