// The loops made from a pointwise struct: one per dtype for forward, one per floating dtype and input for its
// backward. The driver makes all operands contiguous or repeated (core/ops/pointwise.h, LoopArgs).
//
// Body and tail run the same vector code on full and partial loads, so a value does not depend on where it lies.
#pragma once
#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/simd_blocks.h>
#include <vesta/core/ops/integer_division.h>
#include <vesta/core/ops/lines.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/pointwise_traits.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// Writes a vector or a mask to n <= N elements of memory.
template <class T, class C>
VESTA_INLINE void store_result(Vec<C> v, char* out, int64_t at, int64_t n) {
  T* p = reinterpret_cast<T*>(out) + at;
  if (n == Vec<C>::N) store_convert(v, p);
  else store_convert_partial(v, p, n);
}
template <class T, class C>
VESTA_INLINE void store_result(Mask<C> m, char* out, int64_t at, int64_t n) {
  m.store(reinterpret_cast<bool*>(out) + at, n);
}
/// True if a formula has a mask as result.
template <class R>
constexpr bool kIsMask = false;
template <class C>
constexpr bool kIsMask<Mask<C>> = true;

/// Two vectors that are the parts of complex numbers.
template <class C>
struct Parts {
  Vec<C> re, im;
};
template <class T, class C>
VESTA_INLINE void store_result(const Parts<C>& v, char* out, int64_t at, int64_t n) {
  constexpr int N = Vec<C>::N;
  C* p = reinterpret_cast<C*>(out) + 2 * at;
  // the numbers in turn: lane i of the real parts, then lane i of the imaginary ones
  auto half = [&]<int... I>(int first, std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return first == 0 ? Vec<C>(__builtin_shufflevector(v.re.raw, v.im.raw, (I / 2 + I % 2 * N)...))
                      : Vec<C>(__builtin_shufflevector(v.re.raw, v.im.raw, (N / 2 + I / 2 + I % 2 * N)...));
  };
  constexpr std::make_integer_sequence<int, N> lanes{};
  const Vec<C> low = half(0, lanes), high = half(1, lanes);
  if (n == N) {
    low.store(p), high.store(p + N);
  } else {
    C both[2 * N];
    low.store(both), high.store(both + N);
    for (int64_t i = 0; i < 2 * n; ++i) p[i] = both[i];
  }
}

/// The two results of a formula, A and B, the second of which is written to `to` as elements of S.
template <class S, class A, class B>
struct Results {
  A first;
  B second;
  char* to;
};
template <class T, class S, class A, class B>
VESTA_INLINE void store_result(const Results<S, A, B>& v, char* out, int64_t at, int64_t n) {
  store_result<T>(v.first, out, at, n);
  store_result<S>(v.second, v.to, at, n);
}

/// Returns the value of struct D's formula in the form that store_result() takes.
template <class D, class T, class V>
VESTA_INLINE auto stored(const V& value, [[maybe_unused]] char* second) {
  if constexpr (traits::has_two_results<D>()) {
    return Results<traits::Second<D, T>, decltype(value.first), decltype(value.second)>{value.first, value.second,
                                                                                        second};
  } else if constexpr (traits::result_of<D>() == Result::complex) {
    return Parts<compute_t<T>>{value.first, value.second};
  } else {
    return value;
  }
}

/// A copy of an op's parameters: a loop that reads them where the op wrote them would read them again after each store.
template <class P>
struct OwnParameters {
  double at[P::size ? P::size : 1];
  VESTA_INLINE explicit OwnParameters(const double* from) {
    for (int i = 0; i < P::size; ++i) at[i] = from[i];
  }
};

/// Reads n <= N elements; a repeated operand is a whole vector of one value of C.
template <class T, class C>
VESTA_INLINE Vec<C> load_operand(const T* p, bool repeated, int64_t n) {
  if constexpr (!std::is_same_v<T, C>) {
    if (repeated) return Vec<C>::load(reinterpret_cast<const C*>(p));
  }
  if (n == Vec<C>::N || repeated) return load_convert<C, T>(p);
  return load_convert_partial<C, T>(p, n);
}

