// Kernels over contiguous rows: softmax and cross-entropy, the sums and maps of normalisation, the step of an LSTM.
// Sums run in a fixed order that depends on the length of the row alone.
#include <vesta/core/cpu/row_kernels.h>

#include <algorithm>
#include <array>
#include <cmath>

#include <vesta/core/cpu/row_exponentials.h>
#include <vesta/core/cpu/row_sums.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/cpu/wide_statistics.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int64_t kNear = 1 << 18;  // bytes of a row that L2 keeps from one pass to the next
constexpr int64_t kKept = 4096;     // numbers of a row that are kept on the stack

/// Returns the largest lane, NaN left aside: each half against the other.
template <class C>
VESTA_INLINE C largest_lane(Vec<C> v) {
  constexpr int N = Vec<C>::N;
  const auto with_half = [&]<int distance, int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    v = higher_or_first(v, Vec<C>(__builtin_shufflevector(v.raw, v.raw, (I ^ distance)...)));
  };
  constexpr std::make_integer_sequence<int, N> lanes{};
  if constexpr (N > 8) with_half.template operator()<8>(lanes);
  if constexpr (N > 4) with_half.template operator()<4>(lanes);
  if constexpr (N > 2) with_half.template operator()<2>(lanes);
  with_half.template operator()<1>(lanes);
  return v[0];
}

/// Returns the largest number of a row, NaN left aside: exp(NaN - m) is NaN whatever m is.
template <class T>
compute_t<T> row_max(const T* x, int64_t n) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  const C lowest = -std::numeric_limits<C>::infinity();
  Vec<C> best[4];
  for (Vec<C>& b : best) b = Vec<C>(lowest);
  int64_t i = 0;
  for (; i + 4 * N <= n; i += 4 * N) {
#pragma GCC unroll 4
    for (int64_t w = 0; w < 4; ++w) best[w] = higher_or_first(best[w], load_row<C>(x + i + w * N, N));
  }
  for (; i + N <= n; i += N) best[0] = higher_or_first(best[0], load_row<C>(x + i, N));
  if (i < n && n >= N) {
    best[1] = higher_or_first(best[1], load_row<C>(x + n - N, N));  // some of them once more
  } else if (i < n) {
    C lanes[N];
    std::fill_n(lanes, N, lowest);
    for (int64_t k = 0; i + k < n; ++k) lanes[k] = static_cast<C>(x[i + k]);
    best[1] = Vec<C>::load(lanes);
  }
  return largest_lane(higher_or_first(higher_or_first(best[0], best[1]), higher_or_first(best[2], best[3])));
}

template <class T>
ExpSum exp_sum(const char* bytes, int64_t n) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(bytes);
  if (n == 0) return {0, 0};
  const C m = finite_max(row_max(x, n));
  const Vec<C> shift(m);
  const Expected next{n * int64_t(sizeof(T)), 0};
  const auto from = [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    next.read(x, i);
    return load_row<C>(x + i, w) - shift;
  };
  return {double(m), sum_exponentials<C>(n, from, [](Vec<C>, int64_t, int64_t) {})};
}

template <class T>
ExpSum weights(char* bytes, int64_t n) {
  using C = compute_t<T>;
  C* const x = reinterpret_cast<C*>(bytes);
  if (n == 0) return {0, 0};
  const C m = finite_max(row_max(x, n));
  const Vec<C> shift(m);
  const auto shifted = [&](int64_t i, int64_t w)
                           __attribute__((always_inline)) { return load_row<C>(x + i, w) - shift; };
  const double sum = sum_exponentials<C>(
      n, shifted, [&](Vec<C> e, int64_t i, int64_t w) __attribute__((always_inline)) { store_row<C>(e, x + i, w); });
  const Vec<C> scale{sum == 0 ? C(0) : C(1 / sum)};
  each_vector<C>(n, [&](int64_t i, int64_t w)
                        __attribute__((always_inline)) { store_row<C>(load_row<C>(x + i, w) * scale, x + i, w); });
  return {double(m), sum};
}

