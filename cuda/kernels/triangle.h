// The arguments of tril and triu: contiguous matrices.
#pragma once
#include <cstdint>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A copy of one triangle of matrices: the elements at or below a diagonal, or at or above it; the rest becomes zero.
struct TriangleLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  const char* from = nullptr;
  char* to = nullptr;
  int64_t item = 4;                       // bytes of an element: 1, 2, 4, 8 or 16
  int64_t rows = 0, columns = 0, all = 0;  // of a matrix; elements in all
  int64_t diagonal = 0;
  bool lower = false;
};

/// Queues the launch.
void triangle(const TriangleLaunch& l);

}  // namespace vesta::cuda
