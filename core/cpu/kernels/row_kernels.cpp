// Kernels over contiguous rows: softmax and cross-entropy, the sums and maps of normalisation, the step of an LSTM.
// Sums run in a fixed order that depends on the length of the row alone.
#include <vesta/core/cpu/row_kernels.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int64_t kBlock = 64;  // vectors of a chain

/// Adds up each of the `count` vectors of f(i, n) over the vectors of a row in four chains of at most kBlock vectors,
/// the blocks in double.
template <class C, int count, class F>
VESTA_INLINE void sum_all(int64_t n, double* totals, F f) {
  constexpr int64_t N = Vec<C>::N;
  for (int k = 0; k < count; ++k) totals[k] = 0;
  for (int64_t i = 0; i < n;) {
    Vec<C> chain[4][count];
    for (int w = 0; w < 4; ++w) {
      for (int k = 0; k < count; ++k) chain[w][k] = Vec<C>(C(0));
    }
    const auto add = [&](int w, int64_t at, int64_t lanes) __attribute__((always_inline)) {
      const std::array<Vec<C>, count> v = f(at, lanes);
      for (int k = 0; k < count; ++k) chain[w][k] = chain[w][k] + v[k];
    };
    const int64_t end = std::min(n, i + N * kBlock);
    for (; i + 4 * N <= end; i += 4 * N) {
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) add(w, i + w * N, N);
    }
    for (int w = 0; i + N <= end; i += N, ++w) add(w, i, N);
    C rest[N];
    const int64_t left = end - i;
    if (left > 0) {  // lanes past the end must not count, whatever f returns for their zeros
      const std::array<Vec<C>, count> v = f(i, left);
      for (int k = 0; k < count; ++k) {
        v[k].store(rest);
        for (int64_t j = left; j < N; ++j) rest[j] = C(0);
        chain[3][k] = chain[3][k] + Vec<C>::load(rest);
      }
      i = end;
    }
    for (int k = 0; k < count; ++k) {
      ((chain[0][k] + chain[2][k]) + (chain[1][k] + chain[3][k])).store(rest);
      for (int64_t half = N / 2; half; half /= 2) {
        for (int64_t j = 0; j < half; ++j) rest[j] += rest[j + half];
      }
      totals[k] += double(rest[0]);
    }
  }
}

/// Adds up f(i, n), one vector.
template <class C, class F>
VESTA_INLINE double sum_vectors(int64_t n, F f) {
  double total;
  sum_all<C, 1>(n, &total, [&](int64_t i, int64_t w) __attribute__((always_inline)) { return std::array{f(i, w)}; });
  return total;
}
/// Adds up the two vectors of f(i, n) in one pass.
template <class C, class F>
VESTA_INLINE void sum_pairs(int64_t n, double* first, double* second, F f) {
  double totals[2];
  sum_all<C, 2>(n, totals, f);
  *first = totals[0], *second = totals[1];
}

template <class T>
compute_t<T> row_max(const T* x, int64_t n) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  const C lowest = -std::numeric_limits<C>::infinity();
  Vec<C> best = Vec<C>(lowest);
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    if (w == N) {
      best = math::maximum(best, load_row<C>(x + i, w));
    } else {
      C rest[N];
      std::fill_n(rest, N, lowest);
      for (int64_t k = 0; k < w; ++k) rest[k] = static_cast<C>(x[i + k]);
      best = math::maximum(best, Vec<C>::load(rest));
    }
  });
  C lanes[N];
  best.store(lanes);
  C m = lanes[0];
  for (int64_t k = 1; k < N; ++k) m = lanes[k] > m || lanes[k] != lanes[k] ? lanes[k] : m;
  return m;
}

/// Returns the row's maximum, or 0 if it is -inf (then every exp(x - 0) is 0 and not NaN).
template <class C>
C finite_max(C m) {
  return m == -std::numeric_limits<C>::infinity() ? C(0) : m;
}

template <class T>
double logsumexp(const char* bytes, int64_t n) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(bytes);
  if (n == 0) return -std::numeric_limits<double>::infinity();
  const C m = finite_max(row_max(x, n));
  const Vec<C> shift(m);
  double sum = sum_vectors<C>(n, [&](int64_t i, int64_t w) { return math::exp(load_row<C>(x + i, w) - shift); });
  return double(m) + std::log(sum);
}