template <class T>
void softmax(const char* xb, char* yb, int64_t n, bool log, bool non_temporal) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  T* y = reinterpret_cast<T*>(yb);
  if (n == 0) return;
  const C top = row_max(x, n);
  const Vec<C> shift(log ? finite_max(top) : top);  // a row of -inf gives NaN, as the quotient 0 / 0 does
  const Expected next{n * int64_t(sizeof(T)), 0};  // read while this row is computed
  const auto shifted = [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    next.read(x, i);
    return load_row<C>(x + i, w) - shift;
  };
  const auto nowhere = [](Vec<C>, int64_t, int64_t) {};
  if (log) {
    const Vec<C> rest{C(log_of_sum<C>(sum_exponentials<C>(n, shifted, nowhere)))};
    each_vector<C>(n, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      store_result<C>(load_row<C>(x + i, w) - shift - rest, y + i, w, non_temporal);
    });
    return;
  }
  // What is read again soon is kept, as numbers of C; what would leave L2 until then is computed again.
  const auto with_kept = [&](C* kept, bool past) __attribute__((always_inline)) {
    const double sum = sum_exponentials<C>(n, shifted,
                                           [&](Vec<C> e, int64_t i, int64_t w)
                                               __attribute__((always_inline)) { store_row<C>(e, kept + i, w); });
    const Vec<C> scale{C(1.0 / sum)};
    each_vector<C>(n, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      store_result<C>(load_row<C>(kept + i, w) * scale, y + i, w, past);
    });
  };
  if (n <= kKept && (non_temporal || !std::is_same_v<T, C>)) {
    alignas(64) C kept[kKept];
    return with_kept(kept, non_temporal);
  }
  if constexpr (std::is_same_v<T, C>) {
    if (n * int64_t(sizeof(C)) <= kNear) return with_kept(y, false);
  }
  const Vec<C> scale{C(1.0 / sum_exponentials<C>(n, shifted, nowhere))};
  each_vector<C>(
      n, [&](int64_t i, int64_t w) { store_row<C>(exp_down({}, load_row<C>(x + i, w) - shift) * scale, y + i, w); });
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
double dot(const char* xb, const char* wb, double shift, int64_t n) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const C* v = reinterpret_cast<const C*>(wb);
  const Vec<C> s{C(shift)};
  if (!v) return sum_vectors<C>(n, [&](int64_t i, int64_t w) { return load_row<C>(x + i, w) - s; });
  return sum_vectors<C>(n, [&](int64_t i, int64_t w) { return (load_row<C>(x + i, w) - s) * load_row<C>(v + i, w); });
}

template <class T>
void exp_minus(const char* xb, double top, double scale, double smooth, const char* wb, char* out, int64_t n) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const C* v = reinterpret_cast<const C*>(wb);
  T* gx = reinterpret_cast<T*>(out);
  const Vec<C> shift{C(top)}, factor{C(scale)}, less{C(smooth)};
  const ExpConstants constants;
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    Vec<C> r = exp_down(constants, load_row<C>(x + i, w) - shift) * factor;
    if (smooth != 0) r = r - (v ? less * load_row<C>(v + i, w) : less);
    store_row<C>(r, gx + i, w);
  });
}

template <class T>
void moments(const char* xb, int64_t n, double shift, double* sum, double* squares) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const Vec<C> s{C(shift)};
  sum_products<C>(n, sum, squares, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    const Vec<C> d = load_row<C>(x + i, w) - s;
    return std::array{d, d};
  });
  if (std::isfinite(*squares)) [[likely]]
    return;
  *sum = *squares = 0;  // beyond C's range
  for (int64_t i = 0; i < n; ++i) {
    const double d = double(static_cast<C>(x[i])) - shift;
    *sum += d, *squares += d * d;
  }
}

/// Sets v[first], ..., v[N - 1] to zeros; all of them would be `rep stos`, which takes as long as 30 products.
template <class C>
VESTA_INLINE void clear_from(int64_t first, Vec<C>* v) {
#pragma GCC unroll 1
  for (int64_t r = first; r < Vec<C>::N; ++r) {
    v[r] = Vec<C>(C(0));
    asm volatile("" ::: "memory");
  }
}

