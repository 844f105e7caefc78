#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(activation, VESTA_POINTWISE_ACTIVATION)
}
