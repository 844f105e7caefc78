// Fused optimizer steps over lists of tensors, and the table of row kernels.
#include <cmath>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/ops/nn.h>
#include <vesta/core/ops/ops.h>

VESTA_DECLARE_ON_ISA(void register_rows(vesta::cpu::RowKernels (&)[vesta::kNumDTypes],
                                        vesta::cpu::OptimKernels (&)[vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

RowKernels rows[kNumDTypes];
OptimKernels optim[kNumDTypes];

constexpr int64_t kGrain = 16384;  // parameters a thread takes at a time

/// Checks one list against the parameters: same length (or empty where that is allowed), shapes, dtypes, dense memory.
void check_list(TensorList params, TensorList list, const char* op, const char* name, bool may_be_empty) {
  if (may_be_empty && list.empty()) return;
  VESTA_CHECK(list.size() == params.size(), value, op, ": expected as many ", name, " as params, got ", list.size(),
              " and ", params.size(), ".");
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor &p = params[i], &t = list[i];
    VESTA_CHECK(t.defined(), value, op, ": expected a tensor, got None (", name, "[", i, "]).");
    VESTA_CHECK(std::ranges::equal(p.sizes(), t.sizes()) && p.dtype() == t.dtype(), value, op, ": expected ", name, "[",
                i, "] of shape ", p.sizes(), " and dtype ", p.dtype(), ", got ", t.sizes(), " and ", t.dtype(), ".");
  }
}

/// Gives `t` in the memory order of `like`; a gradient of other strides is copied.
Tensor in_order_of(const Tensor& t, const Tensor& like) {
  if (std::ranges::equal(t.strides(), like.strides())) return t;
  Tensor r = empty_tensor_strided(like.sizes(), like.strides(), t.dtype(), t.device());
  copy_into(r, t, "optimizer step");
  return r;
}

void check_params(TensorList params, const char* op) {
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    VESTA_CHECK(p.defined() && is_float(p.dtype()), type, op, ": expected floating-point params, got ",
                p.defined() ? name(p.dtype()) : "None", " (params[", i, "]).");
    VESTA_CHECK(p.impl()->dense(), value, op, ": expected params without holes or overlaps, got strides ", p.strides(),
                " (params[", i, "]). Use .contiguous().");
    check_writable(p, op);
  }
}

/// State lists are made by the optimizer with zeros_like: same strides as the parameter.
void check_state(TensorList params, TensorList list, const char* op, const char* name) {
  for (size_t i = 0; i < list.size(); ++i) {
    VESTA_CHECK(std::ranges::equal(params[i].strides(), list[i].strides()), value, op, ": expected ", name, "[", i,
                "] with the strides of its parameter ", params[i].strides(), ", got ", list[i].strides(), ".");
    check_writable(list[i], op);
  }
}

void sgd_kernel(TensorList params, TensorList grads, TensorList buffers, double weight_decay, double momentum,
                double lr, double dampening, bool nesterov, bool maximize, bool first) {
  constexpr const char* op = "_fused_sgd_";
  check_params(params, op);
  check_list(params, grads, op, "grads", false);
  check_list(params, buffers, op, "momentum_buffer_list", true);
  check_state(params, buffers, op, "momentum_buffer_list");
  VESTA_CHECK(momentum == 0 || !buffers.empty(), value, op, ": expected a momentum_buffer_list for momentum ", momentum,
              ".");
  SgdStep step{lr, weight_decay, momentum, dampening, nesterov, maximize, first};
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    Tensor g = in_order_of(grads[i], p);
    bool with_momentum = momentum != 0;
    int64_t item = itemsize(p.dtype());
    auto run = optim_kernels(p.dtype()).sgd;
    char *pp = p.impl()->data(), *gp = g.impl()->data(), *mp = with_momentum ? buffers[i].impl()->data() : nullptr;
    parallel_for(p.numel(), kGrain, [&](int64_t b, int64_t e) {
      run(pp + b * item, gp + b * item, mp ? mp + b * item : nullptr, e - b, step);
    });
    p.impl()->storage()->bump(op);
    if (mp) buffers[i].impl()->storage()->bump(op);
  }
}

void adam_kernel(TensorList params, TensorList grads, TensorList m, TensorList v, TensorList top, TensorList steps,
                 double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                 bool decoupled) {
  constexpr const char* op = "_fused_adam_";
  check_params(params, op);
  check_list(params, grads, op, "grads", false);
  check_list(params, m, op, "exp_avgs", false);
  check_list(params, v, op, "exp_avg_sqs", false);
  check_list(params, top, op, "max_exp_avg_sqs", !amsgrad);
  check_state(params, m, op, "exp_avgs");
  check_state(params, v, op, "exp_avg_sqs");
  check_state(params, top, op, "max_exp_avg_sqs");
  VESTA_CHECK(steps.size() == params.size(), value, op, ": expected as many state_steps as params, got ", steps.size(),
              " and ", params.size(), ".");
  for (const Tensor& s : steps) {
    VESTA_CHECK(s.defined() && s.numel() == 1 && s.dtype() == DType::float32, value, op,
                ": expected state_steps of one float32 element each.");
    check_writable(s, op);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    Tensor g = in_order_of(grads[i], p);
    float& count = *steps[i].data_ptr<float>();
    count += 1;
    AdamStep step{lr,
                  beta1,
                  beta2,
                  weight_decay,
                  eps,
                  1 - std::pow(beta1, double(count)),
                  std::sqrt(1 - std::pow(beta2, double(count))),
                  amsgrad,
                  maximize,
                  decoupled};
    int64_t item = itemsize(p.dtype());
    auto run = optim_kernels(p.dtype()).adam;
    char *pp = p.impl()->data(), *gp = g.impl()->data(), *mp = m[i].impl()->data(), *vp = v[i].impl()->data();
    char* tp = amsgrad ? top[i].impl()->data() : nullptr;
    parallel_for(p.numel(), kGrain, [&](int64_t b, int64_t e) {
      run(pp + b * item, gp + b * item, mp + b * item, vp + b * item, tp ? tp + b * item : nullptr, e - b, step);
    });
    for (const Tensor* t : {&p, &m[i], &v[i], &steps[i]}) t->impl()->storage()->bump(op);
    if (tp) top[i].impl()->storage()->bump(op);
  }
}

}  // namespace

const RowKernels& row_kernels(DType d) {
  VESTA_CHECK(is_float(d), type, "expected a floating-point dtype, got ", d, ".");
  return rows[int(d)];
}
const OptimKernels& optim_kernels(DType d) {
  VESTA_CHECK(is_float(d), type, "expected a floating-point dtype, got ", d, ".");
  return optim[int(d)];
}

void register_optim() {
  VESTA_ON_ISA(register_rows, rows, optim);
  ops::_fused_sgd_.set_kernel(DeviceType::cpu, sgd_kernel);
  ops::_fused_adam_.set_kernel(DeviceType::cpu, adam_kernel);
  ops::_fused_sgd_.set_not_differentiable();
  ops::_fused_adam_.set_not_differentiable();
}

}  // namespace vesta::cpu
