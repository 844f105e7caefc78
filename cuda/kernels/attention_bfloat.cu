#include <vesta/cuda/kernels/attention.cuh>

namespace vesta::cuda {

bool attention_bfloat(const AttentionLaunch& l, bool gradient) {
  return run_attention<set_of(DType::bfloat16)>(l, gradient);
}

}  // namespace vesta::cuda
