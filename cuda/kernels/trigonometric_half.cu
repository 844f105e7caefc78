#include <vesta/core/ops/lists/trigonometric.h>
#include <vesta/core/ops/pointwise/trigonometric.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC_PART(trigonometric_half, VESTA_OPS_TRIGONOMETRIC, kHalves, short_ones)
}  // namespace vesta::cuda
