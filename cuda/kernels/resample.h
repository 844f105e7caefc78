// The arguments of the resampling kernel: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A sparse matrix [size, in] times x [outer, in, inner], to y [outer, size, inner]; both dense.
struct ResampleLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t outer = 0, in = 0, size = 0, inner = 0;
  const int64_t* rows = nullptr;  // size + 1 offsets, then the places
  const void* weights = nullptr;  // of the type of computation
  const void* input = nullptr;
  void* result = nullptr;
};
/// Queues the product; floating dtypes. The terms of an element are added in the order of its row.
void run_resample(const ResampleLaunch& launch);

}  // namespace vesta::cuda
