#include <vesta/core/ops/pointwise/compare.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(compare, VESTA_POINTWISE_COMPARE)
}
