// Kernels down columns that lie side by side, with the bits of the rows of row_kernels.cpp: softmax, its gradient,
// cross-entropy. Few rows are summed in registers.
#include <vesta/core/cpu/row_kernels.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <vesta/core/cpu/row_exponentials.h>
#include <vesta/core/cpu/row_sums.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// The slot to which sum_block adds element e of a piece of n: lane by lane, four vectors in turn, the last elements
/// to the fourth.
template <class C>
VESTA_INLINE int64_t slot_of(int64_t e, int64_t n) {
  constexpr int64_t N = Vec<C>::N;
  const int64_t whole = n / N * N;
  return e < whole ? e % (4 * N) : 3 * N + e - whole;
}

/// Adds the slots of each channel as sum_block and sum_all do, to the first one.
template <class C>
void add_slots(C* slots, int64_t count) {
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
}

/// Adds up the rows [0, n) of `count` columns, each of which add(row, slot) adds to a slot, in the order of sum_all: to
/// `totals`, in double. `slots` is for 4 N rows of C.
template <class C, class Add>
VESTA_INLINE void sum_columns(int64_t n, int64_t count, C* slots, double* totals, Add add) {
  constexpr int64_t kSlots = 4 * Vec<C>::N, kPiece = Vec<C>::N * kChainVectors;
  std::fill_n(totals, count, 0.0);
  for (int64_t begin = 0; begin < n; begin += kPiece) {
    const int64_t rows = std::min(kPiece, n - begin);
    std::fill_n(slots, kSlots * count, C(0));
    for (int64_t r = 0; r < rows; ++r) add(begin + r, slots + slot_of<C>(r, rows) * count);
    add_slots(slots, count);
    for (int64_t c = 0; c < count; ++c) totals[c] += double(slots[c]);
  }
}
/// Adds up n <= 4 N rows of a vector of columns in the order of sum_all, where each row has a slot of its own.
template <class C>
VESTA_INLINE Vec<C> sum_of_few(const Vec<C>* rows, int64_t n) {
  constexpr int64_t N = Vec<C>::N;
  const int64_t whole = n / N * N, rest = n - whole;
  int64_t lanes = std::min(n, N);
  Vec<C> sum[N];
  for (int64_t k = 0; k < lanes; ++k) {
    const Vec<C> zero(C(0));
    const auto slot = [&](int64_t chain) __attribute__((always_inline)) {
      const int64_t r = chain * N + k;
      return r < whole ? zero + rows[r] : chain == 3 && k < rest ? zero + rows[whole + k] : zero;
    };
    sum[k] = (slot(0) + slot(2)) + (slot(1) + slot(3));
  }
  for (int64_t half = N / 2; half; half /= 2) {
    for (int64_t k = 0; k + half < lanes; ++k) sum[k] = sum[k] + sum[k + half];
    lanes = std::min(lanes, half);
  }
  return sum[0];
}

/// Adds up n <= 4 N rows of columns as sum_columns() does: what term(row, i, width) gives, or if `exps` its
/// exponential, which must not be above 1. Each summand goes to keep(summand, row, i, width).
template <class C, bool exps, class Term, class Keep>
VESTA_INLINE void sum_few_rows(int64_t n, int64_t count, double* totals, Term term, Keep keep) {
  constexpr int64_t N = Vec<C>::N;
  const ExpConstants constants;
  for (int64_t i = 0; i < count; i += N) {
    const int64_t w = std::min(N, count - i);
    Vec<C> rows[4 * N];
    int64_t r = 0;
    for (; r + 4 <= n; r += 4) {
      Vec<C> v[4];
#pragma GCC unroll 4
      for (int64_t k = 0; k < 4; ++k) v[k] = term(r + k, i, w);
      if constexpr (exps) exp_down_four(constants, v);
#pragma GCC unroll 4
      for (int64_t k = 0; k < 4; ++k) rows[r + k] = v[k];
    }
    for (; r < n; ++r) {
      rows[r] = term(r, i, w);
      if constexpr (exps) rows[r] = exp_down(constants, rows[r]);
    }
    for (r = 0; r < n; ++r) keep(rows[r], r, i, w);
    C lanes[N];
    sum_of_few<C>(rows, n).store(lanes);
    for (int64_t k = 0; k < w; ++k) totals[i + k] = double(lanes[k]);
  }
}

