// The arguments of a pointwise kernel: plain data, so that device code compiles without tensors.
#pragma once
#include <cstdint>

#include <vesta/core/ops/pointwise_struct.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int kLaunchDims = 8;  // after merging; the host splits plans with more

/// One run of a pointwise kernel: operands have the kernel's element types; dimension 0 is innermost.
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
    const char* data = nullptr;  // null: one value everywhere, of the type of the computation
    const char* held = nullptr;  // where the device has it; null: the value below
    alignas(16) char value[16] = {};
    int64_t strides[kLaunchDims] = {};  // bytes
  } in[kMaxInputs];
  double params[kMaxParams] = {};
  char* second = nullptr;  // of two results, the second: its elements lie as those of `out`
};

/// A compiled pointwise kernel, which queues a run.
using PointwiseKernel = void (*)(const PointwiseLaunch&);

/// Kernels of two operands of float32 one of which is read as another type, without a copy: [operand][float16 or
/// bfloat16].
struct MixedKernels {
  PointwiseKernel at[2][2] = {};
};

/// The kernels of one op: [variant][dtype], as PointwiseInfo::kernels; null if there is none.
struct PointwiseKernels {
  PointwiseKernel at[4][12] = {};
  MixedKernels mixed = {};
};

/// The kernels that copy with conversion: [from][to].
extern PointwiseKernel conversion_kernels[12][12];

}  // namespace vesta::cuda