/// Adds the lanes of v[0], ..., v[N - 1] by halves, as sum_all does: lane r of the result is the sum of v[r]. A step
/// makes one vector of two, which hold the sums of `rows` vectors each.
template <class C, int rows = 1>
VESTA_INLINE Vec<C> sums_of_lanes(Vec<C>* v) {
  constexpr int N = Vec<C>::N;
  if constexpr (rows == N) {
    return v[0];
  } else {
    constexpr int half = N / rows / 2;
    const auto take = [&]<int... L>(Vec<C> a, Vec<C> b, std::integer_sequence<int, L...>,
                                    auto from) __attribute__((always_inline)) {
      return Vec<C>(__builtin_shufflevector(a.raw, b.raw, (L / half * 2 * half + L % half + from)...));
    };
    constexpr std::make_integer_sequence<int, N> lanes{};
    for (int r = 0; r < N / rows; r += 2) {
      v[r / 2] = take(v[r], v[r + 1], lanes, std::integral_constant<int, 0>{}) +
                 take(v[r], v[r + 1], lanes, std::integral_constant<int, half>{});
    }
    return sums_of_lanes<C, 2 * rows>(v);
  }
}

/// Adds up the deviations of n <= N * kChainVectors elements from a center, and their squares.
template <class T>
VESTA_INLINE Sums<compute_t<T>, 2> deviations(const T* row, int64_t n, compute_t<T> center, const Expected& next) {
  using C = compute_t<T>;
  const Vec<C> shift(center);
  return sum_block<C, 2, PlusProduct>(0, n, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    next.read(row, i);
    next.write(row, i);
    const Vec<C> d = load_row<C>(row + i, w) - shift;
    return std::array{d, d};
  });
}

/// Computes the statistics of `count` <= N pieces of n <= N * kChainVectors elements, `step` elements apart: Note
/// [Statistics in one pass].
template <class T>
void piece_statistics(const T* x, int64_t step, int64_t count, int64_t n, double* mean, double* squares,
                      const Expected& next) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  const int64_t some = center_elements<C>(n);
  Vec<C> sums[N], dots[N];
  C near[N] = {};
  clear_from<C>(count, sums), clear_from<C>(count, dots);
  for (int64_t r = 0; r < count; ++r) {
    const T* const row = x + r * step;
    near[r] = static_cast<C>(row[0]);
    const Vec<C> shift(near[r]);
    sums[r] = sum_block<C, 1>(0, some, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      return std::array{load_row<C>(row + i, w) - shift};
    })[0];
  }
  (Vec<C>::load(near) + sums_of_lanes<C>(sums) / Vec<C>(C(some))).store(near);
  clear_from<C>(count, sums);
  for (int64_t r = 0; r < count; ++r) {
    const auto both = deviations(x + r * step, n, near[r], next);
    sums[r] = both[0], dots[r] = both[1];
  }
  const Vec<C> rest = sums_of_lanes<C>(sums), square = sums_of_lanes<C>(dots);
  const double part = 1 / double(n);
  for (int64_t r = 0; r < count; ++r) {
    const T* const row = x + r * step;
    Deviations d{double(rest[int(r)]), double(square[int(r)])};
    if (d.is_off(part)) [[unlikely]] {
      near[r] = C(double(near[r]) + d.apart(part));
      const auto both = deviations(row, n, near[r], {});
      d = {double(sum_of_lanes(both[0])), double(sum_of_lanes(both[1]))};
    }
    enter_statistics(double(near[r]) + d.apart(part), d.around_mean(part), row, 1, n, mean + r, squares + r);
  }
}

