// The arguments of the resampling kernels: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A sparse matrix [size, in]: what the results along a dimension are made of.
struct ResampleAxis {
  int64_t in = 1, size = 1;
  int64_t terms = 1;              // of all rows
  const int64_t* rows = nullptr;  // size + 1 offsets, then the indices; null: the dimension stays as it is
  const void* weights = nullptr;  // of the type of computation
};

/// Two matrices for neighbouring dimensions of x [outer, down.in, along.in, inner], to y [outer, down.size, along.size,
/// inner]; both dense.
struct ResampleLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  int64_t outer = 1, inner = 1;
  ResampleAxis down, along;
  const void* input = nullptr;
  void* result = nullptr;
};
/// Queues the products; floating dtypes. A result is the sum over the row of `along`, in its order, of weight times the
/// sum over the row of `down`, in its order; products and sums are rounded each, in the type of computation, so that
/// the CPU and every layout have the same bits. Returns false, having queued nothing, where two launches with one
/// matrix each take less.
bool run_resample(const ResampleLaunch& launch);

}  // namespace vesta::cuda
