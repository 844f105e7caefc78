// The arguments of searches in ascending lines.
#pragma once
#include <vesta/core/dtype_set.h>
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

}  // namespace vesta::cuda
