// Fused optimizer steps: checks, and the count of versions.
#include <vesta/core/ops/optim.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

void written(TensorList list, const char* op) {
  for (const Tensor& t : list) t.impl()->bump(op);
}

/// Counts a step. The counters of steps may have values where the parameters have none.
void count_steps(TensorList steps, const char* op) {
  for (const Tensor& t : steps) {
    if (t.device().type == DeviceType::cpu) *t.data_ptr<float>() += 1;
  }
  written(steps, op);
}

void sgd(TensorList params, TensorList grads, TensorList buffers, double, double momentum, double, double, bool, bool,
         bool) {
  constexpr const char* op = "_fused_sgd_";
  check_sgd(params, grads, buffers, momentum);
  written(params, op);
  if (momentum != 0) written(buffers, op);
}

void adam(TensorList params, TensorList grads, TensorList m, TensorList v, TensorList top, TensorList steps, double,
          double, double, double, double, bool amsgrad, bool, bool) {
  constexpr const char* op = "_fused_adam_";
  check_adam(params, grads, m, v, top, steps, amsgrad);
  written(params, op);
  written(m, op);
  written(v, op);
  if (amsgrad) written(top, op);
  count_steps(steps, op);
}

void rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
             TensorList steps, double, double, double, double, double momentum, bool centered, bool) {
  constexpr const char* op = "_fused_rmsprop_";
  check_rmsprop(params, grads, squares, means, buffers, steps, momentum, centered);
  written(params, op);
  written(squares, op);
  if (centered) written(means, op);
  if (momentum != 0) written(buffers, op);
  count_steps(steps, op);
}

}  // namespace

void register_optim() {
  ops::_fused_sgd_.set_kernel(DeviceType::meta, sgd);
  ops::_fused_adam_.set_kernel(DeviceType::meta, adam);
  ops::_fused_rmsprop_.set_kernel(DeviceType::meta, rmsprop);
}

}  // namespace vesta::meta
