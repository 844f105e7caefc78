// Running sums and products of many lines at once: one line to a lane, so that each is added up in order, whatever lies
// beside it. Lines that are dense in memory are transposed in registers, a square at a time.
#include <vesta/core/cpu/scan_kernels.h>

#include <type_traits>
#include <utility>

#include <vesta/core/cpu/far.h>
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

  /// Returns elements as they are summed. (GCC 12 makes two halves of __builtin_convertvector.)
  VESTA_INLINE static Summed widened(Stored v) {
#if defined(VESTA_SIMD_AVX512)
    if constexpr (std::is_same_v<T, float>) return (Summed)_mm512_maskz_cvtps_pd(0xff, (__m256)v);
#endif
    return __builtin_convertvector(v, Summed);
  }

  /// Transposes a square of N vectors: each stage interleaves the first half of them with the second. Of vectors of two
  /// halves, whose elements take longer to cross between them, all but the last stage keep to the halves.
  VESTA_INLINE static void transpose(Stored (&v)[N]) {
    Stored w[N];
    if constexpr (N == 8 && sizeof(Stored) == 32) {
#pragma GCC unroll 4
      for (int r = 0; r < 8; r += 2) {
        w[r] = __builtin_shufflevector(v[r], v[r + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        w[r + 1] = __builtin_shufflevector(v[r], v[r + 1], 2, 10, 3, 11, 6, 14, 7, 15);
      }
#pragma GCC unroll 2
      for (int r = 0; r < 8; r += 4) {  // columns 0 and 4, 1 and 5, 2 and 6, 3 and 7 of four rows
        v[r] = __builtin_shufflevector(w[r], w[r + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        v[r + 1] = __builtin_shufflevector(w[r], w[r + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        v[r + 2] = __builtin_shufflevector(w[r + 1], w[r + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        v[r + 3] = __builtin_shufflevector(w[r + 1], w[r + 3], 2, 3, 10, 11, 6, 7, 14, 15);
      }
#pragma GCC unroll 4
      for (int c = 0; c < 4; ++c) {
        w[c] = __builtin_shufflevector(v[c], v[c + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        w[c + 4] = __builtin_shufflevector(v[c], v[c + 4], 4, 5, 6, 7, 12, 13, 14, 15);
      }
#pragma GCC unroll 8
      for (int r = 0; r < 8; ++r) v[r] = w[r];
      return;
    }
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

/// Scans `columns` elements, whole squares of them, of N lines that lie `pitch` apart, in place.
template <bool product, class T>
VESTA_INLINE void scan_squares(T* lines, std::int64_t pitch, std::int64_t columns, typename Lanes<T>::Summed& sum) {
  using L = Lanes<T>;
  constexpr int N = L::N;
  for (std::int64_t i = 0; i < columns; i += N) {
    typename L::Stored v[N];
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) v[r] = L::load(lines + r * pitch + i);
    L::transpose(v);
#pragma GCC unroll 8
    for (int c = 0; c < N; ++c) {
      sum = combined<product>(sum, L::widened(v[c]));
      v[c] = __builtin_convertvector(sum, typename L::Stored);
    }
    L::transpose(v);
#pragma GCC unroll 8
    for (int r = 0; r < N; ++r) L::store(v[r], lines + r * pitch + i);
  }
}

/// Scans up to `most` times N dense lines, `across` apart, kSegment bytes of each at a time, in a buffer: lines a power
/// of two apart share places of the cache, and short pieces of many lines are no streams that the processor foresees.
template <bool product, int most, class T>
VESTA_INLINE void lines_apart(const T* x, T* y, std::int64_t length, std::int64_t across, int groups, bool far) {
  using L = Lanes<T>;
  constexpr int N = L::N;
  constexpr std::int64_t kSegment = 256 / sizeof(T), kPitch = kSegment + 64 / sizeof(T);
  alignas(64) T buffer[most * N * kPitch];
  typename L::Summed sum[most];
  for (int g = 0; g < most; ++g) sum[g] = typename L::Summed{} + (product ? 1 : 0);
  const int lines = groups * N;
  const auto segment = [&](std::int64_t at, auto columns) __attribute__((always_inline)) {
    for (int r = 0; r < lines; ++r) {
      const T* const from = x + r * across + at;
      for (std::int64_t k = 0; k < columns; k += 64 / sizeof(T)) __builtin_prefetch(from + columns + k, 0, 2);
      if (!far) {
        const T* const to = y + r * across + at;
        for (std::int64_t k = 0; k < columns; k += 64 / sizeof(T)) __builtin_prefetch(to + k, 1, 2);
      }
      __builtin_memcpy(buffer + r * kPitch, from, std::size_t(columns) * sizeof(T));
    }
    for (int g = 0; g < groups; ++g) scan_squares<product>(buffer + g * N * kPitch, kPitch, columns, sum[g]);
    for (int r = 0; r < lines; ++r) {
      const T* const from = buffer + r * kPitch;
      T* const to = y + r * across + at;
      if (far && columns == kSegment) {
        for (std::int64_t k = 0; k < columns; k += kVectorBytes / sizeof(T)) {
          Vec<float>::load(reinterpret_cast<const float*>(from + k)).stream(reinterpret_cast<float*>(to + k));
        }
      } else {
        __builtin_memcpy(to, from, std::size_t(columns) * sizeof(T));
      }
    }
  };
  std::int64_t i = 0;
  for (; i + kSegment <= length; i += kSegment) segment(i, std::integral_constant<std::int64_t, kSegment>{});
  for (; i + N <= length; i += N) segment(i, std::integral_constant<std::int64_t, N>{});
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
    while (s.lines - line >= N) {
      const std::int64_t whole = (s.lines - line) / N * N, lines = whole < kScanBeside ? whole : kScanBeside;
      lines_beside<product>(x + line, y + line, s.length, s.next, lines);
      line += lines;
    }
  } else if (s.next == 1) {
    const auto begin = reinterpret_cast<std::uintptr_t>(y), step = static_cast<std::uintptr_t>(s.across) * sizeof(T);
    const bool far = s.far && (begin | step) % 64 == 0;  // segments are whole lines of the cache
    while (s.lines - line >= N) {
      const std::int64_t left = (s.lines - line) / N, groups = left < kMost ? left : kMost;
      lines_apart<product, kMost>(x + line * s.across, y + line * s.across, s.length, s.across, int(groups), far);
      line += groups * N;
    }
    if (far) finish_far();
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
