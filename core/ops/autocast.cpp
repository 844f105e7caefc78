// Which op computes in which dtype under autocast: PyTorch's table, a row per op, CPU and CUDA side by side. Composites
// stand in it through the ops they call; those that need a row of their own ask autocast::redirected() first (addmm,
// cross_entropy, nll_loss, mse_loss, layer_norm, norm, binary_cross_entropy_with_logits, index_put, scatter_add).
#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/register.h>

namespace vesta {

// X(op, on the CPU, on CUDA)
#define VESTA_AUTOCAST(X)                        \
  X(matmul, lower, lower)                        \
  X(linear, lower, lower)                        \
  X(conv2d, lower, lower)                        \
  X(exp, none, float32)                          \
  X(log, none, float32)                          \
  X(log1p, none, float32)                        \
  X(rsqrt, none, float32)                        \
  X(softplus, none, float32)                     \
  X(reciprocal, none, float32)                   \
  X(pow, none, float32)                          \
  X(sum, none, float32_result)                   \
  X(cumsum, none, float32_result)                \
  X(softmax_float, none, float32)                \
  X(log_softmax_float, none, float32)            \
  X(cross_entropy_rows, float32, float32)        \
  X(atan2, none, widest)                         \
  X(cat, widest, widest)

void register_autocast() {
#define VESTA_X(name, on_cpu, on_cuda) \
  autocast::enter<ops::name, autocast::Rules{autocast::Rule::on_cpu, autocast::Rule::on_cuda}>();
  VESTA_AUTOCAST(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta
