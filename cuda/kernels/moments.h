// The arguments of means and squares around them: contiguous rows.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The mean and the sum of squared deviations of `rows` contiguous rows of n elements, in the type of the computation.
struct MomentsLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const char* x = nullptr;
  char* mean = nullptr;
  char* squares = nullptr;
  int64_t rows = 0, n = 0;
  bool packed = false;  // rows consist of aligned packs
};

/// Queues the launch.
void moments(const MomentsLaunch& l);

}  // namespace vesta::cuda
