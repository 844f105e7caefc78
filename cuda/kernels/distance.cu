// Distances between points, their gradient, and cross products, with the bits of the CPU
// (core/cpu/kernels/distance.cpp) except for powers: sums go along the coordinates in their order, of at most 64 terms,
// and those are added in double.
//
// A block has a tile of distances; 16 coordinates of its points pass through shared memory at a time. Of a gradient it
// has 32 coordinates of some points, past which the other points go. What a norm needs of each pair is never stored.
#include <vesta/cuda/kernels/distance.h>

#include <cmath>
#include <limits>

#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256, kSide = 16;
constexpr int kStep = 16;  // coordinates in shared memory
constexpr int64_t kChain = 64;  // terms that are added in the points' type
constexpr int64_t kEnough = 264;  // blocks, two for each multiprocessor of an H200

// What follows from a difference d of coordinates, as on the CPU: the term of a sum (or maximum), what the distance is
// of that sum, and the slope of the distance by d, where `size` is the distance.
struct ZeroNorm {
  static constexpr bool maximum = false;
  template <class T>
  VESTA_DEVICE static T term(T d, T) {
    return math::abs(d) > T(0) ? T(1) : d * T(0);  // NaN stays NaN
  }
  template <class T>
  VESTA_DEVICE static T root(T s, double) {
    return s;
  }
};
/// What the norms of absolute values have in common: their sum or maximum is the distance.
struct AbsoluteNorm {
  template <class T>
  VESTA_DEVICE static T term(T d, T) {
    return math::abs(d);
  }
  template <class T>
  VESTA_DEVICE static T root(T s, double) {
    return s;
  }
};
struct OneNorm : AbsoluteNorm {
  static constexpr bool maximum = false, divides = false, sized = false;
  template <class T>
  VESTA_DEVICE static T slope(T d, T, T) {
    return math::sign(d);
  }
};
struct TwoNorm {
  static constexpr bool maximum = false, divides = true, sized = false;
  template <class T>
  VESTA_DEVICE static T term(T d, T) {
    return rounded::mul(d, d);
  }
  template <class T>
  VESTA_DEVICE static T root(T s, double) {
    return math::sqrt(s);
  }
  template <class T>
  VESTA_DEVICE static T slope(T d, T, T) {
    return d;  // the weight is grad / size
  }
};
struct MaximumNorm : AbsoluteNorm {
  static constexpr bool maximum = true, divides = false, sized = true;
  template <class T>
  VESTA_DEVICE static T slope(T d, T size, T) {
    return math::abs(d) == size ? math::sign(d) : size == size ? T(0) : size;
  }
};
struct OtherNorm {
  static constexpr bool maximum = false, divides = false, sized = true;
  template <class T>
  VESTA_DEVICE static T term(T d, T p) {
    return math::pow(math::abs(d), p);
  }
  template <class T>
  VESTA_DEVICE static T root(T s, double p) {
    return math::pow(s, T(1 / p));
  }
  template <class T>
  VESTA_DEVICE static T slope(T d, T size, T less) {  // with less = p - 1
    return d == T(0) ? T(0) : math::copysign(math::pow(math::abs(d) / size, less), d);
  }
};

/// Returns the place of the distance of points i < j among those of every two of n.
VESTA_DEVICE int64_t pair_place(int64_t i, int64_t j, int64_t n) { return i * (2 * n - i - 3) / 2 - 1 + j; }

struct DistanceArgs {
  DistanceLaunch l;
  int64_t across, down;  // tiles of a matrix
};

/// Brings kStep coordinates of `tile` points to shared memory; what is missing becomes 0, which adds nothing.
template <int kTile, class T>
VESTA_DEVICE void load_points(const T* points, int64_t first, int64_t count, int64_t columns, int64_t column, T* to) {
  const unsigned c = threadIdx.x % kStep;
  VESTA_UNROLL
  for (int k = 0; k < kTile / int(kSide); ++k) {
    const int i = int(threadIdx.x / kStep) + k * int(kSide);
    const bool there = first + i < count && column + c < columns;
    to[c * (kTile + 4) + i] = there ? points[(first + i) * columns + column + c] : T(0);
  }
}

