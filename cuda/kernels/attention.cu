#include <vesta/cuda/kernels/attention.cuh>

namespace vesta::cuda {
namespace {

void run(const AttentionLaunch& l, bool gradient) {
  attention_double(l, gradient) || attention_float(l, gradient) || attention_half(l, gradient) ||
      attention_bfloat(l, gradient);
}

}  // namespace

bool attention_double(const AttentionLaunch& l, bool gradient) {
  return run_attention<set_of(DType::float64)>(l, gradient);
}

void attention(const AttentionLaunch& l) { run(l, false); }
void attention_backward(const AttentionLaunch& l) { run(l, true); }

}  // namespace vesta::cuda