/// Adds up the exponentials of kept columns less `top`; `keep` keeps them. The rows of columns that come next, at
/// `next` and `step` apart, are asked for.
template <bool keep, class T, class C>
VESTA_INLINE void sum_exponentials_of_columns(int64_t n, int64_t count, const T* next, int64_t step, C* kept,
                                              const C* top, C* slots, double* totals) {
  constexpr int64_t N = Vec<C>::N, kInLine = 64 / int64_t(sizeof(T));
  if (n <= 4 * N) {
    return sum_few_rows<C, true>(
        n, count, totals,
        [&](int64_t r, int64_t i, int64_t w)
            __attribute__((always_inline)) { return load_row<C>(kept + r * count + i, w) - load_row<C>(top + i, w); },
        [&](Vec<C> e, int64_t r, int64_t i, int64_t w) __attribute__((always_inline)) {
          if (keep) store_row<C>(e, kept + r * count + i, w);
        });
  }
  const ExpConstants constants;
  sum_columns<C>(n, count, slots, totals, [&](int64_t r, C* slot) __attribute__((always_inline)) {
    C* const row = kept + r * count;
    const auto enter = [&](Vec<C> e, int64_t i, int64_t w) __attribute__((always_inline)) {
      if (keep) store_row<C>(e, row + i, w);
      store_row<C>(load_row<C>(slot + i, w) + e, slot + i, w);
    };
    int64_t i = 0;
    for (; i + 4 * N <= count; i += 4 * N) {
      for (int64_t k = 0; k < 4 * N; k += kInLine) __builtin_prefetch(next + r * step + i + k, 0, 2);
      Vec<C> v[4];
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) v[w] = Vec<C>::load(row + i + w * N) - Vec<C>::load(top + i + w * N);
      exp_down_four(constants, v);
#pragma GCC unroll 4
      for (int w = 0; w < 4; ++w) enter(v[w], i + w * N, N);
    }
    for (; i < count; i += N) {
      const int64_t w = std::min(N, count - i);
      enter(exp_down(constants, load_row<C>(row + i, w) - load_row<C>(top + i, w)), i, w);
    }
  });
}

/// Writes logarithms of sums; they may be written where the sums are.
template <class C>
VESTA_INLINE void log_all(const double* sums, int64_t n, double* logs) {
  each_vector<double>(
      n, [&](int64_t i, int64_t w) { store_row<double>(log_of_sums<C>(load_row<double>(sums + i, w)), logs + i, w); });
}

constexpr int64_t kAhead = 32;  // rows of columns that L2 is asked for before they are read

/// The numbers of columns that the kernels below keep: their maxima, sums, factors, slots, and the elements.
template <class C>
struct ColumnRoom {
  double* totals;
  C *top, *factor, *slots, *kept;
  ColumnRoom(char* room, int64_t count) : totals(reinterpret_cast<double*>(room)) {
    top = reinterpret_cast<C*>(totals + count), factor = top + count, slots = factor + count;
    kept = slots + 4 * Vec<C>::N * count;
  }
};

/// Adds up the rows of columns that term(row, i, width) gives, in the order of sum_all: to the totals.
template <class C, class Term>
VESTA_INLINE void sum_rows(int64_t n, int64_t count, const ColumnRoom<C>& room, Term term) {
  if (n <= 4 * Vec<C>::N) {
    return sum_few_rows<C, false>(n, count, room.totals, term, [](Vec<C>, int64_t, int64_t, int64_t) {});
  }
  sum_columns<C>(n, count, room.slots, room.totals, [&](int64_t r, C* slot) __attribute__((always_inline)) {
    each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      store_row<C>(load_row<C>(slot + i, w) + term(r, i, w), slot + i, w);
    });
  });
}

