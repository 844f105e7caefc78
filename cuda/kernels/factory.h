// Sequences: each value is computed from its number.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// An arange over n contiguous elements.
struct ArangeLaunch {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  void* out = nullptr;
  int64_t n = 0;
  uint64_t first = 0, by = 0;          // for integers, wrapping
  double real_first = 0, real_by = 0;  // for floats
};
void run_arange(const ArangeLaunch& l);

/// A linspace over n contiguous elements: counted from both ends. Values of a float type are exact in double.
struct LinspaceLaunch {
  DType dtype = DType::float32;
  StreamHandle stream = nullptr;
  void* out = nullptr;
  int64_t n = 0;
  double start[2] = {}, end[2] = {}, step[2] = {};  // real and imaginary parts, in the type of the computation
};
void run_linspace(const LinspaceLaunch& l);

}  // namespace vesta::cuda
