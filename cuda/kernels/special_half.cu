#include <vesta/core/ops/lists/special.h>
#include <vesta/core/ops/pointwise/special.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC_PART(special_half, VESTA_OPS_SPECIAL, kHalves, long_ones)
}  // namespace vesta::cuda
