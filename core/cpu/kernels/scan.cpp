// Running sums and products of many lines at once: one line to a lane, so that each is added up in order, whatever lies
// beside it. Lines that are dense in memory are transposed in registers, a square at a time.
#include <vesta/core/cpu/scan_kernels.h>

#include <type_traits>
#include <utility>

#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// One element of each of N lines, as it is stored and as it is summed, in `bytes`: float in double, integers modulo
/// 2^64.
template <class T, int bytes = kVectorBytes>
struct Lanes {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  static constexpr int N = bytes / 8;
  typedef T Stored __attribute__((vector_size(N * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(N * sizeof(T)), aligned(alignof(T)), may_alias));
  typedef Sum Summed __attribute__((vector_size(N * 8)));

  VESTA_INLINE static Stored load(const T* p) { return *reinterpret_cast<const Unaligned*>(p); }
  VESTA_INLINE static void store(Stored v, T* p) { *reinterpret_cast<Unaligned*>(p) = v; }
  /// store() past the caches, if the processor has that for N elements.
  VESTA_INLINE static void stream(Stored v, T* p) {
    if constexpr (sizeof(Stored) == 16) return _mm_stream_si128(reinterpret_cast<__m128i*>(p), (__m128i)v);
#ifndef VESTA_SIMD_SSE
    if constexpr (sizeof(Stored) == 32) return _mm256_stream_si256(reinterpret_cast<__m256i*>(p), (__m256i)v);
#endif
    store(v, p);
  }

  /// Returns elements as they are summed. (GCC 12 makes two halves of __builtin_convertvector.)
  VESTA_INLINE static Summed widened(Stored v) {
#if defined(VESTA_SIMD_AVX512)
    if constexpr (std::is_same_v<T, float> && bytes == 64) return (Summed)_mm512_maskz_cvtps_pd(0xff, (__m256)v);
#endif
    return __builtin_convertvector(v, Summed);
  }

  /// Transposes a square of N vectors: each stage interleaves the first half of them with the second.
  VESTA_INLINE static void transpose(Stored (&v)[N]) {
    Stored w[N];
#pragma GCC unroll 4
    for (int stage = 1; stage < N; stage *= 2) {
#pragma GCC unroll 4
      for (int r = 0; r < N / 2; ++r) {
        w[2 * r] = interleave<0>(v[r], v[r + N / 2], std::make_index_sequence<N>{});
        w[2 * r + 1] = interleave<N / 2>(v[r], v[r + N / 2], std::make_index_sequence<N>{});
      }
#pragma GCC unroll 4
      for (int r = 0; r < N; ++r) v[r] = w[r];
    }
  }

 private:
  template <int first, std::size_t... I>
  VESTA_INLINE static Stored interleave(Stored a, Stored b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (int(I) % 2 ? N : 0) + first + int(I) / 2 ...);
  }
};

/// Lanes of the lines that are dense: no more than four, which with their results fit in a set of the first cache, as
/// lines a multiple of a page apart share one.
constexpr int kDenseBytes = kVectorBytes < 32 ? kVectorBytes : 32;
template <class T>
using DenseLanes = Lanes<T, kDenseBytes>;

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

/// Scans up to kScanBeside lines whose elements lie side by side: whole vectors of them. Their sums lie in the first
/// cache and are read and written once for four elements.
template <bool product, class T>
void lines_beside(const T* x, T* y, std::int64_t length, std::int64_t next, std::int64_t lines) {
  using L = Lanes<T>;
  constexpr std::int64_t kAhead = 8;  // elements of a line that are asked for before they are read
  typename L::Summed sums[kScanBeside / L::N];
  for (std::int64_t j = 0; j < lines / L::N; ++j) sums[j] = typename L::Summed{} + (product ? 1 : 0);
  const auto rows = [&](auto count) __attribute__((always_inline)) {
    for (std::int64_t j = 0; j < lines; j += L::N) {
      typename L::Summed sum = sums[j / L::N];
      const auto take = [&](std::int64_t k) __attribute__((always_inline)) {
        if (j * sizeof(T) % 64 == 0) __builtin_prefetch(x + (k + kAhead) * next + j);
        sum = combined<product>(sum, L::widened(L::load(x + k * next + j)));
        L::store(__builtin_convertvector(sum, typename L::Stored), y + k * next + j);
      };
      take(0);
      if constexpr (count() == 4) take(1), take(2), take(3);
      sums[j / L::N] = sum;
    }
  };
  std::int64_t i = 0;
  for (; i + 4 <= length; i += 4, x += 4 * next, y += 4 * next) rows(std::integral_constant<std::int64_t, 4>{});
  for (; i < length; ++i, x += next, y += next) rows(std::integral_constant<std::int64_t, 1>{});
}

/// Scans N dense lines, `across` apart, a square at a time; `non_temporal` results bypass the caches.
template <bool product, bool non_temporal, class T>
void lines_apart(const T* x, T* y, std::int64_t length, std::int64_t across) {
  using L = DenseLanes<T>;
  constexpr int N = L::N;
  constexpr std::int64_t kLine = 64 / sizeof(T), kAhead = 4 * kLine;  // elements (build/bin/bandwidth 'cumsum(1)')
  typename L::Summed sum = typename L::Summed{} + (product ? 1 : 0);
  std::int64_t i = 0;
  for (; i + N <= length; i += N) {
    typename L::Stored v[N];
#pragma GCC unroll 4
    for (int r = 0; r < N; ++r) {
      if (i % kLine == 0) __builtin_prefetch(x + r * across + i + kAhead);
      v[r] = L::load(x + r * across + i);
    }
    L::transpose(v);
#pragma GCC unroll 4
    for (int c = 0; c < N; ++c) {
      sum = combined<product>(sum, L::widened(v[c]));
      v[c] = __builtin_convertvector(sum, typename L::Stored);
    }
    L::transpose(v);
#pragma GCC unroll 4
    for (int r = 0; r < N; ++r) {
      T* const to = y + r * across + i;
      if constexpr (non_temporal) L::stream(v[r], to);
      else L::store(v[r], to);
    }
  }
  for (int r = 0; r < N; ++r) one_line<product>(x + r * across, y + r * across, i, length, 1, sum[r]);
}

template <bool product, class T>
void scan(const ScanLines& s) {
  const T* const x = static_cast<const T*>(s.x);
  T* const y = static_cast<T*>(s.y);
  std::int64_t line = 0;
  if (s.across == 1) {
    constexpr int N = Lanes<T>::N;
    while (s.lines - line >= N) {
      const std::int64_t whole = (s.lines - line) / N * N, lines = whole < kScanBeside ? whole : kScanBeside;
      lines_beside<product>(x + line, y + line, s.length, s.next, lines);
      line += lines;
    }
  } else if (s.next == 1) {
    constexpr int N = DenseLanes<T>::N;
    const auto begin = reinterpret_cast<std::uintptr_t>(y), step = static_cast<std::uintptr_t>(s.across) * sizeof(T);
    const bool non_temporal = s.non_temporal && (begin | step) % 64 == 0;  // results are whole lines of the cache
    for (; s.lines - line >= N; line += N) {
      const T* const from = x + line * s.across;
      T* const to = y + line * s.across;
      if (non_temporal) lines_apart<product, true>(from, to, s.length, s.across);
      else lines_apart<product, false>(from, to, s.length, s.across);
    }
    if (non_temporal) finish_non_temporal();
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
