#include <vesta/core/ops/lists/numbers.h>
#include <vesta/core/ops/pointwise/numbers.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
VESTA_CUDA_TOPIC(numbers, VESTA_OPS_NUMBERS)
}
