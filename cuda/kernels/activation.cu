// Two files compile the kernels, each of some dtypes.
#include <vesta/core/ops/lists/activation.h>
#include <vesta/core/ops/pointwise/activation.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
void kernels_of_activation_half(PointwiseKernels* to);
VESTA_CUDA_TOPIC_PART(activation_wide, VESTA_OPS_ACTIVATION, kAllButHalves, short_ones)

void kernels_of_activation(PointwiseKernels* to) {
  kernels_of_activation_wide(to);
  kernels_of_activation_half(to);
}
}  // namespace vesta::cuda