/// Copies columns side by side, where no power of two between the rows makes them share places of the cache.
template <class T, class C>
VESTA_INLINE void keep_columns(const T* x, int64_t n, int64_t step, int64_t count, C* kept) {
  for (int64_t r = 0; r < n; ++r) {
    const T* const row = x + r * step;
    each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      __builtin_prefetch(row + kAhead * step + i, 0, 2);
      store_row<C>(load_row<C>(row + i, w), kept + r * count + i, w);
    });
  }
}

/// keep_columns_and_max() of as many columns as `ways` vectors have: their maxima stay in registers.
template <int ways, class T, class C>
VESTA_INLINE void keep_few_columns_and_max(const T* x, int64_t n, int64_t step, C* kept, C* top) {
  constexpr int64_t N = Vec<C>::N;
  Vec<C> best[ways];
  for (Vec<C>& b : best) b = Vec<C>(-std::numeric_limits<C>::infinity());
  for (int64_t r = 0; r < n; ++r, x += step, kept += ways * N) {
#pragma GCC unroll 4
    for (int64_t k = 0; k < ways; ++k) {
      __builtin_prefetch(x + kAhead * step + k * N, 0, 2);
      const Vec<C> v = load_row<C>(x + k * N, N);
      store_row<C>(v, kept + k * N, N);
      best[k] = higher_or_first(best[k], v);
    }
  }
  for (int64_t k = 0; k < ways; ++k) store_row<C>(best[k], top + k * N, N);
}

/// Copies columns, and writes their largest numbers, NaN left aside, as row_max does.
template <class T, class C>
VESTA_INLINE void keep_columns_and_max(const T* x, int64_t n, int64_t step, int64_t count, C* kept, C* top) {
  constexpr int64_t N = Vec<C>::N;
  if (count == 2 * N) return keep_few_columns_and_max<2>(x, n, step, kept, top);  // the widths of long columns
  if (count == 4 * N) return keep_few_columns_and_max<4>(x, n, step, kept, top);
  std::fill_n(top, count, -std::numeric_limits<C>::infinity());
  for (int64_t r = 0; r < n; ++r, x += step, kept += count) {
    each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      __builtin_prefetch(x + kAhead * step + i, 0, 2);
      const Vec<C> v = load_row<C>(x + i, w);
      store_row<C>(v, kept + i, w);
      store_row<C>(higher_or_first(load_row<C>(top + i, w), v), top + i, w);
    });
  }
}

template <class T>
void logsumexp_columns(const char* xb, int64_t n, int64_t step, int64_t count, double* out, char* bytes) {
  using C = compute_t<T>;
  const ColumnRoom<C> room(bytes, count);
  const T* const x = reinterpret_cast<const T*>(xb);
  keep_columns_and_max(x, n, step, count, room.kept, room.top);
  for (int64_t c = 0; c < count; ++c) room.top[c] = finite_max(room.top[c]);
  sum_exponentials_of_columns<false>(n, count, x + count, step, room.kept, room.top, room.slots, out);
  log_all<C>(out, count, out);
  for (int64_t c = 0; c < count; ++c) out[c] = double(room.top[c]) + out[c];
}

