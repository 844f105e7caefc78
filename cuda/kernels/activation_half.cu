#include <vesta/core/ops/lists/activation.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC_PART(activation_half, VESTA_OPS_ACTIVATION, kHalves, short_ones)
}  // namespace vesta::cuda
