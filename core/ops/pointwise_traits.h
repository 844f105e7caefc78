// Traits of a pointwise struct: its members, as constants and as calls. See pointwise.h for the shapes of a struct.
#pragma once
#include <bit>
#include <type_traits>
#include <utility>

#include <vesta/core/ops/pointwise_struct.h>

namespace vesta::traits {

/// The type that signatures are probed with; bodies are never instantiated for it.
struct Probe {};

/// The encoding of a parameter of the op list as doubles, which the op writes and the formula reads.
template <class T>
struct Packed;
template <>
struct Packed<double> {
  static constexpr int size = 1;
  static void write(double v, double* to) { *to = v; }
  VESTA_HD VESTA_INLINE static double read(const double* from) { return *from; }
};
template <>
struct Packed<int64_t> {  // its bits
  static constexpr int size = 1;
  static void write(int64_t v, double* to) { __builtin_memcpy(to, &v, sizeof v); }
  VESTA_HD VESTA_INLINE static int64_t read(const double* from) {
    int64_t v;
    __builtin_memcpy(&v, from, sizeof v);
    return v;
  }
};
template <>
struct Packed<bool> {
  static constexpr int size = 1;
  static void write(bool v, double* to) { *to = v ? 1 : 0; }
  VESTA_HD VESTA_INLINE static bool read(const double* from) { return *from != 0; }
};
template <class T>
struct Packed<std::optional<T>> {  // whether it is given, and its value
  static constexpr int size = 1 + Packed<T>::size;
  static void write(std::optional<T> v, double* to) {
    Packed<bool>::write(v.has_value(), to);
    Packed<T>::write(v.value_or(T{}), to + 1);
  }
  VESTA_HD VESTA_INLINE static Maybe<T> read(const double* from) {
    return {Packed<bool>::read(from), Packed<T>::read(from + 1)};
  }
};

template <size_t i, class First, class... Rest>
struct ParameterAt {
  using type = typename ParameterAt<i - 1, Rest...>::type;
  static constexpr int offset = Packed<First>::size + ParameterAt<i - 1, Rest...>::offset;
};
template <class First, class... Rest>
struct ParameterAt<0, First, Rest...> {
  using type = First;
  static constexpr int offset = 0;
};

/// The parameters of a pointwise op, in order.
template <class... P>
struct Parameters {
  using Indices = std::make_index_sequence<sizeof...(P)>;
  static constexpr int size = (Packed<P>::size + ... + 0);  // in doubles
  static_assert(size <= kMaxParams);
  /// Reads parameter i.
  template <size_t i>
  VESTA_HD VESTA_INLINE static auto read(const double* from) {
    using At = ParameterAt<i, P...>;
    return Packed<typename At::type>::read(from + At::offset);
  }
};
/// The type that a formula takes parameter i as (an alias loses its pack in nvcc).
template <class List, size_t i>
struct ReadAs {
  using type = decltype(List::template read<i>(nullptr));
};

/// The parameters among the arguments of an op: all but operands, which are references, and Out.
template <class Found, class... A>
struct ParametersAmong;
template <class... P>
struct ParametersAmong<Parameters<P...>> {
  using type = Parameters<P...>;
};
template <class... P, class First, class... Rest>
struct ParametersAmong<Parameters<P...>, First, Rest...>
    : ParametersAmong<std::conditional_t<std::is_reference_v<First> || std::is_same_v<First, Out>, Parameters<P...>,
                                         Parameters<P..., First>>,
                      Rest...> {};

/// The shape of a pointwise op's signature: the number of its operands, and its parameters.
template <class Signature>
struct Arity;
template <class R, class... A>
struct Arity<R(A...)> {
  static constexpr int inputs = (int(std::is_reference_v<A>) + ...);
  using Params = typename ParametersAmong<Parameters<>, A...>::type;
};

template <class D>
constexpr Result result_of() {
  if constexpr (requires { D::result; }) return D::result;
  else return Result::same;
}
template <class D>
constexpr bool has_two_results() {
  return requires { D::second; };
}
template <class D>
constexpr Result second_of() {
  if constexpr (has_two_results<D>()) return D::second;
  else return Result::same;
}
/// Counts the values of the formula: 2 for two results, and for the parts of a complex one.
template <class D>
constexpr int values_of() {
  return has_two_results<D>() || result_of<D>() == Result::complex ? 2 : 1;
}
/// Counts the values that have a gradient.
template <class D>
constexpr int slopes_of() {
  return values_of<D>() == 2 && second_of<D>() == Result::same ? 2 : 1;
}
/// The type of the second result's elements, where those of the operands are T.
template <class D, class T>
using Second = std::conditional_t<second_of<D>() == Result::boolean, bool,
                                  std::conditional_t<second_of<D>() == Result::int32, int32_t, T>>;
template <class D>
constexpr bool is_differentiable_op() {
  if constexpr (requires { D::differentiable; }) return D::differentiable;
  else return true;
}
/// Returns whether the op in place replaces a value by one without a gradient.
template <class D>
constexpr bool overwrites() {
  if constexpr (requires { D::overwrites; }) return D::overwrites;
  else return false;
}
template <class D>
constexpr bool integers_to_float() {
  if constexpr (requires { D::integers_to_float; }) return D::integers_to_float;
  else return (D::accepts.bits & kIntegers.bits) == 0;
}
template <class D>
constexpr bool number_last() {
  if constexpr (requires { D::number_last; }) return D::number_last;
  else return false;
}
template <class D>
constexpr bool mask_first() {
  if constexpr (requires { D::mask_first; }) return D::mask_first;
  else return false;
}

template <class D, class P, size_t... I, class... V>
VESTA_HD VESTA_INLINE auto forward_expanded(std::index_sequence<I...>, [[maybe_unused]] const double* p, V... v) {
  return D::forward(v..., P::template read<I>(p)...);
}
/// Calls forward with the parameters behind the operands.
template <class D, class P, class... V>
VESTA_HD VESTA_INLINE auto forward(const double* p, V... v) {
  return forward_expanded<D, P>(typename P::Indices{}, p, v...);
}

// One gradient of a struct: does it exist, is it a Pass or a Zero, what does it use, and how is it called. `mask` is as
// PointwiseInfo::uses; the operand of a clear bit is passed as Unused.
#define VESTA_X_GRADIENT(Name, member)                                                                         \
  struct Name {                                                                                                \
    template <class D>                                                                                         \
    static constexpr bool is_pass() {                                                                          \
      if constexpr (requires { D::member.pass_tag; }) return true;                                             \
      else return false;                                                                                       \
    }                                                                                                          \
    template <class D>                                                                                         \
    static constexpr bool is_zero() {                                                                          \
      if constexpr (requires { D::member.zero_tag; }) return true;                                             \
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

/// The numbers of a gradient's operands behind g, in the order of its signature: the second incoming gradient, if there
/// is one, then the inputs and the values of the formula.
template <int rest, bool second_first, class Sequence = std::make_index_sequence<size_t(rest)>>
struct Order;
template <int rest, bool second_first, size_t... K>
struct Order<rest, second_first, std::index_sequence<K...>> {
  using type = std::conditional_t<second_first, std::index_sequence<size_t(rest), K...>, std::index_sequence<K...>>;
};

template <class D, int inputs, class P, int i>
struct Gradient {
  using Member = GradientAt<inputs, i>;
  static constexpr bool is_pass = Member::template is_pass<D>(), is_zero = Member::template is_zero<D>();
  static constexpr int values = values_of<D>(), bits = inputs + values + slopes_of<D>() - 1;
  using Operands = typename Order<inputs + values, slopes_of<D>() == 2>::type;

  template <class T, uint8_t mask, size_t... K, size_t... I>
  static constexpr bool fits(std::index_sequence<K...>, std::index_sequence<I...>) {
    return Member::template accepts<D, T, std::conditional_t<(mask >> K & 1) != 0, T, Unused>...,
                                    typename ReadAs<P, I>::type...>;
  }
  template <uint8_t mask>
  static constexpr int find() {
    if constexpr (is_pass || is_zero || mask >= (1u << bits)) return -1;
    else if constexpr (fits<Probe, mask>(Operands{}, typename P::Indices{})) return mask;
    else return find<mask + 1>();
  }
  static constexpr int found = find<0>();
  static constexpr bool is_formula = found >= 0, exists = is_pass || is_zero || is_formula;
  static constexpr uint8_t mask = found >= 0 ? uint8_t(found) : uint8_t(0);
  static constexpr int operands = 1 + std::popcount(unsigned(mask));  // g and what is used

  /// Calls the formula; `used` are the used operands in order.
  template <class T>
  VESTA_HD VESTA_INLINE static T call(T g, const T* used, const double* p) {
    return call_expanded<T>(g, used, p, Operands{}, typename P::Indices{});
  }

 private:
  template <class T, size_t k>
  VESTA_HD VESTA_INLINE static auto operand(const T* used) {
    if constexpr ((mask >> k & 1) != 0) return used[std::popcount(unsigned(mask) & ((1u << k) - 1))];
    else return Unused{};
  }
  template <class T, size_t... K, size_t... I>
  VESTA_HD VESTA_INLINE static T call_expanded(T g, const T* used, [[maybe_unused]] const double* p,
                                               std::index_sequence<K...>, std::index_sequence<I...>) {
    return Member::template call<D>(g, operand<T, K>(used)..., P::template read<I>(p)...);
  }
};

}  // namespace vesta::traits
