#include <vesta/core/ops/lists/explog.h>
#include <vesta/core/ops/pointwise/explog.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(explog, VESTA_OPS_EXPLOG)
}