/// Runs `formula(Vec<C>...)` over vectors of elements stored as T. If D has a number as last operand, that is read
/// once, and what follows from it alone is computed once; with `known`, when D::exponents[known] is compiled.
template <class T, int operands, class D = void, int known = -1, class F>
VESTA_INLINE void vector_loop(const LoopArgs& a, F formula) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  // Locals, because a store to the result might change `a` as far as the compiler knows.
  char* const out = a.out;
  const int64_t n = a.n;
  const T* in[operands];
  int64_t advance[operands];
  for (int k = 0; k < operands; ++k) {
    in[k] = reinterpret_cast<const T*>(a.in[k]);
    advance[k] = N * a.step[k];
  }
  auto loop = [&]<size_t... K>(std::index_sequence<K...>, auto... last) __attribute__((always_inline)) {
    auto at = [&](int64_t i, int64_t count) __attribute__((always_inline)) {
      store_result<T>(formula(load_operand<T, C>(in[K], advance[K] == 0, count)..., last...), out, i, count);
      ((in[K] += advance[K]), ...);
    };
    int64_t i = 0;
    if constexpr (kIsMask<decltype(formula(load_operand<T, C>(in[K], false, N)..., last...))>) {
      Mask<C> m[4];
      for (; i + 4 * N <= n; i += 4 * N) {
#pragma GCC unroll 4
        for (Mask<C>& one : m) {
          one = formula(load_operand<T, C>(in[K], advance[K] == 0, N)..., last...);
          ((in[K] += advance[K]), ...);
        }
        store_masks(m, reinterpret_cast<bool*>(out) + i);
      }
    }
    for (; i + N <= n; i += N) at(i, N);
    if (i < n) at(i, n - i);
  };
  constexpr std::make_index_sequence<operands - 1> others{};
  if constexpr (known >= 0) return loop(others, Vec<C>(C(D::exponents[known])));
  if constexpr (traits::number_last<D>()) {
    if (advance[operands - 1] == 0) return loop(others, load_operand<T, C>(in[operands - 1], true, N));
  }
  loop(std::make_index_sequence<operands>{});
}

/// True if D's formula is one of x and normal_cdf(x).
template <class D, class C>
constexpr bool kOfNormalCdf = requires(Vec<C> v) { D::of_normal_cdf(v, v); };

/// True if one test of several vectors of C shortens D's formula.
template <class D, class C>
constexpr bool kAtOnce = std::is_same_v<C, float> && (requires { D::exponent_is_operand; } || kOfNormalCdf<D, C>);

/// Runs D's formula, with D::exponents[known] if known >= 0, over whole blocks of vectors, each with one test of what
/// it may take for granted: a test for every vector took a quarter of the time of x ** 3. Returns how many elements it
/// has done.
template <class T, class D, int known>
VESTA_INLINE int64_t run_blocks(const LoopArgs& a) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  constexpr int kBlock = 4;
  const T* const x = reinterpret_cast<const T*>(a.in[0]);
  T* const out = reinterpret_cast<T*>(a.out);
  const int64_t n = a.step[0] == 1 ? a.n : 0;
  const auto all_at_once = [](Vec<C>(&v)[kBlock]) __attribute__((always_inline)) {
    if constexpr (known >= 0) return raise_all(v, std::integral_constant<int, int(2 * D::exponents[known])>{});
    else if constexpr (kOfNormalCdf<D, C>) return compute_of_normal<D>(v), true;
    else return compute_moderate<D>(v);
  };
  const auto one = [](Vec<C> v) __attribute__((always_inline)) {
    if constexpr (known >= 0) return D::forward(v, Vec<C>(C(D::exponents[known])));
    else return D::forward(v);
  };
  int64_t i = 0;
  for (; i + kBlock * N <= n; i += kBlock * N) {
    Vec<C> v[kBlock];
#pragma GCC unroll 4
    for (int k = 0; k < kBlock; ++k) v[k] = load_convert<C, T>(x + i + k * N);
    if (!all_at_once(v)) [[unlikely]] {
#pragma GCC unroll 1
      for (int k = 0; k < kBlock; ++k) v[k] = one(v[k]);
    }
#pragma GCC unroll 4
    for (int k = 0; k < kBlock; ++k) store_convert(v[k], out + i + k * N);
  }
  return i;
}

/// Calls run<k>() if the last operand is D::exponents[k], repeated, else run<-1>(). Each is a function of its own: one
/// of all loops is too long for the compiler to see the numbers through.
template <class T, int operands, class D, class F>
VESTA_INLINE void with_known_number(const LoopArgs& a, F run) {
  if constexpr (traits::number_last<D>()) {
    using C = compute_t<T>;
    if (a.n > 0 && a.step[operands - 1] == 0) {
      const C value = load_operand<T, C>(reinterpret_cast<const T*>(a.in[operands - 1]), true, 1)[0];
      const bool is_known = [&]<size_t... I>(std::index_sequence<I...>) __attribute__((always_inline)) {
        return ((value == C(D::exponents[I]) && (run.template operator()<int(I)>(), true)) || ...);
      }(std::make_index_sequence<std::size(D::exponents)>{});
      if (is_known) return;
    }
  }
  run.template operator()<-1>();
}

