// The kernels of running sums: a thread for a short line, or a block for a piece of a line.
#pragma once
#include <type_traits>

#include <vesta/cuda/kernels/scan.h>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {

constexpr unsigned kScanThreads = 256;

/// The type in which sums and products of T are kept; integers wrap around.
template <class T>
using SumOf = std::conditional_t<std::is_integral_v<T>, uint64_t, compute_of<T>>;

/// The type in which products of T are kept from one element to the next: the CPU's, whose range is wider.
template <class T>
struct WideProduct {
  using type = std::conditional_t<std::is_same_v<T, float>, double, SumOf<T>>;
};
template <>
struct WideProduct<Complex<float>> {
  using type = Complex<double>;
};

/// A line whose elements are combined as they are; `start` is where the scan begins.
template <class T>
struct ElementLine {
  using S = SumOf<T>;
  const T* in;
  T* out;
  VESTA_DEVICE ElementLine(const ScanLaunch& l, int64_t start)
      : in(static_cast<const T*>(l.in) + start), out(static_cast<T*>(l.out) + start) {}
  template <int N, class Wide>
  VESTA_DEVICE void load(int64_t at, Wide* v) const {
    const auto pack = *reinterpret_cast<const Elements<T, N>*>(in + at);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = convert<Wide>(pack.v[j]);
  }
  template <int N, class Wide>
  VESTA_DEVICE void store(int64_t at, const Wide* v) const {
    Elements<T, N> pack;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) pack.v[j] = convert<T>(v[j]);
    *reinterpret_cast<Elements<T, N>*>(out + at) = pack;
  }
};

/// A sum of g_j e^(top - y_j): nothing overflows if top is the least of the y_j.
template <class C>
struct alignas(2 * sizeof(C)) ScaledSum {
  C top, sum;
};

/// A line of logcumsumexp's gradient: g_j and y_j are combined, and the sums of g_j e^(x_i - y_j) stored.
template <class T>
struct LogSumsGradientLine {
  using C = compute_of<T>;
  using S = ScaledSum<C>;
  const T *grad, *x, *y;
  T* out;
  VESTA_DEVICE LogSumsGradientLine(const ScanLaunch& l, int64_t start)
      : grad(static_cast<const T*>(l.in) + start),
        x(static_cast<const T*>(l.input) + start),
        y(static_cast<const T*>(l.result) + start),
        out(static_cast<T*>(l.out) + start) {}
  template <int N, class Wide>
  VESTA_DEVICE void load(int64_t at, Wide* v) const {
    const auto of_y = *reinterpret_cast<const Elements<T, N>*>(y + at);
    const auto of_grad = *reinterpret_cast<const Elements<T, N>*>(grad + at);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = {convert<C>(of_y.v[j]), convert<C>(of_grad.v[j])};
  }
  template <int N, class Wide>
  VESTA_DEVICE void store(int64_t at, const Wide* v) const {
    const auto of_x = *reinterpret_cast<const Elements<T, N>*>(x + at);
    Elements<T, N> pack;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      const C slope = v[j].sum * math::exp(convert<C>(of_x.v[j]) - v[j].top);
      pack.v[j] = convert<T>(v[j].sum == C(0) ? C(0) : slope);
    }
    *reinterpret_cast<Elements<T, N>*>(out + at) = pack;
  }
};

/// How two neighbouring parts of a line combine, what changes nothing, how elements are loaded and stored, the type
/// that is kept from one element to the next, and the names of launches.
struct Sums {
  static constexpr const char *lines = "scan_lines", *pieces = "scan_pieces";
  template <class T>
  using Line = ElementLine<T>;
  template <class T>
  using Kept = SumOf<T>;
  template <class S>
  VESTA_DEVICE static S none() {
    return S(0);
  }
  template <class S>
  VESTA_DEVICE static S combine(S a, S b) {
    return S(a + b);
  }
};
struct Products {
  static constexpr const char *lines = "cumprod", *pieces = "cumprod_pieces";
  template <class T>
  using Line = ElementLine<T>;
  template <class T>
  using Kept = typename WideProduct<T>::type;
  template <class S>
  VESTA_DEVICE static S none() {
    return S(1);
  }
  template <class S>
  VESTA_DEVICE static S combine(S a, S b) {
    return S(a * b);
  }
};
/// log(e^a + e^b).
struct LogSums {
  static constexpr const char *lines = "logcumsumexp", *pieces = "logcumsumexp_pieces";
  template <class T>
  using Line = ElementLine<T>;
  template <class T>
  using Kept = SumOf<T>;
  template <class S>
  VESTA_DEVICE static S none() {
    return S(-INFINITY);
  }
  template <class S>
  VESTA_DEVICE static S combine(S a, S b) {
    const bool first_higher = a >= b || a != a;
    const S high = first_higher ? a : b, low = first_higher ? b : a;
    return a == b && math::isinf(b) ? b : S(high + math::log1p(math::exp(low - high)));
  }
};

