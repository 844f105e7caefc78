// The arguments of the kernels of linear algebra: plain data.
#pragma once
#include <cstdint>

#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Pivots [count, n], from 1, that become orders of rows [count, rows].
struct PermutationLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  const int64_t* pivots = nullptr;
  int64_t* order = nullptr;
  int64_t count = 0, n = 0, rows = 0;
  Fault* fault = nullptr;
};
/// Queues the exchanges, one matrix a thread; a pivot out of range is reported and skipped.
void run_permutation(const PermutationLaunch& launch);

}  // namespace vesta::cuda
