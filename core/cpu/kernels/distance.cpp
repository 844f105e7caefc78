// Distances between points: the points of a panel lie in lanes, so that every distance is added up in the order of the
// coordinates, whichever operand the panel comes from. Sums are of at most kChain terms; those are added in double.
#include <vesta/core/cpu/distance_kernels.h>

#include <algorithm>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

constexpr int64_t kChain = 64;  // terms, as in row_sums.h

// What follows from a difference d of coordinates: the term of a sum (or maximum), what the distance is of that sum s,
// and the slope of the distance by d, where `size` is the distance.
template <class T>
struct ZeroNorm {
  static constexpr bool maximum = false, has_slope = false;
  VESTA_INLINE static Vec<T> term(Vec<T> d, Vec<T>) {
    return select(abs(d) > Vec<T>(T(0)), Vec<T>(T(1)), d * Vec<T>(T(0)));  // NaN stays NaN
  }
  VESTA_INLINE static Vec<T> root(Vec<T> s, double) { return s; }
};
template <class T>
struct OneNorm {
  static constexpr bool maximum = false, has_slope = true;
  VESTA_INLINE static Vec<T> term(Vec<T> d, Vec<T>) { return abs(d); }
  VESTA_INLINE static Vec<T> root(Vec<T> s, double) { return s; }
  VESTA_INLINE static Vec<T> slope(Vec<T> d, Vec<T>, Vec<T>) { return sign(d); }
};
template <class T>
struct TwoNorm {
  static constexpr bool maximum = false, has_slope = true;
  VESTA_INLINE static Vec<T> term(Vec<T> d, Vec<T>) { return d * d; }
  VESTA_INLINE static Vec<T> root(Vec<T> s, double) { return sqrt(s); }
  VESTA_INLINE static Vec<T> slope(Vec<T> d, Vec<T>, Vec<T>) { return d; }  // the weight is grad / size
};
template <class T>
struct MaximumNorm {
  static constexpr bool maximum = true, has_slope = true;
  VESTA_INLINE static Vec<T> term(Vec<T> d, Vec<T>) { return abs(d); }
  VESTA_INLINE static Vec<T> root(Vec<T> s, double) { return s; }
  VESTA_INLINE static Vec<T> slope(Vec<T> d, Vec<T> size, Vec<T>) {
    return select(abs(d) == size, sign(d), select(size == size, Vec<T>(T(0)), size));
  }
};
template <class T>
struct OtherNorm {
  static constexpr bool maximum = false, has_slope = true;
  VESTA_INLINE static Vec<T> term(Vec<T> d, Vec<T> p) { return pow(abs(d), p); }
  VESTA_INLINE static Vec<T> root(Vec<T> s, double p) { return pow(s, Vec<T>(T(1 / p))); }
  VESTA_INLINE static Vec<T> slope(Vec<T> d, Vec<T> size, Vec<T> less) {  // with less = p - 1
    const Vec<T> zero(T(0));
    return select(d == zero, zero, copysign(pow(abs(d) / size, less), d));
  }
};

template <class T, class Norm, int rows>
void distances(const void* const* points, const void* panel, int64_t columns, double p, void* out) {
  constexpr int64_t N = Vec<T>::N, kLanes = 2 * N;
  const T* const b = static_cast<const T*>(panel);
  const T* a[rows];
  for (int k = 0; k < rows; ++k) a[k] = static_cast<const T*>(points[k]);
  const Vec<T> power{T(p)}, zero{T(0)};
  Vec<T> sums[rows][2];
  double totals[rows * kLanes] = {};
  for (int64_t begin = 0; begin == 0 || begin < columns; begin += kChain) {
    if (begin == 0 || !Norm::maximum) {
#pragma GCC unroll 4
      for (int k = 0; k < rows; ++k) sums[k][0] = sums[k][1] = zero;
    }
    const int64_t end = std::min(columns, begin + kChain);
    for (int64_t m = begin; m < end; ++m) {
      const Vec<T> left = Vec<T>::load(b + m * kLanes), right = Vec<T>::load(b + m * kLanes + N);
#pragma GCC unroll 4
      for (int k = 0; k < rows; ++k) {
        const Vec<T> x(a[k][m]), one = Norm::term(x - left, power), two = Norm::term(x - right, power);
        sums[k][0] = Norm::maximum ? maximum(sums[k][0], one) : sums[k][0] + one;
        sums[k][1] = Norm::maximum ? maximum(sums[k][1], two) : sums[k][1] + two;
      }
    }
    if (Norm::maximum || columns <= kChain) continue;
    alignas(64) T lanes[kLanes];
    for (int k = 0; k < rows; ++k) {
      sums[k][0].store(lanes), sums[k][1].store(lanes + N);
      for (int j = 0; j < kLanes; ++j) totals[k * kLanes + j] += double(lanes[j]);
    }
  }
  for (int k = 0; k < rows; ++k) {
    T* const to = static_cast<T*>(out) + k * kLanes;
    if (!Norm::maximum && columns > kChain) {
      for (int j = 0; j < kLanes; ++j) to[j] = T(totals[k * kLanes + j]);
      sums[k][0] = Vec<T>::load(to), sums[k][1] = Vec<T>::load(to + N);
    }
    Norm::root(sums[k][0], p).store(to), Norm::root(sums[k][1], p).store(to + N);
  }
}