/// The same for the gradient of log_sums. A line's later elements come first, and their y are no smaller.
struct LogSumsGradient {
  static constexpr const char *lines = "_logcumsumexp_backward", *pieces = "_logcumsumexp_backward_pieces";
  template <class T>
  struct LineOf {
    using type = LogSumsGradientLine<T>;
  };
  template <class C>
  struct LineOf<ScaledSum<C>> {
    using type = ElementLine<ScaledSum<C>>;
  };
  template <class T>
  using Line = typename LineOf<T>::type;
  template <class T>
  using Kept = typename Line<T>::S;
  template <class S>
  VESTA_DEVICE static S none() {
    return {INFINITY, 0};
  }
  template <class C>
  VESTA_DEVICE static ScaledSum<C> combine(ScaledSum<C> a, ScaledSum<C> b) {
    if (b.sum == C(0) && b.top == C(INFINITY)) return a;
    return {b.top, b.sum + (a.top == b.top ? a.sum : C(a.sum * math::exp(b.top - a.top)))};
  }
};

template <class T, class F>
VESTA_KERNEL void scan_lines_kernel(ScanLaunch l) {
  const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= l.outer * l.inner) return;
  const typename F::template Line<T> line(l, number / l.inner * l.length * l.inner + number % l.inner);
  using S = typename F::template Kept<T>;
  S value = F::template none<S>();
  const int64_t step = l.reverse ? -l.inner : l.inner;
  int64_t at = l.reverse ? (l.length - 1) * l.inner : 0;
  for (int64_t i = 0; i < l.length; ++i, at += step) {
    S own;
    line.template load<1>(at, &own);
    value = F::combine(value, own);
    line.template store<1>(at, &value);
  }
}

/// Returns what the values of this lane and those before it give.
template <class F, class S>
VESTA_DEVICE S warp_scan_through(S sum) {
  const unsigned lane = lane_index();
  for (unsigned step = 1; step < 32; step *= 2) {
    const S before = shuffle(sum, lane >= step ? lane - step : lane);
    if (lane >= step) sum = F::combine(before, sum);
  }
  return sum;
}