template <class T, class Norm, int K>
VESTA_KERNEL VESTA_BOUNDS(kThreads, 2) void distances_kernel(DistanceArgs a) {
  constexpr int kTile = int(kSide) * K;
  VESTA_SHARED(T, left, kStep * (kTile + 4));
  VESTA_SHARED(T, right, kStep * (kTile + 4));
  const DistanceLaunch& l = a.l;
  const int64_t tile = blockIdx.x, b = tile / (a.across * a.down);
  const int64_t first_i = tile / a.across % a.down * kTile, first_j = tile % a.across * kTile;
  if (l.pairs && first_j + kTile <= first_i + 1) return;  // below the diagonal
  const T* const x1 = static_cast<const T*>(l.x1) + b * l.n * l.columns;
  const T* const x2 = static_cast<const T*>(l.x2) + b * l.m * l.columns;
  const int row = int(threadIdx.x / kSide) * K, column = int(threadIdx.x % kSide);
  const T power = T(l.p);
  T sums[K][K] = {};
  double totals[K][K] = {};
  const auto add_up = [&] {
    VESTA_UNROLL
    for (int i = 0; i < K; ++i) {
      VESTA_UNROLL
      for (int j = 0; j < K; ++j) totals[i][j] += double(sums[i][j]), sums[i][j] = T(0);
    }
  };
  VESTA_ROLLED
  for (int64_t begin = 0; begin < l.columns; begin += kStep) {
    block_barrier();  // the last coordinates have been read
    load_points<kTile>(x1, first_i, l.n, l.columns, begin, left);
    load_points<kTile>(x2, first_j, l.m, l.columns, begin, right);
    block_barrier();
    if (!Norm::maximum && begin > 0 && begin % kChain == 0) add_up();
    VESTA_ROLLED
    for (int c = 0; c < kStep; ++c) {
      const auto x = *reinterpret_cast<const Elements<T, K>*>(left + c * (kTile + 4) + row);
      VESTA_UNROLL
      for (int j = 0; j < K; ++j) {
        const T y = right[c * (kTile + 4) + column + j * int(kSide)];
        VESTA_UNROLL
        for (int i = 0; i < K; ++i) {
          const T term = Norm::term(x.v[i] - y, power);
          sums[i][j] = Norm::maximum ? math::maximum(sums[i][j], term) : rounded::add(sums[i][j], term);
        }
      }
    }
  }
  const bool chains = !Norm::maximum && l.columns > kChain;
  if (chains) add_up();
  VESTA_UNROLL
  for (int k = 0; k < K; ++k) {
    const int64_t i = first_i + row + k;
    VESTA_UNROLL
    for (int q = 0; q < K; ++q) {
      const int64_t j = first_j + column + q * int(kSide);
      if (i >= l.n || j >= l.m || (l.pairs && j <= i)) continue;
      const int64_t to = l.pairs ? pair_place(i, j, l.n) : (b * l.n + i) * l.m + j;
      static_cast<T*>(l.out)[to] = Norm::root(chains ? T(totals[k][q]) : sums[k][q], l.p);
    }
  }
}

constexpr int kGroups = kThreads / 32, kPoints = 32;  // groups of rows in a block; other points in shared memory

