// The topic with the most ops: each of three files compiles the kernels of some dtypes, a fourth those of mixed ones.
#include <vesta/core/ops/lists/arithmetic.h>
#include <vesta/core/ops/pointwise/arithmetic.h>
#include <vesta/cuda/kernels/loops.cuh>

namespace vesta::cuda {
void kernels_of_arithmetic_half(PointwiseKernels* to);
void kernels_of_arithmetic_integer(PointwiseKernels* to);
void kernels_of_arithmetic_mixed(PointwiseKernels* to);
VESTA_CUDA_TOPIC_PART(arithmetic_wide, VESTA_OPS_ARITHMETIC,
                      set_of(DType::float32) | set_of(DType::float64) | kComplexes, short_ones)

void kernels_of_arithmetic(PointwiseKernels* to) {
  kernels_of_arithmetic_wide(to);
  kernels_of_arithmetic_half(to);
  kernels_of_arithmetic_integer(to);
  kernels_of_arithmetic_mixed(to);
}
}  // namespace vesta::cuda