/// A thread holds all its elements of a piece: packs of four in a row, 1024 apart. The order of the operations is
/// the same whether they are loaded as packs or one by one.
template <class T, class F>
VESTA_KERNEL void scan_pieces_kernel(ScanLaunch l, int64_t pieces, bool packed) {
  using S = typename F::template Line<T>::S;
  constexpr int N = 4, kPacks = int(kScanPiece) / int(kScanThreads * N);
  constexpr unsigned kWarps = kScanThreads / 32, kSums = kPacks * kWarps;
  static_assert(kSums == 64, "two sums of warps for each lane");
  VESTA_SHARED(S, warp_sums, kSums);
  const int64_t line = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const int64_t row = line / l.inner, column = line % l.inner, begin = piece * kScanPiece;
  const unsigned count = unsigned(l.length - begin < kScanPiece ? l.length - begin : kScanPiece);
  // Element number `first` of the piece is at first * step from its start, which is the line's end if it is reversed.
  const int64_t start = (row * l.length + (l.reverse ? l.length - 1 - begin : begin)) * l.inner + column;
  const int64_t step = l.reverse ? -l.inner : l.inner;
  const typename F::template Line<T> elements(l, start);
  const unsigned lane = lane_index(), warp = warp_index();
  S v[kPacks][N], through[kPacks];
  VESTA_UNROLL
  for (int u = 0; u < kPacks; ++u) {
    const unsigned first = (u * kScanThreads + threadIdx.x) * N;
    if (packed && first + N <= count) {
      S w[N];
      elements.template load<N>(l.reverse ? -int64_t(first) - (N - 1) : int64_t(first), w);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[u][j] = l.reverse ? w[N - 1 - j] : w[j];
    } else {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        v[u][j] = F::template none<S>();
        if (first + j < count) elements.template load<1>(int64_t(first + j) * step, &v[u][j]);
      }
    }
  }
  VESTA_UNROLL
  for (int u = 0; u < kPacks; ++u) {
    through[u] = F::template none<S>();
    if (u * kScanThreads * N < count) {
      VESTA_UNROLL
      for (int j = 1; j < N; ++j) v[u][j] = F::combine(v[u][j - 1], v[u][j]);
      through[u] = warp_scan_through<F>(v[u][N - 1]);
    }
    if (lane == 31) warp_sums[u * kWarps + warp] = through[u];
  }
  block_barrier();
  const int64_t place = (row * pieces + piece) * l.inner + column;
  const S before = l.offsets && piece > 0 ? static_cast<const S*>(l.offsets)[place - l.inner] : F::template none<S>();
  const S even = warp_sums[2 * lane], pairs = warp_scan_through<F>(F::combine(even, warp_sums[2 * lane + 1]));
  if (l.totals && threadIdx.x == kScanThreads - 1) static_cast<S*>(l.totals)[place] = F::combine(before, pairs);
  if (!l.out) return;
  const S pairs_before = shuffle(pairs, lane > 0 ? lane - 1 : 0),
          lane_before = lane > 0 ? pairs_before : F::template none<S>();
  VESTA_UNROLL
  for (int u = 0; u < kPacks; ++u) {
    if (u * kScanThreads * N >= count) break;
    const unsigned sums = u * kWarps + warp;  // of warps before this one's pack
    S base = F::combine(before, shuffle(lane_before, sums / 2));
    const S last = shuffle(even, sums / 2), beside = shuffle(through[u], lane > 0 ? lane - 1 : 0);
    if (sums % 2 == 1) base = F::combine(base, last);
    if (lane > 0) base = F::combine(base, beside);
    const unsigned first = (u * kScanThreads + threadIdx.x) * N;
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[u][j] = F::combine(base, v[u][j]);
    if (packed && first + N <= count) {
      S w[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) w[j] = l.reverse ? v[u][N - 1 - j] : v[u][j];
      elements.template store<N>(l.reverse ? -int64_t(first) - (N - 1) : int64_t(first), w);
      continue;
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (first + j < count) elements.template store<1>(int64_t(first + j) * step, &v[u][j]);
    }
  }
}

/// Queues the kernels of a launch over elements of T, which F combines.
template <class T, class F>
void queue_scan_lines(const ScanLaunch& l) {
  const uint64_t lines = uint64_t(l.outer) * uint64_t(l.inner);
  launch_independent(F::lines, scan_lines_kernel<T, F>, linear_shape(lines, kScanThreads, l.stream), l);
}
template <class T, class F>
void queue_scan_pieces(const ScanLaunch& l) {
  const int64_t pieces = scan_pieces(l.length);
  const uint64_t blocks = uint64_t(l.outer) * uint64_t(l.inner) * uint64_t(pieces);
  const uintptr_t ends = reinterpret_cast<uintptr_t>(l.in) | reinterpret_cast<uintptr_t>(l.out) |
                         reinterpret_cast<uintptr_t>(l.input) | reinterpret_cast<uintptr_t>(l.result);
  const bool packed =
      l.inner == 1 && (l.length % 4 == 0 || (l.outer == 1 && !l.reverse)) && ends % alignof(Elements<T, 4>) == 0;
  launch_block(F::pieces, scan_pieces_kernel<T, F>, linear_shape(blocks * kScanThreads, kScanThreads, l.stream), l,
               pieces, packed);
}

/// The same for products, sums of exponentials and their gradient (scan_products.cu).
void run_other_lines(const ScanLaunch& l);
void run_other_pieces(const ScanLaunch& l);

}  // namespace vesta::cuda
