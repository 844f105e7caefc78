// Sums and maps of pixels, whose channels lie side by side, for normalisation: Note [Sums over pixels] in
// norm_pixels.h. They have the bits of the rows of row_kernels.cpp.
#include <vesta/core/cpu/row_kernels.h>

#include <algorithm>
#include <array>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/wide_statistics.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Adds up the vectors of f(pixel, way) over n <= chain pixels, or the first ones and their products with the second
/// ones where there are two `sums`, for `ways` vectors of channels side by side, in the slots of a row's sums. Pixels
/// are read in the order of memory, up to four of a slot at a time.
template <class C, int ways, int sums, class F>
VESTA_INLINE void sum_pixels(int64_t n, std::array<Vec<C>, sums> (&total)[ways], F f) {
  constexpr int64_t N = Vec<C>::N, kSlots = 4 * N;
  Vec<C> slot[kSlots][ways][sums];
  const int64_t whole = n / N * N, rounds = whole / kSlots;
  const auto add = [&](int64_t s, int64_t first, auto count, bool begins) __attribute__((always_inline)) {
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) {
      Vec<C> v[sums];
#pragma GCC unroll 2
      for (int k = 0; k < sums; ++k) v[k] = begins ? Vec<C>(C(0)) : slot[s][w][k];
      for (int64_t r = 0; r < count; ++r) {
        const std::array<Vec<C>, sums> more = f(first + r * kSlots + s, w);
        v[0] = v[0] + more[0];
        if constexpr (sums == 2) v[1] = mul_add(more[0], more[1], v[1]);
      }
#pragma GCC unroll 2
      for (int k = 0; k < sums; ++k) slot[s][w][k] = v[k];
    }
  };
  int64_t r = 0;
  const auto add_rounds = [&](auto count) __attribute__((always_inline)) {
    for (; r + count <= rounds; r += count) {
      if (r == 0) {
        for (int64_t s = 0; s < kSlots; ++s) add(s, 0, count, true);
      } else {
        for (int64_t s = 0; s < kSlots; ++s) add(s, r * kSlots, count, false);
      }
    }
  };
  add_rounds(std::integral_constant<int64_t, 4>{});
  add_rounds(std::integral_constant<int64_t, 2>{});
  add_rounds(std::integral_constant<int64_t, 1>{});
  constexpr std::integral_constant<int64_t, 1> one{};
  const int64_t rest = whole - rounds * kSlots;
  for (int64_t s = 0; s < rest; ++s) add(s, rounds * kSlots, one, rounds == 0);
  if (rounds == 0) {
    for (int64_t s = rest; s < kSlots; ++s) {
      for (int w = 0; w < ways; ++w) {
        for (int k = 0; k < sums; ++k) slot[s][w][k] = Vec<C>(C(0));
      }
    }
  }
  for (int64_t e = whole; e < n; ++e) add(3 * N + e - whole, e - (3 * N + e - whole), one, false);
#pragma GCC unroll 4
  for (int w = 0; w < ways; ++w) {
#pragma GCC unroll 2
    for (int k = 0; k < sums; ++k) {
      Vec<C> lane[N];
      for (int64_t l = 0; l < N; ++l)
        lane[l] = (slot[l][w][k] + slot[2 * N + l][w][k]) + (slot[N + l][w][k] + slot[3 * N + l][w][k]);
      for (int64_t half = N / 2; half; half /= 2) {
        for (int64_t l = 0; l < half; ++l) lane[l] = lane[l] + lane[l + half];
      }
      total[w][k] = lane[0];
    }
  }
}

constexpr int64_t kPixelsAhead = 32;  // that are asked for before they are read (build/bin/bandwidth 'pixels, tr.')

/// Calls f.operator()<ways>(first channel, channels of a vector) for vectors of `count` channels.
template <class C, class F>
VESTA_INLINE void strips_of_channels(int64_t count, F f) {
  constexpr int64_t N = Vec<C>::N;
  int64_t c = 0;
  for (; c + 2 * N <= count; c += 2 * N) f.template operator()<2>(c, N);
  for (; c < count; c += N) f.template operator()<1>(c, std::min(N, count - c));
}

template <class T>
void statistics_pixels(const char* xb, int64_t n, int64_t channels, int64_t count, double* mean, double* squares) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N;
  const int64_t some = center_elements<C>(n);
  const double part = 1 / double(n);
  strips_of_channels<C>(count, [&]<int ways>(int64_t c, int64_t width) {
    const T* const x = reinterpret_cast<const T*>(xb) + c;
    const auto at = [&](int64_t p, int w) __attribute__((always_inline)) {
      return load_row<C>(x + p * channels + w * N, ways > 1 ? N : width);  // which the compiler knows of whole vectors
    };
    V near[ways];
    std::array<V, 1> first[ways];
    std::array<V, 2> both[ways];
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) near[w] = at(0, w);
    sum_pixels<C, ways, 1>(
        some, first, [&](int64_t p, int w) __attribute__((always_inline)) { return std::array{at(p, w) - near[w]}; });
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) near[w] = near[w] + first[w][0] / V(C(some));
    const auto sum_up = [&]() __attribute__((noinline)) {
      sum_pixels<C, ways, 2>(n, both, [&](int64_t p, int w) __attribute__((always_inline)) {
        __builtin_prefetch(x + (p + kPixelsAhead) * channels + w * N, 0, 2);
        const V d = at(p, w) - near[w];
        return std::array{d, d};
      });
    };
    sum_up();
    const auto found = [&](int w, int64_t l) __attribute__((always_inline)) {
      return Deviations{double(both[w][0][int(l)]), double(both[w][1][int(l)])};
    };
    bool again = false;
    for (int w = 0; w < ways; ++w) {
      for (int64_t l = 0; l < width; ++l) {
        const Deviations d = found(w, l);
        if (!d.is_off(part)) [[likely]]
          continue;
        near[w].raw[l] = C(double(near[w][int(l)]) + d.apart(part));
        again = true;
      }
    }
    if (again) sum_up();
    for (int w = 0; w < ways; ++w) {
      for (int64_t l = 0; l < width; ++l) {
        const int64_t to = c + w * N + l;
        const Deviations d = found(w, l);
        enter_statistics(double(near[w][int(l)]) + d.apart(part), d.around_mean(part), x + w * N + l, channels, n,
                         mean + to, squares + to);
      }
    }
  });
}