template <class S, class A, class B>
VESTA_INLINE void put(const Results<S, A, B>& r, char* out, int64_t i) {
  reinterpret_cast<A*>(out)[i] = r.first;
  reinterpret_cast<S*>(r.to)[i] = S(r.second);
}

/// Runs `formula(T...)` element by element; for integers the compiler vectorises it. Predicates of complex numbers are
/// compiled for any steps alone: as vectors they are long and hardly faster.
template <class T, int operands, class First, class F>
VESTA_INLINE void scalar_loop(const LoopArgs& a, F formula) {
  // Locals, because a store of int64 or of bytes might change `a` as far as the compiler knows.
  const char* in[operands];
  int64_t step[operands];
  for (int k = 0; k < operands; ++k) in[k] = a.in[k], step[k] = a.step[k];
  char* const to = a.out;
  const int64_t n = a.n;
  if (n <= 0) return;
  // Operands whose bit is set in `moving` go on by an element, others are a number; with -1, all go on by their steps.
  auto run = [&]<int moving>() __attribute__((always_inline)) {
    [&]<size_t... K>(std::index_sequence<K...>) __attribute__((always_inline)) {
      auto element_at = [&]<size_t k>(int64_t i) __attribute__((always_inline)) {
        using E = std::conditional_t<k == 0, First, T>;
        // a bool that is negated as a byte: GCC 12 makes no vectors of it else
        using Read = std::conditional_t<operands == 1 && std::is_same_v<E, bool>, uint8_t, E>;
        return E(reinterpret_cast<const Read*>(in[k])[i]);
      };
      [&](auto... number) __attribute__((always_inline)) {
        auto element = [&]<size_t k>(int64_t i, auto number) __attribute__((always_inline)) {
          if constexpr (moving < 0) return element_at.template operator()<k>(i * step[k]);
          else if constexpr ((moving >> k & 1) != 0) return element_at.template operator()<k>(i);
          else return number;
        };
        using R = decltype(formula(number...));
        if constexpr (requires(R r) { r.to; }) {
          auto store = [&](const auto& r, int64_t i) __attribute__((always_inline)) { put(r, to, i); };
          for (int64_t i = 0; i < n; ++i) store(formula(element.template operator()<K>(i, number)...), i);
        } else {
          R* const out = reinterpret_cast<R*>(to);
#pragma GCC ivdep  // the result lies apart from an operand, or is it
          for (int64_t i = 0; i < n; ++i) out[i] = formula(element.template operator()<K>(i, number)...);
        }
      }(element_at.template operator()<K>(0)...);
    }(std::make_index_sequence<operands>{});
  };
  constexpr bool is_predicate = [&]<size_t... K>(std::index_sequence<K...>) {
    return std::is_same_v<decltype(formula(std::conditional_t<K == 0, First, T>()...)), bool>;
  }(std::make_index_sequence<operands>{});
  if constexpr (!(is_predicate && is_complex(dtype_of<T>))) {
    // Steps that the compiler knows let it vectorise: all elements, or some and numbers.
    bool plain = true;
    for (int k = 0; k < operands; ++k) plain = plain && step[k] == 1;
    if (plain) return run.template operator()<(1 << operands) - 1>();
    if constexpr (operands == 2) {
      if (step[0] == 1) return run.template operator()<1>();
      if (step[1] == 1) return run.template operator()<2>();
    }
    if constexpr (operands == 3) {
      if (step[0] == 1 && step[1] == 0 && step[2] == 0) return run.template operator()<1>();
    }
  }
  run.template operator()<-1>();
}