template <class T>
void statistics(const char* xb, int64_t rows, int64_t n, double* mean, double* squares, const Expected& expected) {
  constexpr int64_t N = Vec<compute_t<T>>::N, kPiece = N * kChainVectors, kReadAhead = 4096;
  const T* x = reinterpret_cast<const T*>(xb);
  // What comes next is asked for, the first elements of all pieces of a group included, which are read first
  // (build/bin/bandwidth 'var(1)' and 'batch_norm, training').
  Expected next = expected;
  if (next.to_read == 0) next.to_read = std::max(kReadAhead, N * std::min(n, kPiece) * int64_t(sizeof(T)));
  if (n <= kPiece) {
    for (int64_t r = 0; r < rows; r += N) {
      piece_statistics(x + r * n, n, std::min(N, rows - r), n, mean + r, squares + r, next);
    }
    return;
  }
  double means[N], parts[N];
  for (int64_t r = 0; r < rows; ++r, x += n) {
    Statistics all;
    for (int64_t i = 0; i < n;) {
      const int64_t length = std::min(kPiece, n - i), count = std::min(N, (n - i) / length);
      piece_statistics(x + i, length, count, length, means, parts, next);
      for (int64_t k = 0; k < count; ++k) all.add({double(length), means[k], parts[k]});
      i += count * length;
    }
    mean[r] = all.mean, squares[r] = all.squares;
  }
}

template <class T>
VESTA_INLINE void affine_row(const char* xb, double center, double scale, double shift, char* out, int64_t n,
                             bool non_temporal) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  T* y = reinterpret_cast<T*>(out);
  const Vec<C> m{C(center)}, a{C(scale)}, b{C(shift)};
  each_vector<C>(
      n, [&](int64_t i, int64_t w) { store_result<C>((load_row<C>(x + i, w) - m) * a + b, y + i, w, non_temporal); });
}
template <class T>
void affine(const char* x, double center, double scale, double shift, char* out, int64_t n) {
  affine_row<T>(x, center, scale, shift, out, n, false);
}

template <class T>
void gradient_sums(const char* gb, const char* xb, double mean, int64_t n, double* sum, double* product) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  const Vec<C> m{C(mean)};
  sum_products<C>(n, sum, product, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    return std::array{load_row<C>(g + i, w), load_row<C>(x + i, w) - m};
  });
}

template <class T>
VESTA_INLINE void combine_row(const char* gb, const char* xb, double center, double a, double b, double c, char* out,
                              int64_t n, bool non_temporal) {
  using C = compute_t<T>;
  const T *g = reinterpret_cast<const T*>(gb), *x = reinterpret_cast<const T*>(xb);
  T* gx = reinterpret_cast<T*>(out);
  const Vec<C> m{C(center)}, va{C(a)}, vb{C(b)}, vc{C(c)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    store_result<C>(load_row<C>(g + i, w) * va + (load_row<C>(x + i, w) - m) * vb + vc, gx + i, w, non_temporal);
  });
}
template <class T>
void combine(const char* g, const char* x, double center, double a, double b, double c, char* out, int64_t n) {
  combine_row<T>(g, x, center, a, b, c, out, n, false);
}

template <class T>
void affine_rows(const char* xb, const ChannelRows& rows, const double* center, const double* scale,
                 const double* shift, char* out, bool non_temporal) {
  const int64_t bytes = rows.n * int64_t(sizeof(T));
  for (int64_t r = 0, c = rows.channel; r < rows.count; ++r, ++c) {
    if (c == rows.channels) c = 0;
    affine_row<T>(xb + r * bytes, center[c], scale[c], shift[c], out + r * bytes, rows.n, non_temporal);
  }
}

template <class T>
void combine_rows(const char* gb, const char* xb, const ChannelRows& rows, const double* center, const double* a,
                  const double* b, const double* c, char* out, bool non_temporal) {
  const int64_t bytes = rows.n * int64_t(sizeof(T));
  for (int64_t r = 0, k = rows.channel; r < rows.count; ++r, ++k) {
    if (k == rows.channels) k = 0;
    combine_row<T>(gb + r * bytes, xb + r * bytes, center[k], a[k], b[k], c[k], out + r * bytes, rows.n, non_temporal);
  }
}

