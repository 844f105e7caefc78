#include <vesta/cuda/kernels/attention.cuh>

namespace vesta::cuda {

bool attention_float(const AttentionLaunch& l, bool gradient) {
  return run_attention<set_of(DType::float32)>(l, gradient);
}

}  // namespace vesta::cuda
