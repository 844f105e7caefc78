#include <vesta/cuda/kernels/scan.h>

#include <type_traits>

#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

/// An element and its index; none, where the index is negative.
template <class T>
struct Best {
  using Value = std::conditional_t<std::is_integral_v<T>, int64_t, compute_of<T>>;
  Value value;
  int64_t place;
};

template <class T>
VESTA_DEVICE Best<T> none() {
  return {typename Best<T>::Value(0), -1};
}
template <class T>
VESTA_DEVICE Best<T> load(const Placed& from, int64_t at, int64_t place) {
  const T v = static_cast<const T*>(from.values)[at];
  return {convert<typename Best<T>::Value>(v), from.places ? from.places[at] : place};
}
template <class T>
VESTA_DEVICE void store(const Placed& to, int64_t at, Best<T> b) {
  static_cast<T*>(to.values)[at] = convert<T>(b.value), to.places[at] = b.place;
}

/// Chooses between an element and a later one.
template <class T>
VESTA_DEVICE Best<T> choose(Best<T> a, Best<T> later, bool smallest) {
  if (later.place < 0) return a;
  if (a.place < 0 || later.value != later.value) return later;
  if (a.value != a.value) return a;
  return (smallest ? later.value <= a.value : later.value >= a.value) ? later : a;
}

template <class T>
VESTA_KERNEL void extrema_lines_kernel(ExtremaLaunch l) {
  const int64_t line = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (line >= l.outer * l.inner) return;
  const int64_t first = line / l.inner * l.length * l.inner + line % l.inner;
  Best<T> best = none<T>();
  for (int64_t i = 0; i < l.length; ++i) {
    best = choose(best, load<T>(l.in, first + i * l.inner, i), l.smallest);
    store<T>(l.out, first + i * l.inner, best);
  }
}

/// Returns the best of this thread's element and all before it, and sets `total` to the best of all.
template <class T>
VESTA_DEVICE Best<T> block_best_through(Best<T> best, Best<T>& total, bool smallest) {
  constexpr unsigned kWarps = kThreads / 32;
  VESTA_SHARED(Best<T>, warp_bests, kWarps);
  const unsigned lane = lane_index(), warp = warp_index();
  for (unsigned step = 1; step < 32; step *= 2) {
    const Best<T> before = shuffle(best, lane >= step ? lane - step : lane);
    if (lane >= step) best = choose(before, best, smallest);
  }
  block_barrier();  // the last call's have been read
  if (lane == 31) warp_bests[warp] = best;
  block_barrier();
  Best<T> before = none<T>();
  total = none<T>();
  for (unsigned w = 0; w < kWarps; ++w) {
    if (w < warp) before = choose(before, warp_bests[w], smallest);
    total = choose(total, warp_bests[w], smallest);
  }
  return choose(before, best, smallest);
}

template <class T>
VESTA_KERNEL void extrema_pieces_kernel(ExtremaLaunch l, int64_t pieces) {
  const int64_t line = blockIdx.x / pieces, piece = blockIdx.x % pieces;
  const int64_t row = line / l.inner, column = line % l.inner, first = row * l.length * l.inner + column;
  const int64_t begin = piece * kScanPiece, end = begin + kScanPiece < l.length ? begin + kScanPiece : l.length;
  const int64_t at = (row * pieces + piece) * l.inner + column;
  Best<T> before = l.offsets.values && piece > 0 ? load<T>(l.offsets, at - l.inner, 0) : none<T>();
  for (int64_t tile = begin; tile < end; tile += kThreads) {
    const int64_t i = tile + threadIdx.x;
    const Best<T> mine = i < end ? load<T>(l.in, first + i * l.inner, i) : none<T>();
    Best<T> total;
    const Best<T> best = block_best_through(mine, total, l.smallest);
    if (l.out.values && i < end) store<T>(l.out, first + i * l.inner, choose(before, best, l.smallest));
    before = choose(before, total, l.smallest);
  }
  if (l.totals.values && threadIdx.x == 0) store<T>(l.totals, at, before);
}

}  // namespace

void run_extrema_lines(const ExtremaLaunch& l) {
  const uint64_t lines = uint64_t(l.outer) * uint64_t(l.inner);
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    launch_independent("extrema_lines", extrema_lines_kernel<T>, linear_shape(lines, kThreads, l.stream), l);
  });
}

void run_extrema_pieces(const ExtremaLaunch& l) {
  const int64_t pieces = scan_pieces(l.length);
  const uint64_t blocks = uint64_t(l.outer) * uint64_t(l.inner) * uint64_t(pieces);
  visit_device<kReals | kBool>(l.dtype, [&]<class T>() {
    launch_block("extrema_pieces", extrema_pieces_kernel<T>, linear_shape(blocks * kThreads, kThreads, l.stream), l,
                 pieces);
  });
}

}  // namespace vesta::cuda
