#include <vesta/core/ops/lists/arithmetic.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC_PART(arithmetic_integer, VESTA_OPS_ARITHMETIC, kIntegers | kBool, short_ones)
}  // namespace vesta::cuda
