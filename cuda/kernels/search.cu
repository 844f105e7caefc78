// Searches in ascending lines, a thread for each value. Neighbouring threads read the same elements in their first
// steps, and short lines stay in L1: the time is that of about log2(n) loads that wait for each other. Where values are
// the numbers of threads, a block finds the ends of its range first.
#include <vesta/cuda/kernels/search.h>

#include <vesta/core/ops/sort_key.h>
#include <vesta/cuda/kernels/teams.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

struct SearchArgs {
  int64_t* places;
  Divider each;
  int64_t n, count;
  bool right;
};

/// Counts the elements of a line that are less than a value, or with `right` not more; NaN is the largest.
template <class T>
VESTA_KERNEL void search_kernel(const T* lines, const T* values, SearchArgs a) {
  const int64_t i = int64_t(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= a.count) return;
  const auto key = sort_key(values[i]);
  const T* line = lines + a.each.divide(i) * a.n;
  int64_t low = 0, left = a.n;
  VESTA_ROLLED
  while (left > 0) {
    const int64_t half = left / 2;
    const auto middle = sort_key(line[low + half]);
    const bool before = a.right ? middle <= key : middle < key;
    low = before ? low + half + 1 : low;
    left = before ? left - half - 1 : half;
  }
  a.places[i] = low;
}

/// Counts the elements of ends[low, low + left) that are not more than a value, from `low` on.
VESTA_DEVICE int64_t not_above(const int64_t* ends, int64_t low, int64_t left, int64_t value) {
  VESTA_ROLLED
  while (left > 0) {
    const int64_t half = left / 2;
    const bool before = ends[low + half] <= value;
    low = before ? low + half + 1 : low;
    left = before ? left - half - 1 : half;
  }
  return low;
}

constexpr int kRepeats = 4;  // results of a thread, a block apart

template <class Index>
VESTA_KERNEL void repeats_kernel(RepeatLaunch l) {
  VESTA_SHARED(int64_t, range, 2);
  const int64_t first = int64_t(blockIdx.x) * kThreads * kRepeats, rank = threadIdx.x;
  VESTA_UNROLL
  for (int k = 0; k < kRepeats; ++k) {
    const int64_t i = first + k * kThreads + rank;
    if (i < l.n && l.ends[i] < (i ? l.ends[i - 1] : 0)) report(l.fault, FaultKind::condition, l.negative, i, l.n);
  }
  if (!l.places) return;  // the same for all threads
  if (first + rank == 0 && l.ends[l.n - 1] != l.total) {
    report(l.fault, FaultKind::condition, l.other_total, l.ends[l.n - 1], l.total);
  }
  if (rank % 32 == 0 && rank < 64) {
    const int64_t last = first + kThreads * kRepeats - 1, at = rank == 0 ? first : last < l.total ? last : l.total - 1;
    range[rank / 32] = not_above(l.ends, 0, l.n, at);
  }
  block_barrier();
  const int64_t low = range[0], left = range[1] - low;
  VESTA_UNROLL
  for (int k = 0; k < kRepeats; ++k) {
    const int64_t j = first + k * kThreads + rank;
    if (j >= l.total) return;
    const int64_t i = not_above(l.ends, low, left, j);
    static_cast<Index*>(l.places)[j] = Index(i < l.n ? i : l.n - 1);  // of ends that are no sums
  }
}

}  // namespace

void run_repeats(const RepeatLaunch& l) {
  const int64_t most = l.n > l.total ? l.n : l.total;
  const LaunchShape shape = linear_shape(uint64_t(most + kRepeats - 1) / kRepeats, kThreads, l.stream);
  if (l.narrow) launch_block("repeat_interleave", repeats_kernel<int32_t>, shape, l);
  else launch_block("repeat_interleave", repeats_kernel<int64_t>, shape, l);
}

void search(const SearchLaunch& l) {
  const DType d = l.dtype == DType::bool_ ? DType::uint8 : l.dtype;
  visit_device<kReals>(d, [&]<class T>() {
    launch_independent("searchsorted", search_kernel<T>, linear_shape(uint64_t(l.count), kThreads, l.stream),
                       static_cast<const T*>(l.lines), static_cast<const T*>(l.values),
                       SearchArgs{l.places, Divider(l.each), l.n, l.count, l.right});
  });
}

}  // namespace vesta::cuda
