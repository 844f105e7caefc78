#include <vesta/core/ops/lists/compare.h>
#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(compare, VESTA_OPS_COMPARE)
}
