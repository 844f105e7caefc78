// Two files compile the kernels, each of some dtypes.
#include <vesta/core/ops/lists/trigonometric.h>
#include <vesta/core/ops/pointwise/trigonometric.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
void kernels_of_trigonometric_half(PointwiseKernels* to);
VESTA_CUDA_TOPIC_PART(trigonometric_wide, VESTA_OPS_TRIGONOMETRIC, kAllButHalves, short_ones)

void kernels_of_trigonometric(PointwiseKernels* to) {
  kernels_of_trigonometric_wide(to);
  kernels_of_trigonometric_half(to);
}
}  // namespace vesta::cuda
