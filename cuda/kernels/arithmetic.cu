#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(arithmetic, VESTA_POINTWISE_ARITHMETIC)
}