template <class T>
void gradient_sums_rows(const char* gb, const char* xb, const ChannelRows& rows, const double* mean, double* sum,
                        double* product) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  const int64_t bytes = rows.n * int64_t(sizeof(T));
  if (rows.n > N * kChainVectors) {
    for (int64_t r = 0, c = rows.channel; r < rows.count; ++r, ++c) {
      if (c == rows.channels) c = 0;
      gradient_sums<T>(gb + r * bytes, xb + r * bytes, mean[c], rows.n, sum + r, product + r);
    }
    return;
  }
  int64_t c = rows.channel;
  for (int64_t r = 0; r < rows.count; r += N) {
    const int64_t count = std::min(N, rows.count - r);
    Vec<C> sums[N], dots[N];
    clear_from<C>(count, sums), clear_from<C>(count, dots);
    for (int64_t k = 0; k < count; ++k, ++c) {
      if (c == rows.channels) c = 0;
      const T *const g = reinterpret_cast<const T*>(gb + (r + k) * bytes), *const x = reinterpret_cast<const T*>(
                                                                               xb + (r + k) * bytes);
      const Vec<C> m{C(mean[c])};
      const auto both =
          sum_block<C, 2, PlusProduct>(0, rows.n, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
            return std::array{load_row<C>(g + i, w), load_row<C>(x + i, w) - m};
          });
      sums[k] = both[0], dots[k] = both[1];
    }
    const Vec<C> s = sums_of_lanes<C>(sums), d = sums_of_lanes<C>(dots);
    for (int64_t k = 0; k < count; ++k) sum[r + k] = double(s[int(k)]), product[r + k] = double(d[int(k)]);
  }
}

template <class T>
void normalize(const char* xb, double mean, double rstd, const char* wb, const char* bb, char* out, int64_t n,
               bool non_temporal) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const C *weight = reinterpret_cast<const C*>(wb), *bias = reinterpret_cast<const C*>(bb);
  T* y = reinterpret_cast<T*>(out);
  const double rest = mean - double(C(mean));  // what the mean is besides a number of the row's type
  const Vec<C> m{C(mean)}, r{C(rstd)}, shift{C(std::isfinite(rest) ? -rest * rstd : 0)};
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    Vec<C> v = (load_row<C>(x + i, w) - m) * r;
    if (rest != 0) v = v + shift;
    if (weight) v = v * load_row<C>(weight + i, w);
    if (bias) v = v + load_row<C>(bias + i, w);
    store_result<C>(v, y + i, w, non_temporal);
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
  sum_products<C>(n, sum, product, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    Vec<C> v = load_row<C>(g + i, w);
    if (weight) v = v * load_row<C>(weight + i, w);
    return std::array{v, load_row<C>(x + i, w) - m};
  });
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    const Vec<C> v = load_row<C>(g + i, w);
    store_row<C>(load_row<C>(gw + i, w) + v * ((load_row<C>(x + i, w) - m) * r), gw + i, w);
    store_row<C>(load_row<C>(gbias + i, w) + v, gbias + i, w);
  });
}

template <class T>
void normalize_backward(const char* gb, const char* xb, double mean, double rstd, const char* wb, double a, double b,
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
               .exp_sum = &exp_sum<T>,
               .weights = &weights<T>,
               .dot = &dot<T>,
               .exp_minus = &exp_minus<T>,
               .moments = &moments<T>,
               .statistics = &statistics<T>,
               .affine = &affine<T>,
               .gradient_sums = &gradient_sums<T>,
               .combine = &combine<T>,
               .affine_rows = &affine_rows<T>,
               .combine_rows = &combine_rows<T>,
               .gradient_sums_rows = &gradient_sums_rows<T>,
               .chain = kChainVectors * Vec<compute_t<T>>::N,
               .slots = 4 * Vec<compute_t<T>>::N,
               .normalize = &normalize<T>,
               .normalize_sums = &normalize_sums<T>,
               .normalize_backward = &normalize_backward<T>,
               .lstm_cell = &lstm_cell<T>,
               ._lstm_cell_backward = &_lstm_cell_backward<T>};
  };
  one.template operator()<float>();
  one.template operator()<double>();
  one.template operator()<Half>();
  one.template operator()<BFloat16>();
}

}  // namespace vesta::cpu::VESTA_ISA_NS