/// Runs D's formula, a division of int64: blocks whose operands are all small divide as doubles do, 2 to 4 times as
/// fast.
template <class D>
VESTA_INLINE void divide_loop(LoopArgs a) {
  constexpr int64_t kBlock = 512;
  for (int64_t left = a.n; left > 0; left -= a.n) {
    a.n = left < kBlock ? left : kBlock;
    uint64_t sizes = 0;
    for (int k = 0; k < 2; ++k) {
      const int64_t* const x = reinterpret_cast<const int64_t*>(a.in[k]);
      const int64_t different = a.step[k] == 0 ? 1 : a.n;
      for (int64_t i = 0; i < different; ++i) sizes |= math::size_as_small(x[i * a.step[k]]);
    }
    if (sizes < math::kSmallLongs) {
      scalar_loop<int64_t, 2, int64_t>(a, [](int64_t x, int64_t y) __attribute__((always_inline)) {
        return D::forward(math::SmallLong{x}, math::SmallLong{y}).value;
      });
    } else {
      scalar_loop<int64_t, 2, int64_t>(
          a, [](int64_t x, int64_t y) __attribute__((always_inline)) { return D::forward(x, y); });
    }
    for (int k = 0; k < 2; ++k) a.in[k] += a.n * a.step[k] * int64_t(sizeof(int64_t));
    a.out += a.n * int64_t(sizeof(int64_t));
  }
}

/// Chooses elements by a mask, as bits and without a branch, which a mask without order would mispredict.
template <class T>
VESTA_INLINE void select_loop(const LoopArgs& a) {
  using Bits = std::conditional_t<
      sizeof(T) == 1, uint8_t,
      std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>>;
  const uint8_t* const mask = reinterpret_cast<const uint8_t*>(a.in[0]);
  const Bits* const x = reinterpret_cast<const Bits*>(a.in[1]);
  const Bits* const y = reinterpret_cast<const Bits*>(a.in[2]);
  Bits* const out = reinterpret_cast<Bits*>(a.out);
  const int64_t n = a.n;
  auto run = [&](auto of_x, auto of_y) __attribute__((always_inline)) {
#pragma GCC ivdep  // the result lies apart from an operand, or is it
    for (int64_t i = 0; i < n; ++i) {
      const Bits chosen = Bits(-Bits(mask[i]));
      out[i] = Bits((of_x(i) & chosen) | (of_y(i) & Bits(~chosen)));
    }
  };
  auto all_of = [](const Bits* p) { return [p](int64_t i) __attribute__((always_inline)) { return p[i]; }; };
  auto one_of = [](const Bits* p) { return [v = *p](int64_t) __attribute__((always_inline)) { return v; }; };
  if (a.step[1] && a.step[2]) run(all_of(x), all_of(y));
  else if (a.step[1]) run(all_of(x), one_of(y));
  else if (a.step[2]) run(one_of(x), all_of(y));
  else run(one_of(x), one_of(y));
}

/// The results of a loop over floats that runs for 16-bit elements.
struct FloatResults {
  static constexpr int64_t rounded = 0, none = -1;
  int64_t item;  // bytes of an element that stays as it is (a bool, a complex number), or `rounded`
  int64_t second_item;  // likewise of the second result (an int32), or `none`
};

/// The strategy of a topic's ops for 16-bit floats, which are computed in float in any case.
enum class Narrow {
  blocks,  // by the loop over floats, in blocks that are widened and rounded: half of the code and of its compilation
  directly  // by a loop of their own: where a formula is an instruction or two, twice as fast; gradients in blocks
};

/// The length class of a topic's formulas; a struct may differ (`long_formula`).
enum class Formulas {
  short_ones,  // a few instructions, which wait for memory: AVX-512 has no loops of its own for them
  long_ones
};

/// Returns whether the loops of struct D over elements of type d are compiled for this instruction set. Those that
/// AVX-512 leaves out are AVX2's: its wider vectors gain nothing where memory or single elements are the limit.
template <class D, Formulas formulas>
constexpr bool has_own_loops([[maybe_unused]] DType d) {
#ifdef VESTA_ISA_avx512
  if (!is_float(d)) return false;
  if constexpr (requires { D::long_formula; }) return D::long_formula;
  else return formulas == Formulas::long_ones;
#else
  return true;
#endif
}

