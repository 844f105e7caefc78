#include <vesta/cuda/kernels/scan.h>

#include <type_traits>

#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// The type in which sums of T are kept; integers wrap around.
template <class T>
using SumOf = std::conditional_t<std::is_integral_v<T>, uint64_t, compute_of<T>>;

template <class T>
VESTA_KERNEL void scan_lines_kernel(ScanLaunch l) {
  const int64_t line = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= l.outer * l.inner) return;
  const int64_t first = line / l.inner * l.length * l.inner + line % l.inner;
  const T* in = static_cast<const T*>(l.in) + first;
  T* out = static_cast<T*>(l.out) + first;
  SumOf<T> sum = 0;
  for (int64_t i = 0; i < l.length; ++i) {
    sum += convert<SumOf<T>>(in[i * l.inner]);
    out[i * l.inner] = convert<T>(sum);
  }
}

/// Multiplies along lines, or adds logarithms' numbers, one thread per line.
template <class T, bool logarithms>
VESTA_KERNEL void combine_lines_kernel(ScanLaunch l) {
  const int64_t line = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= l.outer * l.inner) return;
  const int64_t first = line / l.inner * l.length * l.inner + line % l.inner;
  const T* in = static_cast<const T*>(l.in) + first;
  T* out = static_cast<T*>(l.out) + first;
  using C = compute_of<T>;
  C value = convert<C>(in[0]);
  out[0] = in[0];
  for (int64_t i = 1; i < l.length; ++i) {
    const C v = convert<C>(in[i * l.inner]);
    if constexpr (logarithms) {
      const bool first_higher = value >= v || value != value;
      const C high = first_higher ? value : v, low = first_higher ? v : value;
      value = value == v && math::isinf(v) ? v : C(high + math::log1p(math::exp(low - high)));
    } else {
      value = C(value * v);
    }
    out[i * l.inner] = convert<T>(value);
  }
}

template <class T>
VESTA_KERNEL void scan_pieces_kernel(ScanLaunch l, int64_t pieces) {
  using S = SumOf<T>;
  const int64_t line = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const int64_t row = line / l.inner, column = line % l.inner;
  const int64_t begin = piece * kScanPiece, end = begin + kScanPiece < l.length ? begin + kScanPiece : l.length;
  const T* in = static_cast<const T*>(l.in) + row * l.length * l.inner + column;
  T* out = l.out ? static_cast<T*>(l.out) + row * l.length * l.inner + column : nullptr;
  const int64_t place = (row * pieces + piece) * l.inner + column;
  S before = l.offsets && piece > 0 ? static_cast<const S*>(l.offsets)[place - l.inner] : S(0);
  for (int64_t tile = begin; tile < end; tile += kThreads) {
    const int64_t i = tile + threadIdx.x;
    S total;
    const S sum = block_sum_through<kThreads>(i < end ? convert<S>(in[i * l.inner]) : S(0), total);
    if (out && i < end) out[i * l.inner] = convert<T>(before + sum);
    before += total;
  }
  if (l.totals && threadIdx.x == 0) static_cast<S*>(l.totals)[place] = before;
}

}  // namespace

void run_scan_lines(const ScanLaunch& l) {
  const uint64_t lines = uint64_t(l.outer) * uint64_t(l.inner);
  visit_device<kReals>(l.dtype, [&]<class T>() {
    launch_independent("scan_lines", scan_lines_kernel<T>, linear_shape(lines, kThreads, l.stream), l);
  });
}

void run_product_lines(const ScanLaunch& l) {
  const uint64_t lines = uint64_t(l.outer) * uint64_t(l.inner);
  visit_device<kNumbers>(l.dtype, [&]<class T>() {
    launch_independent("cumprod", combine_lines_kernel<T, false>, linear_shape(lines, kThreads, l.stream), l);
  });
}

void run_log_sum_lines(const ScanLaunch& l) {
  const uint64_t lines = uint64_t(l.outer) * uint64_t(l.inner);
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    launch_independent("logcumsumexp", combine_lines_kernel<T, true>, linear_shape(lines, kThreads, l.stream), l);
  });
}

void run_scan_pieces(const ScanLaunch& l) {
  const int64_t pieces = scan_pieces(l.length);
  const uint64_t blocks = uint64_t(l.outer) * uint64_t(l.inner) * uint64_t(pieces);
  visit_device<kReals>(l.dtype, [&]<class T>() {
    launch_block("scan_pieces", scan_pieces_kernel<T>, linear_shape(blocks * kThreads, kThreads, l.stream), l, pieces);
  });
}

}  // namespace vesta::cuda
