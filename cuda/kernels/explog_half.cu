#include <vesta/core/ops/lists/explog.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC_PART(explog_half, VESTA_OPS_EXPLOG, kHalves, short_ones)
}  // namespace vesta::cuda
