#include <vesta/cuda/kernels/attention.cuh>

namespace vesta::cuda {

bool attention_wide(const AttentionLaunch& l, bool gradient) {
  return run_attention<set_of(DType::float32) | set_of(DType::float64)>(l, gradient);
}

void attention(const AttentionLaunch& l) { attention_wide(l, false) || attention_half(l, false); }
void attention_gradient(const AttentionLaunch& l) { attention_wide(l, true) || attention_half(l, true); }

}  // namespace vesta::cuda