template <class T>
void softmax_columns(const char* xb, char* yb, int64_t n, int64_t step, int64_t count, bool log, bool non_temporal,
                     char* bytes) {
  using C = compute_t<T>;
  T* y = reinterpret_cast<T*>(yb);
  const ColumnRoom<C> room(bytes, count);
  C* const kept = room.kept;
  const T* const x = reinterpret_cast<const T*>(xb);
  keep_columns_and_max(x, n, step, count, kept, room.top);
  if (log) {
    for (int64_t c = 0; c < count; ++c) room.top[c] = finite_max(room.top[c]);
  }
  if (log) sum_exponentials_of_columns<false>(n, count, x + count, step, kept, room.top, room.slots, room.totals);
  else sum_exponentials_of_columns<true>(n, count, x + count, step, kept, room.top, room.slots, room.totals);
  if (log) log_all<C>(room.totals, count, room.totals);
  for (int64_t c = 0; c < count; ++c) room.factor[c] = C(log ? room.totals[c] : 1.0 / room.totals[c]);
  for (int64_t r = 0; r < n; ++r) {
    each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      const Vec<C> factor = load_row<C>(room.factor + i, w), v = load_row<C>(kept + r * count + i, w);
      if (!non_temporal) __builtin_prefetch(y + (r + 4) * step + i, 1);
      store_result<C>(log ? v - load_row<C>(room.top + i, w) - factor : v * factor, y + r * step + i, w, non_temporal);
    });
  }
}

template <class T>
void softmax_backward_columns(const char* gb, const char* yb, char* out, int64_t n, int64_t step, int64_t count,
                              bool log, char* bytes) {
  using C = compute_t<T>;
  T* gx = reinterpret_cast<T*>(out);
  const ColumnRoom<C> room(bytes, count);
  C *const g = room.kept, *const y = g + n * count;
  keep_columns(reinterpret_cast<const T*>(gb), n, step, count, g);
  keep_columns(reinterpret_cast<const T*>(yb), n, step, count, y);
  sum_rows<C>(n, count, room, [&](int64_t r, int64_t i, int64_t w) __attribute__((always_inline)) {
    const Vec<C> v = load_row<C>(g + r * count + i, w);
    return log ? v : v * load_row<C>(y + r * count + i, w);
  });
  for (int64_t c = 0; c < count; ++c) room.factor[c] = C(room.totals[c]);
  for (int64_t r = 0; r < n; ++r) {
    each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      const Vec<C> sum = load_row<C>(room.factor + i, w), v = load_row<C>(g + r * count + i, w),
                   of = load_row<C>(y + r * count + i, w);
      store_row<C>(log ? v - math::exp(of) * sum : of * (v - sum), gx + r * step + i, w);
    });
  }
}

template <class T>
void exp_sum_columns(const char* xb, int64_t n, int64_t step, int64_t count, const char* wb, bool wants_dots,
                     const ColumnSums& out, char* bytes) {
  using C = compute_t<T>;
  const ColumnRoom<C> room(bytes, count);
  const T* const x = reinterpret_cast<const T*>(xb);
  const C* const weights = reinterpret_cast<const C*>(wb);
  keep_columns_and_max(x, n, step, count, room.kept, room.top);
  for (int64_t c = 0; c < count; ++c) room.top[c] = finite_max(room.top[c]);
  sum_exponentials_of_columns<false>(n, count, x + count, step, room.kept, room.top, room.slots, out.sums);
  for (int64_t c = 0; c < count; ++c) out.tops[c] = double(room.top[c]);
  log_all<C>(out.sums, count, out.logs);
  if (!wants_dots) return;
  sum_rows<C>(n, count, room, [&](int64_t r, int64_t i, int64_t w) __attribute__((always_inline)) {
    const Vec<C> v = load_row<C>(room.kept + r * count + i, w) - load_row<C>(room.top + i, w);
    return weights ? v * Vec<C>(weights[r]) : v;
  });
  std::copy_n(room.totals, count, out.dots);
}

/// exp_minus_columns() of few rows: each element is told from its column's class.
template <class T, class C>
VESTA_INLINE void exp_minus_few_rows(const T* x, int64_t n, int64_t step, int64_t count, const ColumnSlopes& s, T* gx) {
  using V = Vec<C>;
  constexpr int64_t N = V::N;
  const auto numbers = [](const char* p) { return reinterpret_cast<const C*>(p); };
  const C* const weights = numbers(s.weights);
  const ExpConstants constants;
  const V zero(C(0));
  each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    C lanes[N] = {};
    for (int64_t k = 0; k < w; ++k) lanes[k] = C(s.classes[i + k]);
    const V classes = V::load(lanes), top = load_row<C>(numbers(s.tops) + i, w),
            scale = load_row<C>(numbers(s.scales) + i, w), less = load_row<C>(numbers(s.less) + i, w),
            direct = load_row<C>(numbers(s.direct) + i, w);
    const Mask<C> ignored = classes < zero;
    for (int64_t r = 0; r < n; ++r) {
      V v = exp_down(constants, load_row<C>(x + r * step + i, w) - top) * scale;
      if (s.smooths) v = v - (weights ? less * V(weights[r]) : less);
      v = select(classes == V(C(r)), v - direct, v);
      store_row<C>(select(ignored, zero, v), gx + r * step + i, w);
    }
  });
}

