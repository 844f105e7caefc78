// Conversions between any two dtypes, over any strides: copies, casts and gathers are built on them.
#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd_convert.h>

#include <cstring>
#include <limits>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Converts one value: floats to integers saturate and NaN becomes 0, so that every result is defined; a complex value
/// gives its real part; any value but zero is true.
template <class To, class From>
VESTA_INLINE To convert_value(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (is_complex(dtype_of<From>)) {
    if constexpr (is_complex(dtype_of<To>))
      return To(typename To::value_type(v.real()), typename To::value_type(v.imag()));
    else if constexpr (std::is_same_v<To, bool>) return v.real() != 0 || v.imag() != 0;
    else return convert_value<To>(v.real());
  } else if constexpr (is_complex(dtype_of<To>)) {
    return To(convert_value<typename To::value_type>(v));
  } else if constexpr (std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>) {
    return convert_value<To>(float(v));
  } else if constexpr (std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    using Limits = std::numeric_limits<To>;
    if (!(v == v)) return 0;
    if (v <= From(Limits::min())) return Limits::min();
    if (v >= From(Limits::max())) return Limits::max();
    return static_cast<To>(v);
  } else {
    return static_cast<To>(v);
  }
}

/// The type in which vectors of S are computed.
template <class S>
using Lanes = std::conditional_t<std::is_same_v<S, double>, double, float>;

/// Converts a vector of integers to one of To, in steps of twice or half the width: GCC 12 has no instructions for
/// others.
template <class To, int N, class V>
VESTA_INLINE auto stepwise(V lanes) {
  constexpr size_t kFrom = sizeof(lanes[0]);
  if constexpr (kFrom > 2 * sizeof(To) || 2 * kFrom < sizeof(To)) {
    return stepwise<To, N>(__builtin_convertvector(lanes, typename Packed<std::int16_t, N>::Type));
  } else {
    return __builtin_convertvector(lanes, typename Packed<To, N>::Type);
  }
}

/// Reads N numbers as floats.
template <class F, class S>
VESTA_INLINE Vec<F> load_number(const S* p) {
  constexpr int N = Vec<F>::N;
  if constexpr (std::is_integral_v<S> && sizeof(S) < sizeof(std::int32_t)) {
    const typename Packed<S, N>::Type lanes = *reinterpret_cast<const typename Packed<S, N>::Unaligned*>(p);
    return Vec<F>(__builtin_convertvector(stepwise<std::int32_t, N>(lanes), typename Vec<F>::Raw));
  } else {
    return load_convert<F, S>(p);
  }
}

/// Converts N floats of any width to integers; returns false, with nothing written, if To has four bytes or more and
/// one of them is beyond its range.
template <class To, class From>
VESTA_INLINE bool store_integers(const From* from, To* to) {
  using F = Lanes<From>;
  using Limits = std::numeric_limits<To>;
  constexpr int N = Vec<F>::N;
  Vec<F> x = load_convert<F, From>(from);
  if constexpr (sizeof(To) < sizeof(std::int32_t)) {
    const Vec<F> least(F(Limits::min())), most(F(Limits::max()));
    x = select(isnan(x), Vec<F>(F(0)), select(x < least, least, select(x > most, most, x)));
    const auto wide = __builtin_convertvector(x.raw, typename Packed<std::int32_t, N>::Type);
    *reinterpret_cast<typename Packed<To, N>::Unaligned*>(to) = stepwise<To, N>(wide);
    return true;
  }
  constexpr F kEnd = F(Limits::max() / 2 + 1) * 2;  // a power of two
  if (!all((x >= Vec<F>(F(Limits::min()))) & (x < Vec<F>(kEnd)))) return false;
  if constexpr (sizeof(To) > sizeof(F)) {  // in halves: vectors of 64-bit integers are twice as long
    using Part = typename Packed<F, N / 2>::Type;
    for (int half = 0; half < 2; ++half) {
      Part lanes;
      __builtin_memcpy(&lanes, reinterpret_cast<const char*>(&x.raw) + half * sizeof lanes, sizeof lanes);
      *reinterpret_cast<typename Packed<To, N / 2>::Unaligned*>(to + half * (N / 2)) =
          __builtin_convertvector(lanes, typename Packed<To, N / 2>::Type);
    }
  } else {
    *reinterpret_cast<typename Packed<To, N>::Unaligned*>(to) =
        __builtin_convertvector(x.raw, typename Packed<To, N>::Type);
  }
  return true;
}

