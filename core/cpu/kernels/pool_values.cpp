// The values of max pooling without their indices: along the lines first, then down the columns, which finds the first
// of equal values as well. NaN is left aside and reported: who wins then depends on the order.
#include <vesta/core/cpu/pool_kernels.h>

#include <limits>

#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/rows.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Asks for what lies a few KiB behind a line: the lines that come next, of this plane or of the next one.
template <class T>
VESTA_INLINE void expect(const T* x) {
  constexpr std::int64_t kAhead = 4096;  // bytes (build/bin/bandwidth max_pool2d)
  __builtin_prefetch(reinterpret_cast<const char*>(x) + kAhead, 0, 2);
}

template <class C>
VESTA_INLINE Vec<C> lowest() {
  return Vec<C>(-std::numeric_limits<C>::infinity());
}

/// Every other number of two vectors, from number 0 or 1 on, quarter by quarter: each 16 bytes hold those of the first
/// vector's 16 bytes there, then the second one's. That is one instruction, and maxima do not mind the order.
template <class C>
struct InQuarters {
  static constexpr int N = Vec<C>::N, Q = 16 / int(sizeof(C));
  Vec<C> v;
  template <int from>
  VESTA_INLINE static InQuarters every_other(Vec<C> low, Vec<C> high) {
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      return InQuarters{Vec<C>(__builtin_shufflevector(
          low.raw, high.raw, (I / Q * Q + I % Q % (Q / 2) * 2 + from + (I % Q < Q / 2 ? 0 : N))...))};
    }(std::make_integer_sequence<int, N>{});
  }
  /// Returns the numbers in their order.
  VESTA_INLINE Vec<C> in_order() const {
    return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
      return Vec<C>(__builtin_shufflevector(v.raw, v.raw,
                                            (I % (N / 2) / (Q / 2) * Q + I % (Q / 2) + (I < N / 2 ? 0 : Q / 2))...));
    }(std::make_integer_sequence<int, N>{});
  }
  VESTA_INLINE friend InQuarters larger(InQuarters a, InQuarters b) { return {higher_or_first(a.v, b.v)}; }
};

/// Halves n elements: the larger of each two neighbours.
template <class T, class C>
VESTA_INLINE Mask<C> pairs_along(const T* x, std::int64_t n, C* to) {
  constexpr std::int64_t N = Vec<C>::N;
  Mask<C> nan(false);
  const auto pool = [&](Vec<C> low, Vec<C> high, C* at) __attribute__((always_inline)) {
    nan = nan | (low != low) | (high != high);
    using Q = InQuarters<C>;
    larger(Q::template every_other<0>(low, high), Q::template every_other<1>(low, high)).in_order().store(at);
  };
  std::int64_t i = 0;
  for (; i + 2 * N <= n; i += 2 * N) {
    pool(load_row<C>(x + i, N), load_row<C>(x + i + N, N), to + i / 2);
  }
  if (i < n) {
    const std::int64_t left = n - i;
    const Vec<C> low = load_row<C>(x + i, left < N ? left : N);
    pool(low, left > N ? load_row<C>(x + i + N, left - N) : low, to + i / 2);
  }
  return nan;
}

/// Copies a line into the middle of a padded one.
template <class T, class C>
VESTA_INLINE Mask<C> widen_line(const T* x, std::int64_t n, C* to) {
  Mask<C> nan(false);
  each_vector<C>(n, [&](std::int64_t i, std::int64_t w) __attribute__((always_inline)) {
    expect(x + i);
    const Vec<C> v = load_row<C>(x + i, w);
    nan = nan | (v != v);
    store_row<C>(v, to + i, w);
  });
  return nan;
}

/// Pools a padded line, a whole number of vectors: window j sees line[j * stride + k * dilation] for k < taps.
/// Stride and taps are known to the compiler where they are common.
template <int known, int known_taps, class C>
VESTA_INLINE void along(const C* line, std::int64_t any, std::int64_t any_taps, std::int64_t any_dilation,
                        std::int64_t out, C* to) {
  using V = Vec<C>;
  constexpr std::int64_t N = V::N;
  const std::int64_t stride = known ? known : any, taps = known_taps ? known_taps : any_taps;
  const std::int64_t dilation = known ? 1 : any_dilation;
  if constexpr (known == 2) {
    using Q = InQuarters<C>;
    for (std::int64_t j = 0; j < out; j += N) {
      const C* const from = line + 2 * j;
      const V low = V::load(from), high = V::load(from + N);
      Q best = larger(Q::template every_other<0>(low, high), Q::template every_other<1>(low, high));
      if (taps == 3) best = larger(best, Q::template every_other<0>(V::load(from + 2), V::load(from + 2 + N)));
      best.in_order().store(to + j);
    }
    return;
  }
  const auto tap = [&](std::int64_t j, std::int64_t k) __attribute__((always_inline)) {
    const C* const from = line + j * stride + k * dilation;
    if (known == 1 || stride == 1) return V::load(from);
    C lanes[N];
    for (std::int64_t i = 0; i < N; ++i) lanes[i] = from[i * stride];
    return V::load(lanes);
  };
  for (std::int64_t j = 0; j < out; j += N) {
    V best = tap(j, 0);
#pragma GCC unroll 4
    for (std::int64_t k = 1; k < taps; ++k) best = higher_or_first(best, tap(j, k));
    best.store(to + j);
  }
}