template <class T>
void gradient_sums_pixels(const char* gb, const char* xb, int64_t n, int64_t channels, int64_t count, const char* mean,
                          double* sum, double* product) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N;
  strips_of_channels<C>(count, [&]<int ways>(int64_t c, int64_t width) {
    const T *const g = reinterpret_cast<const T*>(gb) + c, *const x = reinterpret_cast<const T*>(xb) + c;
    V m[ways];
    std::array<V, 2> both[ways];
#pragma GCC unroll 4
    for (int w = 0; w < ways; ++w) m[w] = load_row<C>(reinterpret_cast<const C*>(mean) + c + w * N, width);
    sum_pixels<C, ways, 2>(n, both, [&](int64_t p, int w) __attribute__((always_inline)) {
      const int64_t at = p * channels + w * N;
      __builtin_prefetch(g + at + kPixelsAhead * channels, 0, 2);
      __builtin_prefetch(x + at + kPixelsAhead * channels, 0, 2);
      const int64_t wide = ways > 1 ? N : width;
      return std::array{load_row<C>(g + at, wide), load_row<C>(x + at, wide) - m[w]};
    });
    for (int w = 0; w < ways; ++w) {
      for (int64_t l = 0; l < width; ++l) {
        sum[c + w * N + l] = double(both[w][0][int(l)]), product[c + w * N + l] = double(both[w][1][int(l)]);
      }
    }
  });
}

template <class T>
void affine_pixels(const char* xb, const char* mb, const char* ab, const char* bb, char* out, int64_t n,
                   int64_t channels, bool non_temporal) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const C *m = reinterpret_cast<const C*>(mb), *a = reinterpret_cast<const C*>(ab), *b = reinterpret_cast<const C*>(bb);
  T* y = reinterpret_cast<T*>(out);
  for (int64_t p = 0; p < n; ++p, x += channels, y += channels) {
    each_vector<C>(channels, [&](int64_t i, int64_t w) {
      const Vec<C> d = load_row<C>(x + i, w) - load_row<C>(m + i, w);
      store_result<C>(d * load_row<C>(a + i, w) + load_row<C>(b + i, w), y + i, w, non_temporal);
    });
  }
}

template <class T>
void combine_pixels(const char* gb, const char* xb, const char* mb, const char* ab, const char* bb, const char* cb,
                    char* out, int64_t n, int64_t channels, bool non_temporal) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const C *m = reinterpret_cast<const C*>(mb), *a = reinterpret_cast<const C*>(ab), *b = reinterpret_cast<const C*>(bb),
          *c = reinterpret_cast<const C*>(cb);
  T* gx = reinterpret_cast<T*>(out);
  for (int64_t p = 0; p < n; ++p, g += channels, x += channels, gx += channels) {
    each_vector<C>(channels, [&](int64_t i, int64_t w) {
      const Vec<C> d = load_row<C>(x + i, w) - load_row<C>(m + i, w);
      store_result<C>(load_row<C>(g + i, w) * load_row<C>(a + i, w) + d * load_row<C>(b + i, w) + load_row<C>(c + i, w),
                      gx + i, w, non_temporal);
    });
  }
}

void add_statistics(double count, double* mean, double* squares, double more, const double* more_mean,
                    const double* more_squares, int64_t channels) {
  using D = Vec<double>;
  const D part{more / (count + more)}, before{count};
  each_vector<double>(channels, [&](int64_t c, int64_t n) __attribute__((always_inline)) {
    const D m = load_row<double>(mean + c, n), other = load_row<double>(more_mean + c, n), apart = other - m;
    const D added = load_row<double>(more_squares + c, n) + apart * apart * before * part;
    store_row<double>(load_row<double>(squares + c, n) + added, squares + c, n);
    store_row<double>(m + select(isinf(m), other, apart * part), mean + c, n);
  });
}

}  // namespace

void register_row_pixels(RowKernels (&rows)[kNumDTypes]) {
  const auto one = [&]<class T>() {
    RowKernels& k = rows[int(dtype_of<T>)];
    k.affine_pixels = &affine_pixels<T>;
    k.combine_pixels = &combine_pixels<T>;
    k.statistics_pixels = &statistics_pixels<T>;
    k.gradient_sums_pixels = &gradient_sums_pixels<T>;
  };
  one.template operator()<float>();
  one.template operator()<double>();
  one.template operator()<Half>();
  one.template operator()<BFloat16>();
  rows[int(DType::float64)].add_statistics = &add_statistics;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
