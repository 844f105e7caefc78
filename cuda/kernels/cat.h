// The arguments of the cat kernel: runs of bytes of many tensors, to be copied into the rows of one.
#pragma once
#include <cstdint>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// One tensor: `rows` runs of `run` bytes, `row_stride` apart, that go to offset `at` of each row of the result.
struct CatEntry {
  const char* from = nullptr;
  int64_t row_stride = 0, at = 0, run = 0, rows = 1;
};

inline constexpr int kCatEntries = 64;                  // of one launch
inline constexpr int64_t kCatBytes = int64_t(1) << 31;  // rows * run of an entry is less

/// A launch over up to kCatEntries tensors, none of them empty. Strides and offsets are in bytes.
struct CatLaunch {
  StreamHandle stream = nullptr;
  char* out = nullptr;
  int64_t out_stride = 0;  // from row to row
  int count = 0;
  CatEntry entries[kCatEntries];
};

/// Queues a launch.
void run_cat(const CatLaunch& l);

}  // namespace vesta::cuda
