// Two files compile the kernels, each of some dtypes.
#include <vesta/core/ops/lists/explog.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
void kernels_of_explog_half(PointwiseKernels* to);
VESTA_CUDA_TOPIC_PART(explog_wide, VESTA_OPS_EXPLOG, kAllButHalves, short_ones)

void kernels_of_explog(PointwiseKernels* to) {
  kernels_of_explog_wide(to);
  kernels_of_explog_half(to);
}
}  // namespace vesta::cuda