template <class T>
void softmax(const char* xb, char* yb, int64_t n, bool log) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  T* y = reinterpret_cast<T*>(yb);
  if (n == 0) return;
  const C top = row_max(x, n);
  if (log) {
    const C m = finite_max(top);
    const Vec<C> shift(m);
    double sum = sum_vectors<C>(n, [&](int64_t i, int64_t w) { return math::exp(load_row<C>(x + i, w) - shift); });
    const Vec<C> rest{C(std::log(sum))};
    each_vector<C>(n, [&](int64_t i, int64_t w) { store_row<C>(load_row<C>(x + i, w) - shift - rest, y + i, w); });
    return;
  }
  const Vec<C> shift(top);  // a row of -inf gives NaN, as the quotient 0 / 0 does
  double sum = sum_vectors<C>(n, [&](int64_t i, int64_t w) { return math::exp(load_row<C>(x + i, w) - shift); });
  const Vec<C> scale{C(1.0 / sum)};
  each_vector<C>(
      n, [&](int64_t i, int64_t w) { store_row<C>(math::exp(load_row<C>(x + i, w) - shift) * scale, y + i, w); });
}

template <class T>
void _softmax_backward(const char* gb, const char* yb, char* out, int64_t n, bool log) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *y = reinterpret_cast<const T*>(yb);
  T* gx = reinterpret_cast<T*>(out);
  if (log) {
    const Vec<C> sum{C(sum_vectors<C>(n, [&](int64_t i, int64_t w) { return load_row<C>(g + i, w); }))};
    each_vector<C>(n, [&](int64_t i, int64_t w) {
      store_row<C>(load_row<C>(g + i, w) - math::exp(load_row<C>(y + i, w)) * sum, gx + i, w);
    });
    return;
  }
  const Vec<C> sum{
      C(sum_vectors<C>(n, [&](int64_t i, int64_t w) { return load_row<C>(g + i, w) * load_row<C>(y + i, w); }))};
  each_vector<C>(
      n, [&](int64_t i, int64_t w) { store_row<C>(load_row<C>(y + i, w) * (load_row<C>(g + i, w) - sum), gx + i, w); });
}

template <class T>
double dot(const char* xb, const char* wb, int64_t n) {
  using C = compute_t<T>;
  const T *x = reinterpret_cast<const T*>(xb), *v = reinterpret_cast<const T*>(wb);
  if (!v) return sum_vectors<C>(n, [&](int64_t i, int64_t w) { return load_row<C>(x + i, w); });
  return sum_vectors<C>(n, [&](int64_t i, int64_t w) { return load_row<C>(x + i, w) * load_row<C>(v + i, w); });
}

template <class T>
void exp_minus(const char* xb, double lse, double scale, double smooth, const char* wb, char* out, int64_t n) {
  using C = compute_t<T>;
  const T *x = reinterpret_cast<const T*>(xb), *v = reinterpret_cast<const T*>(wb);
  T* gx = reinterpret_cast<T*>(out);
  const Vec<C> shift{C(lse)}, factor{C(scale)}, less{C(smooth)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    Vec<C> r = math::exp(load_row<C>(x + i, w) - shift) * factor;
    if (smooth != 0) r = r - (v ? less * load_row<C>(v + i, w) : less);
    store_row<C>(r, gx + i, w);
  });
}

template <class T>
void moments(const char* xb, int64_t n, double shift, double* sum, double* squares) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const Vec<C> s{C(shift)};
  sum_pairs<C>(n, sum, squares, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    const Vec<C> d = load_row<C>(x + i, w) - s;
    return std::array{d, d * d};
  });
}

template <class T>
void affine(const char* xb, double scale, double shift, char* out, int64_t n) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  T* y = reinterpret_cast<T*>(out);
  const Vec<C> a{C(scale)}, b{C(shift)};
  each_vector<C>(n, [&](int64_t i, int64_t w) { store_row<C>(load_row<C>(x + i, w) * a + b, y + i, w); });
}

