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

/// How two neighbouring parts of a line combine, what changes nothing, the type that is kept from one element to the
/// next, and the names of launches.
struct Sums {
  static constexpr const char *lines = "scan_lines", *pieces = "scan_pieces";
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

template <class T, class F>
VESTA_KERNEL void scan_lines_kernel(ScanLaunch l) {
  const int64_t line = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= l.outer * l.inner) return;
  const int64_t first = line / l.inner * l.length * l.inner + line % l.inner;
  const T* in = static_cast<const T*>(l.in) + first;
  T* out = static_cast<T*>(l.out) + first;
  using S = typename F::template Kept<T>;
  S value = F::template none<S>();
  const int64_t step = l.reverse ? -l.inner : l.inner;
  int64_t at = l.reverse ? (l.length - 1) * l.inner : 0;
  for (int64_t i = 0; i < l.length; ++i, at += step) {
    value = F::combine(value, convert<S>(in[at]));
    out[at] = convert<T>(value);
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
  using S = SumOf<T>;
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
  const T* in = static_cast<const T*>(l.in) + start;
  const unsigned lane = lane_index(), warp = warp_index();
  S v[kPacks][N], through[kPacks];
  VESTA_UNROLL
  for (int u = 0; u < kPacks; ++u) {
    const unsigned first = (u * kScanThreads + threadIdx.x) * N;
    if (packed && first + N <= count) {
      const T* from = l.reverse ? in - first - (N - 1) : in + first;
      const auto pack = *reinterpret_cast<const Elements<T, N>*>(from);
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[u][j] = convert<S>(l.reverse ? pack.v[N - 1 - j] : pack.v[j]);
    } else {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j)
        v[u][j] = first + j < count ? convert<S>(in[int64_t(first + j) * step]) : F::template none<S>();
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
  T* out = static_cast<T*>(l.out) + start;
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
    if (packed && first + N <= count) {
      Elements<T, N> pack;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) pack.v[l.reverse ? N - 1 - j : j] = convert<T>(F::combine(base, v[u][j]));
      *reinterpret_cast<Elements<T, N>*>(l.reverse ? out - first - (N - 1) : out + first) = pack;
      continue;
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (first + j < count) out[int64_t(first + j) * step] = convert<T>(F::combine(base, v[u][j]));
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
  const uintptr_t ends = reinterpret_cast<uintptr_t>(l.in) | reinterpret_cast<uintptr_t>(l.out);
  const bool packed =
      l.inner == 1 && (l.length % 4 == 0 || (l.outer == 1 && !l.reverse)) && ends % alignof(Elements<T, 4>) == 0;
  launch_block(F::pieces, scan_pieces_kernel<T, F>, linear_shape(blocks * kScanThreads, kScanThreads, l.stream), l,
               pieces, packed);
}

/// The same for products and sums of exponentials (scan_products.cu).
void run_other_lines(const ScanLaunch& l);
void run_other_pieces(const ScanLaunch& l);

}  // namespace vesta::cuda
