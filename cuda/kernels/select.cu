#include <vesta/core/ops/lists/select.h>
#include <vesta/core/ops/pointwise/select.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(select, VESTA_OPS_SELECT)
}