template <class T>
void gradient_sums(const char* gb, const char* xb, double mean, int64_t n, double* sum, double* product) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const Vec<C> m{C(mean)};
  sum_pairs<C>(n, sum, product, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    const Vec<C> v = load_row<C>(g + i, w);
    return std::array{v, v * (load_row<C>(x + i, w) - m)};
  });
}

template <class T>
void combine(const char* gb, const char* xb, double a, double b, double c, char* out, int64_t n) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  T* gx = reinterpret_cast<T*>(out);
  const Vec<C> va{C(a)}, vb{C(b)}, vc{C(c)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    store_row<C>(load_row<C>(g + i, w) * va + load_row<C>(x + i, w) * vb + vc, gx + i, w);
  });
}

/// The slot to which sum_vectors adds element e of a piece of n: lane by lane, four vectors in turn, the last elements
/// to the fourth.
template <class C>
VESTA_INLINE int64_t slot_of(int64_t e, int64_t n) {
  constexpr int64_t N = Vec<C>::N;
  const int64_t whole = n / N * N;
  return e < whole ? e % (4 * N) : 3 * N + e - whole;
}

/// Adds the slots of each channel as sum_vectors does.
template <class C>
void add_slots(C* slots, int64_t count, double* totals) {
  constexpr int64_t N = Vec<C>::N;
  const auto at = [&](int64_t chain, int64_t lane) { return slots + (chain * N + lane) * count; };
  each_vector<C>(count, [&](int64_t i, int64_t w) {
    for (int64_t k = 0; k < N; ++k) {
      const auto load = [&](int64_t chain) { return load_row<C>(at(chain, k) + i, w); };
      store_row<C>((load(0) + load(2)) + (load(1) + load(3)), at(0, k) + i, w);
    }
    for (int64_t half = N / 2; half; half /= 2) {
      for (int64_t k = 0; k < half; ++k) {
        store_row<C>(load_row<C>(at(0, k) + i, w) + load_row<C>(at(0, k + half) + i, w), at(0, k) + i, w);
      }
    }
  });
  for (int64_t c = 0; c < count; ++c) totals[c] = double(slots[c]);
}

template <class T>
void moments_pixels(const char* xb, int64_t n, int64_t channels, int64_t count, const char* shift, double* sum,
                    double* squares, char* room) {
  using C = compute_t<T>;
  constexpr int64_t kSlots = 4 * Vec<C>::N;
  const T* x = reinterpret_cast<const T*>(xb);
  const C* s = reinterpret_cast<const C*>(shift);
  C *const first = reinterpret_cast<C*>(room), *const second = first + kSlots * count;
  std::fill_n(first, (squares ? 2 : 1) * kSlots * count, C(0));
  for (int64_t p = 0; p < n; ++p, x += channels) {
    C *const a = first + slot_of<C>(p, n) * count, *const b = second + slot_of<C>(p, n) * count;
    if (squares) {
      each_vector<C>(count, [&](int64_t i, int64_t w) {
        const Vec<C> d = load_row<C>(x + i, w) - load_row<C>(s + i, w);
        store_row<C>(load_row<C>(a + i, w) + d, a + i, w);
        store_row<C>(load_row<C>(b + i, w) + d * d, b + i, w);
      });
    } else {
      each_vector<C>(count, [&](int64_t i, int64_t w) {
        store_row<C>(load_row<C>(a + i, w) + (load_row<C>(x + i, w) - load_row<C>(s + i, w)), a + i, w);
      });
    }
  }
  add_slots(first, count, sum);
  if (squares) add_slots(second, count, squares);
}

template <class T>
void gradient_sums_pixels(const char* gb, const char* xb, int64_t n, int64_t channels, int64_t count, const char* mean,
                          double* sum, double* product, char* room) {
  using C = compute_t<T>;
  constexpr int64_t kSlots = 4 * Vec<C>::N;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const C* m = reinterpret_cast<const C*>(mean);
  C *const first = reinterpret_cast<C*>(room), *const second = first + kSlots * count;
  std::fill_n(first, 2 * kSlots * count, C(0));
  for (int64_t p = 0; p < n; ++p, g += channels, x += channels) {
    C *const a = first + slot_of<C>(p, n) * count, *const b = second + slot_of<C>(p, n) * count;
    each_vector<C>(count, [&](int64_t i, int64_t w) {
      const Vec<C> v = load_row<C>(g + i, w);
      store_row<C>(load_row<C>(a + i, w) + v, a + i, w);
      store_row<C>(load_row<C>(b + i, w) + v * (load_row<C>(x + i, w) - load_row<C>(m + i, w)), b + i, w);
    });
  }
  add_slots(first, count, sum);
  add_slots(second, count, product);
}