template <class T, class Norm>
void distance_backward(const DistanceGradient& g) {
  constexpr int64_t N = Vec<T>::N;
  constexpr int kRows = kDistanceRows;
  constexpr bool kDivides = std::is_same_v<Norm, TwoNorm<T>>, kOther = std::is_same_v<Norm, OtherNorm<T>>;
  const Vec<T> zero{T(0)}, less{T(g.p - 1)};
  const T* a[kRows];
  for (int k = 0; k < kRows; ++k) a[k] = static_cast<const T*>(g.x1[k]);
  double totals[kRows][kDistanceColumns];
  for (auto& row : totals) {
    for (int64_t m = 0; m < g.columns; ++m) row[m] = 0;
  }
  alignas(64) T weight[kRows][kChain], size[kRows][kChain];
  for (int64_t begin = 0; begin < g.points; begin += kChain) {
    const int64_t count = std::min(kChain, g.points - begin);
    for (int k = 0; k < kRows; ++k) {
      const T* const grad = static_cast<const T*>(g.grad[k]) + begin;
      const T* const distance = static_cast<const T*>(g.distances[k]) + begin;
      each_vector<T>(count, [&](int64_t i, int64_t n) __attribute__((always_inline)) {
        Vec<T> w = load_row<T>(grad + i, n), d = load_row<T>(distance + i, n);
        const Mask<T> none = d == zero;
        if (kDivides || kOther) d = select(none, Vec<T>(T(1)), d), w = select(none, zero, w);
        if (kDivides) w = w / d;
        w.store(weight[k] + i), d.store(size[k] + i);
      });
    }
    const T* const b = static_cast<const T*>(g.x2) + begin * g.x2_step;
    each_vector<T>(g.columns, [&](int64_t m, int64_t n) __attribute__((always_inline)) {
      Vec<T> x[kRows], sums[kRows];
#pragma GCC unroll 4
      for (int k = 0; k < kRows; ++k) x[k] = load_row<T>(a[k] + m, n), sums[k] = zero;
      const T* y = b + m;
      for (int64_t j = 0; j < count; ++j, y += g.x2_step) {
        const Vec<T> v = load_row<T>(y, n);
#pragma GCC unroll 4
        for (int k = 0; k < kRows; ++k) {
          sums[k] = mul_add(Vec<T>(weight[k][j]), Norm::slope(x[k] - v, Vec<T>(size[k][j]), less), sums[k]);
        }
      }
      alignas(64) T lanes[N];
      for (int k = 0; k < kRows; ++k) {
        sums[k].store(lanes);
        for (int64_t i = 0; i < n; ++i) totals[k][m + i] += double(lanes[i]);
      }
    });
  }
  for (int k = 0; k < g.rows; ++k) {
    T* const to = static_cast<T*>(g.out[k]);
    for (int64_t m = 0; m < g.columns; ++m) to[m] = T(totals[k][m]);
  }
}

template <class T, class Norm>
DistanceKernels kernels_of() {
  DistanceKernels k = {2 * Vec<T>::N, &distances<T, Norm, 1>, &distances<T, Norm, kDistanceRows>, nullptr};
  if constexpr (Norm::has_slope) k.gradient = &distance_backward<T, Norm>;
  return k;
}

template <class T>
void enter_distances(DistanceKernels* to) {
  to[DistanceTable::zero] = kernels_of<T, ZeroNorm<T>>();
  to[DistanceTable::one] = kernels_of<T, OneNorm<T>>();
  to[DistanceTable::two] = kernels_of<T, TwoNorm<T>>();
  to[DistanceTable::infinity] = kernels_of<T, MaximumNorm<T>>();
  to[DistanceTable::other] = kernels_of<T, OtherNorm<T>>();
}

}  // namespace

void register_distance_kernels(DistanceTable& table) {
  enter_distances<float>(table.of_float);
  enter_distances<double>(table.of_double);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
