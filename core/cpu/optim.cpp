// Fused optimizer steps over lists of tensors, and the table of row kernels.
#include <cmath>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/optim.h>

VESTA_DECLARE_ON_ISA(void register_rows(vesta::cpu::RowKernels (&)[vesta::kNumDTypes],
                                        vesta::cpu::OptimKernels (&)[vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

RowKernels rows[kNumDTypes];
OptimKernels optim[kNumDTypes];

constexpr int64_t kGrain = 16384;  // parameters a thread takes at a time

void sgd_kernel(TensorList params, TensorList grads, TensorList buffers, double weight_decay, double momentum,
                double lr, double dampening, bool nesterov, bool maximize, bool first) {
  constexpr const char* op = "_fused_sgd_";
  check_sgd(params, grads, buffers, momentum);
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
    p.impl()->bump(op);
    if (mp) buffers[i].impl()->bump(op);
  }
}

void adam_kernel(TensorList params, TensorList grads, TensorList m, TensorList v, TensorList top, TensorList steps,
                 double lr, double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize,
                 bool decoupled) {
  constexpr const char* op = "_fused_adam_";
  check_adam(params, grads, m, v, top, steps, amsgrad);
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
    for (const Tensor* t : {&p, &m[i], &v[i], &steps[i]}) t->impl()->bump(op);
    if (tp) top[i].impl()->bump(op);
  }
}

void rmsprop_kernel(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                    TensorList steps, double lr, double alpha, double eps, double weight_decay, double momentum,
                    bool centered, bool maximize) {
  constexpr const char* op = "_fused_rmsprop_";
  check_rmsprop(params, grads, squares, means, buffers, steps, momentum, centered);
  const RmspropStep step{lr, alpha, eps, weight_decay, momentum, centered, maximize};
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    Tensor g = in_order_of(grads[i], p);
    *steps[i].data_ptr<float>() += 1;
    int64_t item = itemsize(p.dtype());
    auto run = optim_kernels(p.dtype()).rmsprop;
    char *pp = p.impl()->data(), *gp = g.impl()->data(), *vp = squares[i].impl()->data();
    char *ap = centered ? means[i].impl()->data() : nullptr, *mp = momentum != 0 ? buffers[i].impl()->data() : nullptr;
    parallel_for(p.numel(), kGrain, [&](int64_t b, int64_t e) {
      run(pp + b * item, gp + b * item, vp + b * item, ap ? ap + b * item : nullptr, mp ? mp + b * item : nullptr,
          e - b, step);
    });
    for (const Tensor* t : {&p, &squares[i], &steps[i]}) t->impl()->bump(op);
    if (ap) means[i].impl()->bump(op);
    if (mp) buffers[i].impl()->bump(op);
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
  ops::_fused_rmsprop_.set_kernel(DeviceType::cpu, rmsprop_kernel);
}

}  // namespace vesta::cpu