template <class T>
void affine_pixels(const char* xb, const char* ab, const char* bb, char* out, int64_t n, int64_t channels) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const C *a = reinterpret_cast<const C*>(ab), *b = reinterpret_cast<const C*>(bb);
  T* y = reinterpret_cast<T*>(out);
  for (int64_t p = 0; p < n; ++p, x += channels, y += channels) {
    each_vector<C>(channels, [&](int64_t i, int64_t w) {
      store_row<C>(load_row<C>(x + i, w) * load_row<C>(a + i, w) + load_row<C>(b + i, w), y + i, w);
    });
  }
}

template <class T>
void combine_pixels(const char* gb, const char* xb, const char* ab, const char* bb, const char* cb, char* out,
                    int64_t n, int64_t channels) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const C *a = reinterpret_cast<const C*>(ab), *b = reinterpret_cast<const C*>(bb), *c = reinterpret_cast<const C*>(cb);
  T* gx = reinterpret_cast<T*>(out);
  for (int64_t p = 0; p < n; ++p, g += channels, x += channels, gx += channels) {
    each_vector<C>(channels, [&](int64_t i, int64_t w) {
      store_row<C>(load_row<C>(g + i, w) * load_row<C>(a + i, w) + load_row<C>(x + i, w) * load_row<C>(b + i, w) +
                       load_row<C>(c + i, w),
                   gx + i, w);
    });
  }
}

template <class T>
void normalize(const char* xb, double mean, double rstd, const char* wb, const char* bb, char* out, int64_t n) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const C *weight = reinterpret_cast<const C*>(wb), *bias = reinterpret_cast<const C*>(bb);
  T* y = reinterpret_cast<T*>(out);
  const Vec<C> m{C(mean)}, r{C(rstd)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    Vec<C> v = (load_row<C>(x + i, w) - m) * r;
    if (weight) v = v * load_row<C>(weight + i, w);
    if (bias) v = v + load_row<C>(bias + i, w);
    store_row<C>(v, y + i, w);
  });
}

template <class T>
void normalize_sums(const char* gb, const char* xb, double mean, double rstd, const char* wb, char* of_weight,
                    char* of_bias, int64_t n, double* sum, double* product) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const C* weight = reinterpret_cast<const C*>(wb);
  C *gw = reinterpret_cast<C*>(of_weight), *gbias = reinterpret_cast<C*>(of_bias);
  const Vec<C> m{C(mean)}, r{C(rstd)};
  sum_pairs<C>(n, sum, product, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    Vec<C> v = load_row<C>(g + i, w);
    if (weight) v = v * load_row<C>(weight + i, w);
    return std::array{v, v * (load_row<C>(x + i, w) - m)};
  });
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    const Vec<C> v = load_row<C>(g + i, w);
    store_row<C>(load_row<C>(gw + i, w) + v * ((load_row<C>(x + i, w) - m) * r), gw + i, w);
    store_row<C>(load_row<C>(gbias + i, w) + v, gbias + i, w);
  });
}

template <class T>
void normalize_gradient(const char* gb, const char* xb, double mean, double rstd, const char* wb, double a, double b,
                        char* out, int64_t n) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const C* weight = reinterpret_cast<const C*>(wb);
  T* gx = reinterpret_cast<T*>(out);
  const Vec<C> m{C(mean)}, r{C(rstd)}, va{C(a)}, vb{C(b)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    Vec<C> v = load_row<C>(g + i, w);
    if (weight) v = v * load_row<C>(weight + i, w);
    store_row<C>((v - va - (load_row<C>(x + i, w) - m) * vb) * r, gx + i, w);
  });
}

