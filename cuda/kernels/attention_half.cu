#include <vesta/cuda/kernels/attention.cuh>

namespace vesta::cuda {

bool attention_half(const AttentionLaunch& l, bool gradient) {
  return run_attention<set_of(DType::float16)>(l, gradient);
}

}  // namespace vesta::cuda
