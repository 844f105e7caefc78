// The arguments of histograms: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A count of the elements in each of `bins` equal parts of [min, max].
struct HistogramLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32, computed = DType::float32;  // of elements, and of their bins' computation
  const char* x = nullptr;
  int64_t n = 0, bins = 0;
  double min = 0, max = 0;
  unsigned long long* counts = nullptr;  // zeros before
};

/// Queues the launch.
void run_histogram(const HistogramLaunch& l);

}  // namespace vesta::cuda