/// Runs `loop`, one of floats, over elements of the 16-bit type T: blocks of them are widened into buffers in the first
/// cache, and the results rounded.
template <class T>
[[gnu::noinline]] void run_in_float(const LoopArgs& a, Loop loop, int operands, FloatResults results) {
  constexpr int64_t kBlock = 512, N = Vec<float>::N;
  alignas(64) float in[kMaxInputs][kBlock], out[kBlock], second[kBlock];
  LoopArgs block;
  block.params = a.params;
  for (int k = 0; k < operands; ++k) {
    block.in[k] = a.step[k] == 0 ? a.in[k] : reinterpret_cast<const char*>(in[k]);  // a repeated operand is of floats
    block.step[k] = a.step[k];
  }
  auto round = [](const float* from, char* to, int64_t begin, int64_t n) __attribute__((always_inline)) {
    T* const p = reinterpret_cast<T*>(to) + begin;
    int64_t j = 0;
    for (; j + N <= n; j += N) store_convert(Vec<float>::load(from + j), p + j);
    if (j < n) store_convert_partial(Vec<float>::load(from + j), p + j, n - j);
  };
  for (int64_t i = 0; i < a.n; i += kBlock) {
    const int64_t n = block.n = a.n - i < kBlock ? a.n - i : kBlock;
    for (int k = 0; k < operands; ++k) {
      if (a.step[k] == 0) continue;
      const T* const from = reinterpret_cast<const T*>(a.in[k]) + i;
      int64_t j = 0;
      for (; j + N <= n; j += N) load_convert<float, T>(from + j).store(in[k] + j);
      if (j < n) load_convert_partial<float, T>(from + j, n - j).store(in[k] + j);
    }
    block.out = results.item == FloatResults::rounded ? reinterpret_cast<char*>(out) : a.out + i * results.item;
    if (results.second_item != FloatResults::none) {
      block.second = results.second_item == FloatResults::rounded ? reinterpret_cast<char*>(second)
                                                                  : a.second + i * results.second_item;
    }
    loop(block);
    if (results.item == FloatResults::rounded) round(out, a.out, i, n);
    if (results.second_item == FloatResults::rounded) round(second, a.second, i, n);
  }
}

/// Returns the strategy for this instruction set: `wanted`, or blocks on the baseline.
constexpr Narrow narrow_on_this_isa([[maybe_unused]] Narrow wanted) {
#ifdef VESTA_ISA_baseline
  return Narrow::blocks;
#else
  return wanted;
#endif
}

template <class T, Narrow narrow>
constexpr bool runs_in_blocks =
    narrow == Narrow::blocks && (dtype_of<T> == DType::float16 || dtype_of<T> == DType::bfloat16);

template <class D, class T, int inputs, class P, Narrow narrow>
struct ForwardLoop {
  static constexpr bool in_blocks = runs_in_blocks<T, narrow> && !traits::mask_first<D>();
  static constexpr int64_t item = traits::result_of<D>() == Result::boolean   ? sizeof(bool)
                                  : traits::result_of<D>() == Result::complex ? sizeof(std::complex<float>)
                                                                              : FloatResults::rounded;
  static constexpr int64_t second_item = !traits::has_two_results<D>()            ? FloatResults::none
                                         : traits::second_of<D>() == Result::same ? FloatResults::rounded
                                                                                  : sizeof(traits::Second<D, T>);
  template <int known>
  [[gnu::noinline]] static void vectors(const LoopArgs& a) {
    [[maybe_unused]] const OwnParameters<P> own(a.params);
    char* const second = second_of(a);
    LoopArgs rest = a;
    if constexpr (known >= 0 || kAtOnce<D, compute_t<T>>) {
      const int64_t done = run_blocks<T, D, known>(a);
      rest.in[0] += done * int64_t(sizeof(T)), rest.out += done * int64_t(sizeof(T)), rest.n -= done;
    }
    vector_loop<T, inputs, D, known>(rest, [&](auto... v) __attribute__((always_inline)) {
      return stored<D, T>(traits::forward<D, P>(own.at, v...), second);
    });
  }
  VESTA_INLINE static char* second_of(const LoopArgs& a) {
    if constexpr (traits::has_two_results<D>()) return a.second;
    else return nullptr;
  }
  static void run(const LoopArgs& a) {
    if constexpr (in_blocks) {
      run_in_float<T>(a, &ForwardLoop<D, float, inputs, P, narrow>::run, inputs, {item, second_item});
    } else if constexpr (traits::mask_first<D>()) {
      static_assert(inputs == 3);
      if constexpr (sizeof(T) <= 8) {
        if (a.step[0] == 1 && a.n > 0) return select_loop<T>(a);
      }
      scalar_loop<T, inputs, bool>(
          a, [](bool m, auto... v) __attribute__((always_inline)) { return D::forward(m, v...); });
    } else if constexpr (is_float(dtype_of<T>)) {
      with_known_number<T, inputs, D>(a, [&]<int known>() __attribute__((always_inline)) { vectors<known>(a); });
    } else if constexpr (std::is_same_v<T, int64_t> && requires { D::divides; }) {
      divide_loop<D>(a);
    } else {
      [[maybe_unused]] const OwnParameters<P> own(a.params);
      [[maybe_unused]] char* const second = second_of(a);
      scalar_loop<T, inputs, T>(a, [&](auto... v) __attribute__((always_inline)) {
        auto r = traits::forward<D, P>(own.at, v...);
        if constexpr (traits::result_of<D>() == Result::boolean) return bool(r);  // & and | of bools are int
        else return stored<D, T>(r, second);
      });
    }
  }
};