template <class T>
void lstm_cell(const char* gates, const char* cx, char* hb, char* cb, char* activations, int64_t n) {
  using C = compute_t<T>;
  const T *x = reinterpret_cast<const T*>(gates), *before = reinterpret_cast<const T*>(cx);
  T *h = reinterpret_cast<T*>(hb), *c = reinterpret_cast<T*>(cb), *a = reinterpret_cast<T*>(activations);
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    const Vec<C> in = math::sigmoid(load_row<C>(x + i, w)), forget = math::sigmoid(load_row<C>(x + n + i, w)),
                 cell = math::tanh(load_row<C>(x + 2 * n + i, w)), out = math::sigmoid(load_row<C>(x + 3 * n + i, w));
    const Vec<C> state = forget * load_row<C>(before + i, w) + in * cell;
    store_row<C>(state, c + i, w);
    store_row<C>(out * math::tanh(state), h + i, w);
    store_row<C>(in, a + i, w);
    store_row<C>(forget, a + n + i, w);
    store_row<C>(cell, a + 2 * n + i, w);
    store_row<C>(out, a + 3 * n + i, w);
  });
}

template <class T>
void _lstm_cell_backward(const char* activations, const char* cx, const char* ghb, const char* gcb, char* ggates,
                         char* gcx, int64_t n) {
  using C = compute_t<T>;
  const T *a = reinterpret_cast<const T*>(activations), *before = reinterpret_cast<const T*>(cx);
  const T *gh = reinterpret_cast<const T*>(ghb), *gc = reinterpret_cast<const T*>(gcb);
  T *gx = reinterpret_cast<T*>(ggates), *gbefore = reinterpret_cast<T*>(gcx);
  const Vec<C> one{C(1)}, zero{C(0)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    const Vec<C> in = load_row<C>(a + i, w), forget = load_row<C>(a + n + i, w), cell = load_row<C>(a + 2 * n + i, w),
                 out = load_row<C>(a + 3 * n + i, w), cx0 = load_row<C>(before + i, w);
    const Vec<C> top = math::tanh(forget * cx0 + in * cell);
    const Vec<C> g = gh ? load_row<C>(gh + i, w) : zero;
    Vec<C> slope = g * out * (one - top * top);
    if (gc) slope = slope + load_row<C>(gc + i, w);
    store_row<C>(slope * cell * (in * (one - in)), gx + i, w);
    store_row<C>(slope * cx0 * (forget * (one - forget)), gx + n + i, w);
    store_row<C>(slope * in * (one - cell * cell), gx + 2 * n + i, w);
    store_row<C>(g * top * (out * (one - out)), gx + 3 * n + i, w);
    store_row<C>(slope * forget, gbefore + i, w);
  });
}

}  // namespace

void register_rows(RowKernels (&rows)[kNumDTypes]) {
  auto one = [&]<class T>() {
    int d = int(dtype_of<T>);
    rows[d] = {.softmax = &softmax<T>,
               ._softmax_backward = &_softmax_backward<T>,
               .logsumexp = &logsumexp<T>,
               .dot = &dot<T>,
               .exp_minus = &exp_minus<T>,
               .moments = &moments<T>,
               .affine = &affine<T>,
               .gradient_sums = &gradient_sums<T>,
               .combine = &combine<T>,
               .affine_pixels = &affine_pixels<T>,
               .combine_pixels = &combine_pixels<T>,
               .chain = kBlock * Vec<compute_t<T>>::N,
               .slots = 4 * Vec<compute_t<T>>::N,
               .moments_pixels = &moments_pixels<T>,
               .gradient_sums_pixels = &gradient_sums_pixels<T>,
               .normalize = &normalize<T>,
               .normalize_sums = &normalize_sums<T>,
               .normalize_gradient = &normalize_gradient<T>,
               .lstm_cell = &lstm_cell<T>,
               ._lstm_cell_backward = &_lstm_cell_backward<T>};
  };
  one.template operator()<float>();
  one.template operator()<double>();
  one.template operator()<Half>();
  one.template operator()<BFloat16>();
}

}  // namespace vesta::cpu::VESTA_ISA_NS
