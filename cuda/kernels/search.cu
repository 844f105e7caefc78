// Searches in ascending lines, a thread for each value. Neighbouring threads read the same elements in their first
// steps, and short lines stay in L1: the time is that of about log2(n) loads that wait for each other.
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

}  // namespace

void search(const SearchLaunch& l) {
  const DType d = l.dtype == DType::bool_ ? DType::uint8 : l.dtype;
  visit_device<kReals>(d, [&]<class T>() {
    launch_independent("searchsorted", search_kernel<T>, linear_shape(uint64_t(l.count), kThreads, l.stream),
                       static_cast<const T*>(l.lines), static_cast<const T*>(l.values),
                       SearchArgs{l.places, Divider(l.each), l.n, l.count, l.right});
  });
}

}  // namespace vesta::cuda