template <class T, class Norm, int K>
VESTA_KERNEL VESTA_BOUNDS(kThreads, 2) void distances_gradient_kernel(DistanceArgs a, DistanceNumbers grad,
                                                                      DistanceNumbers distances) {
  constexpr int kRows = kGroups * K;
  VESTA_SHARED(T, points, kPoints * 32);
  VESTA_SHARED(T, weights, kPoints * (kRows + 4));
  VESTA_SHARED(T, sizes, Norm::sized ? kPoints * (kRows + 4) : 1);
  const DistanceLaunch& l = a.l;
  const int64_t tile = blockIdx.x, b = tile / (a.across * a.down);
  const int64_t first = tile / a.across % a.down * kRows, column = tile % a.across * 32 + lane_index();
  const int group = int(warp_index());
  const T* const x1 = static_cast<const T*>(l.x1) + b * l.n * l.columns + column;
  const T* const x2 = static_cast<const T*>(l.x2) + b * l.m * l.columns + column;
  const T less = T(l.p - 1);
  T x[K], sums[K] = {};
  double totals[K] = {};
  VESTA_UNROLL
  for (int k = 0; k < K; ++k) {
    const int64_t i = first + group * K + k;
    x[k] = i < l.n && column < l.columns ? x1[i * l.columns] : T(0);
  }
  const auto number = [&](const DistanceNumbers& of, int64_t i, int64_t j) {
    const T* const data = static_cast<const T*>(of.data);
    if (!l.pairs) return data[b * of.batch + i * of.row + j * of.column];
    return i == j ? T(0) : data[i < j ? pair_place(i, j, l.n) : pair_place(j, i, l.n)];
  };
  VESTA_ROLLED
  for (int64_t begin = 0; begin < l.m; begin += kPoints) {
    block_barrier();  // the last points have been read
    VESTA_UNROLL
    for (int k = 0; k < kPoints / kGroups; ++k) {
      const int64_t j = begin + group + k * kGroups;
      points[(group + k * kGroups) * 32 + int(lane_index())] = j < l.m && column < l.columns ? x2[j * l.columns] : T(0);
    }
    VESTA_UNROLL
    for (int k = 0; k < K; ++k) {
      // Neighbours read neighbours, by rows or by columns.
      const bool by_row = grad.column == 1 || l.pairs;
      const int at = int(threadIdx.x) + k * int(kThreads);
      const int row = by_row ? at / kPoints : at % kRows, point = by_row ? at % kPoints : at / kRows;
      const int64_t i = first + row, j = begin + point;
      const bool there = i < l.n && j < l.m;
      T weight = there ? number(grad, i, j) : T(0);
      if constexpr (Norm::divides || Norm::sized) {
        T size = there ? number(distances, i, j) : T(1);
        if (size == T(0) && (Norm::divides || std::is_same_v<Norm, OtherNorm>)) size = T(1), weight = T(0);
        if constexpr (Norm::divides) weight = weight / size;
        if constexpr (Norm::sized) sizes[point * (kRows + 4) + row] = size;
      }
      weights[point * (kRows + 4) + row] = weight;
    }
    block_barrier();
    if (begin > 0 && begin % kChain == 0) {
      VESTA_UNROLL
      for (int k = 0; k < K; ++k) totals[k] += double(sums[k]), sums[k] = T(0);
    }
    const int count = l.m - begin < kPoints ? int(l.m - begin) : kPoints;
    VESTA_ROLLED
    for (int j = 0; j < count; ++j) {
      const T y = points[j * 32 + int(lane_index())];
      const auto weight = *reinterpret_cast<const Elements<T, K>*>(weights + j * (kRows + 4) + group * K);
      Elements<T, K> size{};
      if constexpr (Norm::sized) {
        size = *reinterpret_cast<const Elements<T, K>*>(sizes + j * (kRows + 4) + group * K);
      }
      VESTA_UNROLL
      for (int k = 0; k < K; ++k) sums[k] = std::fma(weight.v[k], Norm::slope(x[k] - y, size.v[k], less), sums[k]);
    }
  }
  VESTA_UNROLL
  for (int k = 0; k < K; ++k) {
    const int64_t i = first + group * K + k;
    if (i >= l.n || column >= l.columns) continue;
    static_cast<T*>(l.out)[(b * l.n + i) * l.columns + column] = T(totals[k] + double(sums[k]));
  }
}

int64_t tiles(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

/// Calls f.operator()<T, Norm>().
template <class F>
void visit_norm(const DistanceLaunch& l, F f) {
  visit_device<set_of(DType::float32) | set_of(DType::float64)>(l.dtype, [&]<class T>() {
    if (l.p == 0) f.template operator()<T, ZeroNorm>();
    else if (l.p == 1) f.template operator()<T, OneNorm>();
    else if (l.p == 2) f.template operator()<T, TwoNorm>();
    else if (l.p == std::numeric_limits<double>::infinity()) f.template operator()<T, MaximumNorm>();
    else f.template operator()<T, OtherNorm>();
  });
}

}  // namespace

