// Running sums and products of many lines at once: one line to a lane, so that each is added up in order, whatever lies
// beside it. Lines that are dense in memory are transposed in registers, a square at a time.
#include <vesta/core/cpu/scan_kernels.h>

#include <type_traits>
#include <utility>

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// One element of each of N lines, as it is stored and as it is summed: float in double, integers modulo 2^64.
template <class T>
struct Lanes {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  static constexpr int N = kVectorBytes / 8;
  typedef T Stored __attribute__((vector_size(N * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
  typedef Sum Summed __attribute__((vector_size(N * 8)));

  VESTA_INLINE static Stored load(const T* p) { return *reinterpret_cast<const Unaligned*>(p); }
  VESTA_INLINE static void store(Stored v, T* p) { *reinterpret_cast<Unaligned*>(p) = v; }

  /// Transposes a square of N vectors: each stage interleaves the first half of them with the second.
  VESTA_INLINE static void transpose(Stored (&v)[N]) {
    Stored w[N];
#pragma GCC unroll 4
    for (int stage = 1; stage < N; stage *= 2) {
#pragma GCC unroll 8
      for (int r = 0; r < N / 2; ++r) {
        w[2 * r] = interleave<0>(v[r], v[r + N / 2], std::make_index_sequence<N>{});
        w[2 * r + 1] = interleave<N / 2>(v[r], v[r + N / 2], std::make_index_sequence<N>{});
      }
#pragma GCC unroll 8
      for (int r = 0; r < N; ++r) v[r] = w[r];
    }
  }

 private:
  template <int first, std::size_t... I>
  VESTA_INLINE static Stored interleave(Stored a, Stored b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (int(I) % 2 ? N : 0) + first + int(I) / 2 ...);
  }
};

template <bool product, class S>
VESTA_INLINE S combined(S a, S b) {
  if constexpr (product) return a * b;
  else return a + b;
}

/// Scans elements [begin, length) of one line, of which `value` is what came before.
template <bool product, class T>
VESTA_INLINE void one_line(const T* x, T* y, std::int64_t begin, std::int64_t length, std::int64_t next,
                           typename Lanes<T>::Sum value) {
  for (std::int64_t i = begin; i < length; ++i) {
    value = combined<product>(value, static_cast<typename Lanes<T>::Sum>(x[i * next]));
    y[i * next] = static_cast<T>(value);
  }
}

/// Scans `groups` times N lines whose elements lie side by side.
template <bool product, int groups, class T>
VESTA_INLINE void lines_beside(const T* x, T* y, std::int64_t length, std::int64_t next) {
  using L = Lanes<T>;
  typename L::Summed sum[groups];
  for (int g = 0; g < groups; ++g) sum[g] = typename L::Summed{} + (product ? 1 : 0);
  for (std::int64_t i = 0; i < length; ++i, x += next, y += next) {
#pragma GCC unroll 8
    for (int g = 0; g < groups; ++g) {
      sum[g] = combined<product>(sum[g], __builtin_convertvector(L::load(x + g * L::N), typename L::Summed));
      L::store(__builtin_convertvector(sum[g], typename L::Stored), y + g * L::N);
    }
  }
}

/// Scans up to `most` times N dense lines, `across` apart. Of each, kSquares * N elements are read at a time, about a
/// cache line: lines a power of two apart share places of the cache, which would lose the rest.
template <bool product, int most, class T>
VESTA_INLINE void lines_apart(const T* x, T* y, std::int64_t length, std::int64_t across, int groups) {
  using L = Lanes<T>;
  constexpr int N = L::N, kSquares = sizeof(T) == 4 ? 2 : 1;
  typename L::Summed sum[most];
  for (int g = 0; g < most; ++g) sum[g] = typename L::Summed{} + (product ? 1 : 0);
  std::int64_t i = 0;
  for (; i + kSquares * N <= length; i += kSquares * N) {
    for (int g = 0; g < groups; ++g) {
      const T* const from = x + g * N * across + i;
      T* const to = y + g * N * across + i;
      typename L::Stored v[kSquares][N];
#pragma GCC unroll 8
      for (int r = 0; r < N; ++r) {
        for (int s = 0; s < kSquares; ++s) v[s][r] = L::load(from + r * across + s * N);
      }
      for (int s = 0; s < kSquares; ++s) {
        L::transpose(v[s]);
#pragma GCC unroll 8
        for (int c = 0; c < N; ++c) {
          sum[g] = combined<product>(sum[g], __builtin_convertvector(v[s][c], typename L::Summed));
          v[s][c] = __builtin_convertvector(sum[g], typename L::Stored);
        }
        L::transpose(v[s]);
      }
#pragma GCC unroll 8
      for (int r = 0; r < N; ++r) {
        for (int s = 0; s < kSquares; ++s) L::store(v[s][r], to + r * across + s * N);
      }
    }
  }
  for (int g = 0; g < groups; ++g) {
    for (int r = 0; r < N; ++r) {
      const std::int64_t line = (g * N + r) * across;
      one_line<product>(x + line, y + line, i, length, 1, sum[g][r]);
    }
  }
}

template <bool product, class T>
void scan(const ScanLines& s) {
  constexpr int N = Lanes<T>::N, kMost = 16 / N;  // two sums of 8 lanes, or more of fewer, hide an addition's latency
  const T* const x = static_cast<const T*>(s.x);
  T* const y = static_cast<T*>(s.y);
  std::int64_t line = 0;
  if (s.across == 1) {
    for (; line + 2 * kMost * N <= s.lines; line += 2 * kMost * N) {
      lines_beside<product, 2 * kMost>(x + line, y + line, s.length, s.next);
    }
    for (; line + N <= s.lines; line += N) lines_beside<product, 1>(x + line, y + line, s.length, s.next);
  } else if (s.next == 1) {
    while (s.lines - line >= N) {
      const std::int64_t left = (s.lines - line) / N, groups = left < kMost ? left : kMost;
      lines_apart<product, kMost>(x + line * s.across, y + line * s.across, s.length, s.across, int(groups));
      line += groups * N;
    }
  }
  for (; line < s.lines; ++line) {
    one_line<product>(x + line * s.across, y + line * s.across, 0, s.length, s.next, product ? 1 : 0);
  }
}

}  // namespace

void register_scan_kernels(ScanKernels& k) {
  k = {{&scan<false, float>, &scan<true, float>},
       {&scan<false, double>, &scan<true, double>},
       {&scan<false, std::int64_t>, &scan<true, std::int64_t>}};
}

}  // namespace vesta::cpu::VESTA_ISA_NS
