// The arguments of searches in ascending lines.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A search for the indices of `count` values, `each` of which search one line of n elements; all is contiguous.
struct SearchLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const void* lines = nullptr;
  const void* values = nullptr;
  int64_t* places = nullptr;
  int64_t n = 0, each = 1, count = 0;
  bool right = false;  // behind equal elements
};

/// Queues the launch.
void search(const SearchLaunch& l);

/// The elements that repeat_interleave takes: element i, of n, fills the indices up to ends[i].
struct RepeatLaunch {
  StreamHandle stream = nullptr;
  const int64_t* ends = nullptr;
  int64_t n = 0, total = 0;
  void* places = nullptr;  // [total], of int32 if `narrow`, else of int64; null: ends are checked alone
  bool narrow = false;
  Fault* fault = nullptr;
  const char *negative = "", *other_total = "";  // the messages for ends that fall, and for a last one other than total
};
/// Queues places[j] = the first i with ends[i] > j, and the checks.
void run_repeats(const RepeatLaunch& l);

}  // namespace vesta::cuda