void run_distances(const DistanceLaunch& l) {
  visit_norm(l, [&]<class T, class Norm>() {
    const auto run = [&]<int K>() {
      const DistanceArgs a{l, tiles(l.m, kSide * K), tiles(l.n, kSide * K)};
      launch_block("_distances", distances_kernel<T, Norm, K>,
                   linear_shape(uint64_t(l.batches * a.across * a.down) * kThreads, kThreads, l.stream), a);
    };
    constexpr bool wide = !std::is_same_v<Norm, OtherNorm>;  // powers are long code
    if (wide && l.batches * tiles(l.m, kSide * 4) * tiles(l.n, kSide * 4) >= kEnough)
      run.template operator()<wide ? 4 : 2>();
    else run.template operator()<2>();
  });
}

void run_distances_gradient(const DistanceLaunch& l, const DistanceNumbers& grad, const DistanceNumbers& distances) {
  visit_norm(l, [&]<class T, class Norm>() {
    if constexpr (!std::is_same_v<Norm, ZeroNorm>) {
      const auto run = [&]<int K>() {
        const DistanceArgs a{l, tiles(l.columns, 32), tiles(l.n, kGroups * K)};
        launch_block("_distances_backward", distances_gradient_kernel<T, Norm, K>,
                     linear_shape(uint64_t(l.batches * a.across * a.down) * kThreads, kThreads, l.stream), a, grad,
                     distances);
      };
      constexpr bool wide = !std::is_same_v<Norm, OtherNorm>;
      if (wide && l.batches * tiles(l.columns, 32) * tiles(l.n, kGroups * 4) >= kEnough)
        run.template operator()<wide ? 4 : 1>();
      else run.template operator()<1>();
    }
  });
}

// ---- cross products ----

namespace {

/// Computes a b - c d as ops on tensors do: each product rounded to the dtype, integers modulo their range.
template <class T>
VESTA_DEVICE T difference_of_products(T a, T b, T c, T d) {
  if constexpr (is_complex_type<T>) {
    const auto product = [](T x, T y) {
      return T(rounded::sub(rounded::mul(x.re, y.re), rounded::mul(x.im, y.im)),
               rounded::add(rounded::mul(x.re, y.im), rounded::mul(x.im, y.re)));
    };
    return product(a, b) - product(c, d);
  } else if constexpr (std::is_integral_v<T>) {
    return T(uint64_t(a) * uint64_t(b) - uint64_t(c) * uint64_t(d));
  } else if constexpr (is_half_type<T>) {
    return convert<T>(convert<float>(convert<T>(convert<float>(a) * convert<float>(b))) -
                      convert<float>(convert<T>(convert<float>(c) * convert<float>(d))));
  } else {
    return rounded::sub(rounded::mul(a, b), rounded::mul(c, d));
  }
}

template <class T>
VESTA_KERNEL void cross_kernel(const T* a, const T* b, T* out, int64_t vectors, Divider inner) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x, step = inner.divisor;
  if (i >= vectors) return;
  const int64_t outer = inner.divide(i), at = outer * 3 * step + (i - outer * step);
  const T x0 = a[at], x1 = a[at + step], x2 = a[at + 2 * step];
  const T y0 = b[at], y1 = b[at + step], y2 = b[at + 2 * step];
  out[at] = difference_of_products(x1, y2, x2, y1);
  out[at + step] = difference_of_products(x2, y0, x0, y2);
  out[at + 2 * step] = difference_of_products(x0, y1, x1, y0);
}

}  // namespace

void run_cross(DType dtype, const void* a, const void* b, void* out, int64_t vectors, int64_t inner,
               StreamHandle stream) {
  visit_device<kNumbers>(dtype, [&]<class T>() {
    launch_independent("linalg_cross", cross_kernel<T>, linear_shape(uint64_t(vectors), kThreads, stream),
                       static_cast<const T*>(a), static_cast<const T*>(b), static_cast<T*>(out), vectors,
                       Divider(inner));
  });
}

}  // namespace vesta::cuda