/// Writes the largest of `taps` lines that are `step` apart.
template <int taps, class C, class T>
VESTA_INLINE void down(const C* lines, std::int64_t step, std::int64_t n, T* y, bool non_temporal) {
  each_vector<C>(n, [&](std::int64_t j, std::int64_t w) __attribute__((always_inline)) {
    Vec<C> best = Vec<C>::load(lines + j);
    for (int k = 1; k < taps; ++k) best = higher_or_first(best, Vec<C>::load(lines + k * step + j));
    if constexpr (std::is_same_v<T, C>) {
      if (non_temporal) return best.stream(y + j);
    }
    store_row<C>(best, y + j, w);
  });
}

/// Writes the larger of each two lines of n < N numbers, `count` results: each as a whole vector, over whose surplus
/// the next one is written (build/bin/bandwidth 'max_pool2d, 2'). Returns how many there are: the last vectors would
/// write beyond.
template <class C>
VESTA_INLINE std::int64_t pairs_down(const C* lines, std::int64_t n, std::int64_t count, C* y) {
  const std::int64_t end = count * n - Vec<C>::N;
  std::int64_t at = 0;
  for (; at <= end; at += n) {
    higher_or_first(Vec<C>::load(lines + 2 * at), Vec<C>::load(lines + 2 * at + n)).store(y + at);
  }
  return at / n;
}

/// taps_inside() of core/ops/tap_range.h, inlined: taps [first, last) lie on elements.
struct Inside {
  std::int64_t first, last;
};
VESTA_INLINE Inside inside(std::int64_t corner, std::int64_t kernel, std::int64_t dilation, std::int64_t n) {
  Inside t{0, kernel};
  if (corner < 0) t.first = (-corner - 1) / dilation + 1;
  if ((kernel - 1) * dilation >= n - corner) t.last = (n - corner - 1) / dilation + 1;
  return t;
}

