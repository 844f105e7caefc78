// What the host hands to a pointwise kernel: plain data, so that device code needs no tensor to compile.
#pragma once
#include <cstdint>

#include <vesta/core/ops/pointwise_struct.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int kLaunchDims = 8;  // after merging; more are taken apart by the host

/// Is one run of a pointwise kernel: all operands have the kernel's element type, dimension 0 is innermost.
struct PointwiseLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  int64_t numel = 0;  // < 2^31
  int ndim = 0;
  int64_t sizes[kLaunchDims] = {};
  char* out = nullptr;
  int64_t out_strides[kLaunchDims] = {};  // bytes
  int inputs = 0;
  struct Input {
    const char* data = nullptr;  // null: the value below, everywhere
    alignas(16) char value[16] = {};
    int64_t strides[kLaunchDims] = {};  // bytes
  } in[kMaxInputs];
  double params[kMaxParams] = {};
};

/// Is a compiled pointwise kernel: queues a run.
using PointwiseKernel = void (*)(const PointwiseLaunch&);

/// Holds the kernels of one op: [variant][dtype], as PointwiseInfo::kernels; null where there is none.
struct PointwiseKernels {
  PointwiseKernel at[4][12] = {};
};

/// Copies with conversion: kernel [from][to].
extern PointwiseKernel conversion_kernels[12][12];

}  // namespace vesta::cuda