template <class D, class T, int inputs, class P, int i>
struct GradientLoop {
  using G = traits::Gradient<D, inputs, P, i>;
  using Numbers = std::conditional_t<traits::number_last<D>() && (G::mask >> (inputs - 1)) == 1, D, void>;
  template <int known>
  [[gnu::noinline]] static void vectors(const LoopArgs& a) {
    [[maybe_unused]] const OwnParameters<P> own(a.params);
    vector_loop<T, G::operands, Numbers, known>(a, [&](auto g, auto... used) __attribute__((always_inline)) {
      using V = decltype(g);
      V list[sizeof...(used) + 1] = {used..., g};
      return G::template call<V>(g, list, own.at);
    });
  }
  static void run(const LoopArgs& a) {
    if constexpr (runs_in_blocks<T, Narrow::blocks>) {
      run_in_float<T>(a, &GradientLoop<D, float, inputs, P, i>::run, G::operands,
                      {FloatResults::rounded, FloatResults::none});
    } else {
      with_known_number<T, G::operands, Numbers>(
          a, [&]<int known>() __attribute__((always_inline)) { vectors<known>(a); });
    }
  }
};

/// Enters the loops of struct D, whose operands A counts, into its op's table.
template <class D, class A, Narrow narrow, Formulas formulas>
void enter(PointwiseLoops& to) {
  using P = typename A::Params;
  auto& kernels = to.at;
  auto forward = [&]<DType d>() {
    if constexpr (D::accepts.has(d) && has_own_loops<D, formulas>(d)) {
      kernels[0][int(d)] = (&ForwardLoop<D, type_of<d>, A::inputs, P, narrow>::run);
    }
  };
  auto gradient = [&]<DType d, int i>() {
    using G = traits::Gradient<D, A::inputs, P, i>;
    if constexpr (is_float(d) && D::accepts.has(d) && G::is_formula && !traits::mask_first<D>() &&
                  has_own_loops<D, formulas>(d)) {
      kernels[1 + i][int(d)] = (&GradientLoop<D, type_of<d>, A::inputs, P, i>::run);
    }
  };
  auto one = [&]<DType d>() {
    forward.template operator()<d>();
    if constexpr (traits::is_differentiable_op<D>()) {
      gradient.template operator()<d, 0>();
      if constexpr (A::inputs > 1) gradient.template operator()<d, 1>();
      if constexpr (A::inputs > 2) gradient.template operator()<d, 2>();
    }
  };
#define VESTA_X(name, type, text) one.template operator()<DType::name>();
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

#define VESTA_LOOPS(kind, ...) VESTA_LINE_##kind(VESTA_LOOPS, __VA_ARGS__)
#define VESTA_LOOPS_POINTWISE(name, Struct, params, ...)                     \
  {                                                                         \
    struct Signature { static void call params; };                          \
    enter<def::Struct, traits::Arity<decltype(Signature::call)>, narrow, formulas>(to[at++]); \
  }
#define VESTA_LOOPS_POINTWISE_PAIR(...) VESTA_LOOPS_POINTWISE(__VA_ARGS__)
#define VESTA_LOOPS_OP(...)
#define VESTA_LOOPS_OUT(...)
#define VESTA_LOOPS_TWIN(...)
#define VESTA_LOOPS_COPIED(...)
#define VESTA_LOOPS_IN(...)
#define VESTA_LOOPS_FORM(...)
#define VESTA_LOOPS_PYTHON_FORM(...)
#define VESTA_LOOPS_ALIAS(...)
/// Defines loops_of_TOPIC(to), which fills `to` in the order of the topic's pointwise lines, except for loops that are
/// those of the instruction set before; `how` is a Narrow, `length` one of Formulas.
#define VESTA_CPU_TOPIC(topic, LIST, how, length)                \
  void loops_of_##topic(PointwiseLoops* to) {                   \
    constexpr Narrow narrow = narrow_on_this_isa(Narrow::how);  \
    constexpr Formulas formulas = Formulas::length;             \
    int at = 0;                                                 \
    LIST(VESTA_LOOPS)                                           \
  }

}  // namespace vesta::cpu::VESTA_ISA_NS
