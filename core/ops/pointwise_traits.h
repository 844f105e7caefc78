// Reads a pointwise struct: what its members say, as constants and as calls. See pointwise.h for the shapes of a
// struct.
#pragma once
#include <bit>
#include <type_traits>
#include <utility>

#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::traits {

/// The type that signatures are probed with; bodies are never instantiated for it.
struct Probe {};

/// Counts the operands of a pointwise op's signature (references) and its parameters (doubles).
template <class Signature>
struct Arity;
template <class R, class... A>
struct Arity<R(A...)> {
  static constexpr int inputs = (int(std::is_reference_v<A>) + ...);
  static constexpr int params = (int(std::is_same_v<A, double>) + ...);
};

template <class D>
constexpr Result result_of() {
  if constexpr (requires { D::result; }) return D::result;
  else return Result::same;
}
template <class D>
constexpr bool is_differentiable_op() {
  if constexpr (requires { D::differentiable; }) return D::differentiable;
  else return true;
}
template <class D>
constexpr bool integers_to_float() {
  if constexpr (requires { D::integers_to_float; }) return D::integers_to_float;
  else return (D::accepts.bits & kIntegers.bits) == 0;
}
template <class D>
constexpr bool mask_first() {
  if constexpr (requires { D::mask_first; }) return D::mask_first;
  else return false;
}

template <class D, size_t... I, class... V>
VESTA_HD VESTA_INLINE auto forward_expanded(std::index_sequence<I...>, const double* p, V... v) {
  return D::forward(v..., p[I]...);
}
/// Calls forward with `params` doubles behind the operands.
template <class D, int params, class... V>
VESTA_HD VESTA_INLINE auto forward(const double* p, V... v) {
  return forward_expanded<D>(std::make_index_sequence<params>{}, p, v...);
}

// One gradient of a struct: does it exist, is it a Pass, what does it use, and how is it called. `mask` has bit k for
// input k and bit `inputs` for the result; the operand of a clear bit is passed as Unused.
#define VESTA_X_GRADIENT(Name, member)                                                                         \
  struct Name {                                                                                                \
    template <class D>                                                                                         \
    static constexpr bool is_pass() {                                                                          \
      if constexpr (requires { D::member.pass_tag; }) return true;                                             \
      else return false;                                                                                       \
    }                                                                                                          \
    template <class D, class T, class... A>                                                                    \
    static constexpr bool accepts = requires(T g, A... a) { D::template member<T>(g, a...); };                 \
    template <class D, class T, class... A>                                                                    \
    VESTA_HD VESTA_INLINE static T call(T g, A... a) { return D::template member<T>(g, a...); }                \
  };
VESTA_X_GRADIENT(GradientOnly, backward)
VESTA_X_GRADIENT(GradientA, backward_a)
VESTA_X_GRADIENT(GradientB, backward_b)
VESTA_X_GRADIENT(GradientC, backward_c)
#undef VESTA_X_GRADIENT

template <int inputs, int i>
using GradientAt =
    std::conditional_t<inputs == 1, GradientOnly,
                       std::conditional_t<i == 0, GradientA, std::conditional_t<i == 1, GradientB, GradientC>>>;

/// The type double, whatever the number, so that there are as many doubles as P (an alias loses its pack in nvcc).
template <size_t>
struct DoubleAt {
  using type = double;
};

template <class D, int inputs, int params, int i>
struct Gradient {
  using Member = GradientAt<inputs, i>;
  static constexpr bool is_pass = Member::template is_pass<D>();

  template <class T, uint8_t mask, size_t... K, size_t... P>
  static constexpr bool fits(std::index_sequence<K...>, std::index_sequence<P...>) {
    return Member::template accepts<D, T, std::conditional_t<(mask >> K & 1) != 0, T, Unused>...,
                                    typename DoubleAt<P>::type...>;
  }
  template <uint8_t mask>
  static constexpr int find() {
    if constexpr (is_pass || mask >= (1u << (inputs + 1))) return -1;
    else if constexpr (fits<Probe, mask>(std::make_index_sequence<inputs + 1>{}, std::make_index_sequence<params>{}))
      return mask;
    else return find<mask + 1>();
  }
  static constexpr int found = find<0>();
  static constexpr bool exists = is_pass || found >= 0;
  static constexpr uint8_t mask = found >= 0 ? uint8_t(found) : uint8_t(0);
  static constexpr int operands = 1 + std::popcount(unsigned(mask));  // g and what is used

  /// Calls the formula; `used` are the used operands in order.
  template <class T>
  VESTA_HD VESTA_INLINE static T call(T g, const T* used, const double* p) {
    return call_expanded<T>(g, used, p, std::make_index_sequence<inputs + 1>{}, std::make_index_sequence<params>{});
  }

 private:
  template <class T, size_t k>
  VESTA_HD VESTA_INLINE static auto operand(const T* used) {
    if constexpr ((mask >> k & 1) != 0) return used[std::popcount(unsigned(mask) & ((1u << k) - 1))];
    else return Unused{};
  }
  template <class T, size_t... K, size_t... P>
  VESTA_HD VESTA_INLINE static T call_expanded(T g, const T* used, const double* p, std::index_sequence<K...>,
                                               std::index_sequence<P...>) {
    return Member::template call<D>(g, operand<T, K>(used)..., p[P]...);
  }
};

}  // namespace vesta::traits