/// Copies n bytes. Not memcpy: the string instruction that it takes copies a byte at a time, 12 times as slowly, where
/// `to` lies less than 64 bytes behind `from` in another page (benchmarks/compare_torch.py, roll and writes to slices).
/// From kNonTemporalBytes on memcpy passes by the cache.
void copy_bytes(char* to, const char* from, size_t n) {
  constexpr size_t kNonTemporalBytes = 4 << 20;
  size_t i = 0;
  if (n < kNonTemporalBytes) {
    for (; i + 2 * 64 <= n; i += 2 * 64) move_line(to + i, from + i), move_line(to + i + 64, from + i + 64);
  }
  if (i < n) std::memcpy(to + i, from + i, n - i);
}

template <class To, class From>
void convert_run(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  if (from_stride == int64_t(sizeof(From)) && to_stride == int64_t(sizeof(To))) {
    if constexpr (std::is_same_v<To, From>) {
      copy_bytes(to, from, size_t(n) * sizeof(To));
    } else {
      // bools as the bytes 0 and 1, of which the compiler makes vectors
      using Read = std::conditional_t<std::is_same_v<From, bool>, uint8_t, From>;
      auto* a = reinterpret_cast<const Read*>(from);
      auto* b = reinterpret_cast<To*>(to);
      int64_t i = 0;
      constexpr bool narrow = std::is_same_v<To, Half> || std::is_same_v<To, BFloat16>;
      constexpr bool from_narrow = std::is_same_v<From, Half> || std::is_same_v<From, BFloat16>;
      constexpr bool from_number = (std::is_arithmetic_v<From> && !std::is_same_v<From, bool>) || from_narrow;
      if constexpr ((from_number && narrow) || (std::is_same_v<From, Half> && std::is_same_v<To, float>)) {
        constexpr int64_t N = Vec<float>::N;
        for (; i + 4 * N <= n; i += 4 * N) {  // four at a time (benchmarks/compare_torch.py, half)
#pragma GCC unroll 4
          for (int64_t k = i; k < i + 4 * N; k += N) store_convert(load_number<float, From>(a + k), b + k);
        }
        for (; i + N <= n; i += N) store_convert(load_number<float, From>(a + i), b + i);
      } else if constexpr ((std::is_floating_point_v<From> || from_narrow) && std::is_integral_v<To> &&
                           !std::is_same_v<To, bool>) {
        constexpr int64_t N = Vec<Lanes<From>>::N;
        for (; i + N <= n; i += N) {
          if (store_integers(a + i, b + i)) [[likely]]
            continue;
          for (int64_t k = i; k < i + N; ++k) b[k] = convert_value<To>(a[k]);
        }
      }
      for (; i < n; ++i) b[i] = convert_value<To>(a[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(to + i * to_stride) =
        convert_value<To>(*reinterpret_cast<const From*>(from + i * from_stride));
  }
}

}  // namespace

void register_convert(Convert (&table)[kNumDTypes][kNumDTypes]) {
  auto column = [&]<class From>() {
#define VESTA_X(name, type, text) table[int(dtype_of<From>)][int(DType::name)] = &convert_run<type, From>;
    VESTA_DTYPES(VESTA_X)
#undef VESTA_X
  };
#define VESTA_X(name, type, text) column.template operator()<type>();
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
