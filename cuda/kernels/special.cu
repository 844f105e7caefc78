#include <vesta/core/ops/lists/special.h>
#include <vesta/core/ops/pointwise/special.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(special, VESTA_OPS_SPECIAL)
}