template <class T>
bool pool_values(const PoolPlane<T>& p) {
  using C = compute_t<T>;
  using V = Vec<C>;
  const std::int64_t width = p.in[2], out = p.out[2], row0 = p.first_row, rows = p.last_row - p.first_row;
  C* const pooled = p.room;  // [rows, out]
  C* const line = pooled + rows * out + V::N;
  Mask<C> nan(false);
  const T* const x = p.x + row0 * width;
  if (p.kernel[2] == 2 && p.stride[2] == 2 && p.dilation[2] == 1 && p.padding[2] == 0 && width == 2 * out) {
    nan = pairs_along<T, C>(x, rows * width, pooled);
  } else {
    // Some lines at a time, so that what was stored has left the store buffer when it is read in other pieces.
    for (std::int64_t i = 0; i < kPoolLines * p.line; ++i) line[i] = lowest<C>()[0];
    for (std::int64_t r = 0; r < rows; r += kPoolLines) {
      const std::int64_t lines = rows - r < kPoolLines ? rows - r : kPoolLines;
      for (std::int64_t l = 0; l < lines; ++l) {
        nan = nan | widen_line<T, C>(x + (r + l) * width, width, line + l * p.line + p.padding[2]);
      }
      for (std::int64_t l = 0; l < lines; ++l) {
        const C* const from = line + l * p.line;
        C* const to = pooled + (r + l) * out;
        switch (p.stride[2] * 16 + (p.dilation[2] == 1 && p.kernel[2] < 16 ? p.kernel[2] : 0)) {
          case 16 + 2: along<1, 2>(from, 1, 2, 1, out, to); break;
          case 16 + 3: along<1, 3>(from, 1, 3, 1, out, to); break;
          case 32 + 2: along<2, 2>(from, 2, 2, 1, out, to); break;
          case 32 + 3: along<2, 3>(from, 2, 3, 1, out, to); break;
          default: along<0, 0>(from, p.stride[2], p.kernel[2], p.dilation[2], out, to);
        }
      }
    }
  }
  if (any(nan)) return false;
  T* y = p.y;
  std::int64_t o = p.first;
  if constexpr (std::is_same_v<T, C>) {
    const bool pairs = p.in[0] == 1 && p.out[0] == 1 && p.kernel[0] == 1 && p.kernel[1] == 2 && p.stride[1] == 2 &&
                       p.dilation[1] == 1 && p.padding[1] == 0 && p.out[1] * 2 <= p.in[1];
    if (pairs && out < V::N) o += pairs_down(pooled, out, p.last - o, y), y += (o - p.first) * out;
  }
  std::int64_t at = o / p.out[1], in_layer = o % p.out[1];  // of the output row: its layer, its row there
  for (; o < p.last; ++o, y += out, ++in_layer) {
    if (in_layer == p.out[1]) in_layer = 0, ++at;
    const std::int64_t layer = at * p.stride[0] - p.padding[0];
    const std::int64_t row = in_layer * p.stride[1] - p.padding[1];
    const Inside layers = inside(layer, p.kernel[0], p.dilation[0], p.in[0]);
    const Inside taps = inside(row, p.kernel[1], p.dilation[1], p.in[1]);
    const std::int64_t step = p.dilation[1] * out, count = taps.last - taps.first;
    const auto first = [&](std::int64_t a) __attribute__((always_inline)) {
      return pooled + ((layer + a * p.dilation[0]) * p.in[1] + row + taps.first * p.dilation[1] - row0) * out;
    };
    const bool flat = layers.last - layers.first == 1;
    if (flat && count == 3) {
      down<3>(first(layers.first), step, out, y, p.non_temporal);
    } else if (flat && count == 2) {
      down<2>(first(layers.first), step, out, y, p.non_temporal);
    } else {
      each_vector<C>(out, [&](std::int64_t j, std::int64_t w) __attribute__((always_inline)) {
        V best = lowest<C>();
        for (std::int64_t a = layers.first; a < layers.last; ++a) {
          const C* from = first(a) + j;
          for (std::int64_t b = 0; b < count; ++b, from += step) best = higher_or_first(best, V::load(from));
        }
        store_row<C>(best, y + j, w);
      });
    }
  }
  if (p.non_temporal) finish_non_temporal();
  return true;
}

template <class T>
bool pool_values_of_pixels(const PoolPlane<T>& p, std::int64_t channels) {
  using C = compute_t<T>;
  Mask<C> nan(false);
  T* y = p.y;
  // from what a row of outputs sees to what the next one does
  const std::int64_t next = p.stride[1] * p.in[2] * channels;
  for (std::int64_t o = p.first; o < p.last; ++o) {
    const std::int64_t layer = o / p.out[1] * p.stride[0] - p.padding[0];
    const std::int64_t row = o % p.out[1] * p.stride[1] - p.padding[1];
    const Inside layers = inside(layer, p.kernel[0], p.dilation[0], p.in[0]);
    const Inside rows = inside(row, p.kernel[1], p.dilation[1], p.in[1]);
    for (std::int64_t j = 0; j < p.out[2]; ++j, y += channels) {
      const std::int64_t column = j * p.stride[2] - p.padding[2], step = p.dilation[2] * channels;
      const Inside columns = inside(column, p.kernel[2], p.dilation[2], p.in[2]);
      each_vector<C>(channels, [&](std::int64_t c, std::int64_t w) __attribute__((always_inline)) {
        Vec<C> best = lowest<C>();
        for (std::int64_t a = layers.first; a < layers.last; ++a) {
          for (std::int64_t r = rows.first; r < rows.last; ++r) {
            const std::int64_t line = (layer + a * p.dilation[0]) * p.in[1] + row + r * p.dilation[1];
            const T* from = p.x + (line * p.in[2] + column) * channels + columns.first * step + c;
            for (std::int64_t k = columns.first; k < columns.last; ++k, from += step) {
              __builtin_prefetch(from + next, 0, 2);
              const Vec<C> v = load_row<C>(from, w);
              nan = nan | (v != v);
              best = higher_or_first(best, v);
            }
          }
        }
        store_row<C>(best, y + c, w);
      });
    }
  }
  return !any(nan);
}

template <class T>
void enter(PoolValues<T>& k) {
  k = {&pool_values<T>, &pool_values_of_pixels<T>};
}

}  // namespace

void register_pool_values(PoolValues<float>& singles, PoolValues<double>& doubles, PoolValues<Half>& halves,
                          PoolValues<BFloat16>& bfloats) {
  enter(singles), enter(doubles), enter(halves), enter(bfloats);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
