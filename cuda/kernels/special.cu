// Two files compile the kernels, each of some dtypes.
#include <vesta/core/ops/lists/special.h>
#include <vesta/core/ops/pointwise/special.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
void kernels_of_special_half(PointwiseKernels* to);
VESTA_CUDA_TOPIC_PART(special_wide, VESTA_OPS_SPECIAL, kAllButHalves, long_ones)

void kernels_of_special(PointwiseKernels* to) {
  kernels_of_special_wide(to);
  kernels_of_special_half(to);
}
}  // namespace vesta::cuda