template <class T>
void exp_minus_columns(const char* xb, int64_t n, int64_t step, int64_t count, const ColumnSlopes& s, char* out) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N;
  const T* const x = reinterpret_cast<const T*>(xb);
  T* const gx = reinterpret_cast<T*>(out);
  constexpr int64_t kFewRows = 16;
  if (n <= kFewRows) return exp_minus_few_rows<T, C>(x, n, step, count, s, gx);
  const C *const weights = reinterpret_cast<const C*>(s.weights), *const tops = reinterpret_cast<const C*>(s.tops),
                 *const scales = reinterpret_cast<const C*>(s.scales), *const less = reinterpret_cast<const C*>(s.less),
                 *const direct = reinterpret_cast<const C*>(s.direct);
  const ExpConstants constants;
  for (int64_t r = 0; r < n; ++r) {
    each_vector<C>(count, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      V v =
          exp_down(constants, load_row<C>(x + r * step + i, w) - load_row<C>(tops + i, w)) * load_row<C>(scales + i, w);
      if (s.smooths) v = v - (weights ? load_row<C>(less + i, w) * V(weights[r]) : load_row<C>(less + i, w));
      store_row<C>(v, gx + r * step + i, w);
    });
  }
  // The classes' own elements once more, which must not be rounded to 16 bits before the rest is subtracted; and
  // nothing for columns that are ignored, whatever they hold.
  for (int64_t i = 0; i < count; i += N) {
    const int64_t w = std::min(N, count - i);
    C own[N] = {}, weight[N] = {};
    for (int64_t k = 0; k < w; ++k) {
      const int64_t c = s.classes[i + k];
      if (c < 0) continue;
      own[k] = static_cast<C>(x[c * step + i + k]), weight[k] = weights ? weights[c] : C(0);
    }
    V v = exp_down(constants, V::load(own) - load_row<C>(tops + i, w)) * load_row<C>(scales + i, w);
    if (s.smooths) v = v - (weights ? load_row<C>(less + i, w) * V::load(weight) : load_row<C>(less + i, w));
    (v - load_row<C>(direct + i, w)).store(own);
    for (int64_t k = 0; k < w; ++k) {
      const int64_t c = s.classes[i + k];
      if (c >= 0) gx[c * step + i + k] = T(own[k]);
      for (int64_t r = 0; c < 0 && r < n; ++r) gx[r * step + i + k] = T(C(0));
    }
  }
}

template <class T>
void logs(const double* sums, int64_t n, double* out) {
  log_all<compute_t<T>>(sums, n, out);
}

template <class T>
void enter_columns(RowKernels& k) {
  k.softmax_columns = &softmax_columns<T>;
  k.softmax_backward_columns = &softmax_backward_columns<T>;
  k.logsumexp_columns = &logsumexp_columns<T>;
  k.exp_sum_columns = &exp_sum_columns<T>;
  k.exp_minus_columns = &exp_minus_columns<T>;
  k.logs = &logs<T>;
}

}  // namespace

void register_row_columns(RowKernels (&rows)[kNumDTypes]) {
  enter_columns<float>(rows[int(DType::float32)]);
  enter_columns<double>(rows[int(DType::float64)]);
  enter_columns<Half>(rows[int(DType::float16)]);
  enter_columns<BFloat16>(rows[int(DType::bfloat16)]);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
