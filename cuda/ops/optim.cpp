// Fused optimizer steps on the device: parameters are grouped by device and dtype, with one launch per few hundred.
#include <vesta/core/ops/optim.h>

#include <cmath>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/cuda/kernels/optim.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Raises unless every parameter, and all that belongs to it, lies on a CUDA device.
void check_devices(const char* op, TensorList params, std::initializer_list<TensorList> lists) {
  for (size_t i = 0; i < params.size(); ++i) {
    for (const TensorList& list : lists) {
      if (i >= list.size()) continue;
      VESTA_CHECK(params[i].device() == list[i].device() && params[i].device().type == DeviceType::cuda, device, op,
                  ": expected a parameter, its gradient and its state on one CUDA device, got ", params[i].device(),
                  " and ", list[i].device(), " (params[", i, "]). Move one with .to().");
    }
  }
}

/// A launch being built: entries of one device and dtype, and the tensors that must live until it is queued.
struct Group {
  Device device;
  DType dtype;
  std::vector<OptimEntry> entries;
  std::vector<Tensor> kept;
  std::vector<size_t> counted;  // entries whose number of steps lies on the device
  std::vector<float*> steps;
};

/// Finds the group of parameter p that has room, or starts one.
Group& group_of(std::vector<Group>& groups, const Tensor& p) {
  for (Group& g : groups) {
    if (g.device == p.device() && g.dtype == p.dtype() && g.entries.size() < size_t(kOptimEntries)) return g;
  }
  groups.push_back({p.device(), p.dtype(), {}, {}, {}, {}});
  return groups.back();
}

OptimEntry entry_of(Group& group, const Tensor& p, const Tensor& grad) {
  DeviceGuard guard(p.device().index);
  group.kept.push_back(in_order_of(grad, p));
  OptimEntry e;
  e.p = p.impl()->data(), e.g = group.kept.back().impl()->data();
  e.numel = p.numel();
  return e;
}

void sgd(TensorList params, TensorList grads, TensorList buffers, double weight_decay, double momentum, double lr,
         double dampening, bool nesterov, bool maximize, bool first) {
  constexpr const char* op = "_fused_sgd_";
  check_sgd(params, grads, buffers, momentum);
  check_devices(op, params, {grads, buffers});
  const SgdStep step{lr, weight_decay, momentum, dampening, nesterov, maximize, first};
  std::vector<Group> groups;
  for (size_t i = 0; i < params.size(); ++i) {
    Group& group = group_of(groups, params[i]);
    OptimEntry e = entry_of(group, params[i], grads[i]);
    if (momentum != 0) e.m = buffers[i].impl()->data();
    group.entries.push_back(e);
  }
  for (const Group& g : groups) {
    DeviceGuard guard(g.device.index);
    run_sgd(g.entries.data(), int(g.entries.size()), g.dtype, step, current_stream(g.device.index).handle());
  }
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].impl()->bump(op);
    if (momentum != 0) buffers[i].impl()->bump(op);
  }
}

/// Sets what depends on the number of parameter i's step; a number that lies on the device is counted there, later.
void count_step(Group& group, OptimEntry& e, const Tensor& steps, const AdamStep& s) {
  if (steps.device().type != DeviceType::cpu) {
    group.counted.push_back(group.entries.size());
    group.steps.push_back(static_cast<float*>(steps.data_ptr()));
    return;
  }
  const double count = double(*steps.data_ptr<float>() + 1);
  e.step_size = s.lr / (1 - std::pow(s.beta1, count));
  e.root = std::sqrt(1 - std::pow(s.beta2, count));
}

/// Queues the counting of steps that lie on the device; the group's entries read the corrections computed from them.
void count_on_device(Group& g, const AdamStep& s, StreamHandle stream) {
  if (g.counted.empty()) return;
  Tensor corrections = empty_tensor({{int64_t(g.counted.size()), 2}}, DType::float64, g.device);
  AdamCounts c{};
  c.corrections = corrections.data_ptr<double>();
  c.n = int(g.counted.size());
  c.lr = s.lr, c.beta1 = s.beta1, c.beta2 = s.beta2;
  for (size_t k = 0; k < g.counted.size(); ++k) {
    c.steps[k] = g.steps[k];
    g.entries[g.counted[k]].corrections = c.corrections + 2 * k;
  }
  run_adam_counts(c, stream);
  g.kept.push_back(corrections);
}

/// Raises unless each number of steps lies on the CPU or with its parameter.
void check_step_devices(const char* op, TensorList params, TensorList steps) {
  for (size_t i = 0; i < steps.size(); ++i) {
    VESTA_CHECK(steps[i].device().type == DeviceType::cpu || steps[i].device() == params[i].device(), device, op,
                ": expected state_steps[", i, "] on the CPU or on ", params[i].device(), ", got ", steps[i].device(),
                ".");
  }
}

void adam(TensorList params, TensorList grads, TensorList m, TensorList v, TensorList top, TensorList steps, double lr,
          double beta1, double beta2, double weight_decay, double eps, bool amsgrad, bool maximize, bool decoupled) {
  constexpr const char* op = "_fused_adam_";
  check_adam(params, grads, m, v, top, steps, amsgrad);
  check_devices(op, params, {grads, m, v, top});
  check_step_devices(op, params, steps);
  const AdamStep step{lr, beta1, beta2, weight_decay, eps, 0, 0, amsgrad, maximize, decoupled};
  std::vector<Group> groups;
  for (size_t i = 0; i < params.size(); ++i) {
    Group& group = group_of(groups, params[i]);
    OptimEntry e = entry_of(group, params[i], grads[i]);
    e.m = m[i].impl()->data(), e.v = v[i].impl()->data();
    if (amsgrad) e.top = top[i].impl()->data();
    count_step(group, e, steps[i], step);
    group.entries.push_back(e);
  }
  for (Group& g : groups) {
    DeviceGuard guard(g.device.index);
    const StreamHandle stream = current_stream(g.device.index).handle();
    count_on_device(g, step, stream);
    run_adam(g.entries.data(), int(g.entries.size()), g.dtype, step, stream);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    if (steps[i].device().type == DeviceType::cpu) *steps[i].data_ptr<float>() += 1;  // everything is queued: it counts
    for (const Tensor* t : {&params[i], &m[i], &v[i], &steps[i]}) t->impl()->bump(op);
    if (amsgrad) top[i].impl()->bump(op);
  }
}

void rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
             TensorList steps, double lr, double alpha, double eps, double weight_decay, double momentum, bool centered,
             bool maximize) {
  constexpr const char* op = "_fused_rmsprop_";
  check_rmsprop(params, grads, squares, means, buffers, steps, momentum, centered);
  check_devices(op, params, {grads, squares, means, buffers});
  check_step_devices(op, params, steps);
  const RmspropStep step{lr, alpha, eps, weight_decay, momentum, centered, maximize};
  std::vector<Group> groups;
  for (size_t i = 0; i < params.size(); ++i) {
    Group& group = group_of(groups, params[i]);
    OptimEntry e = entry_of(group, params[i], grads[i]);
    e.v = squares[i].impl()->data();
    if (centered) e.top = means[i].impl()->data();
    if (momentum != 0) e.m = buffers[i].impl()->data();
    group.entries.push_back(e);
  }
  for (const Group& g : groups) {
    DeviceGuard guard(g.device.index);
    run_rmsprop(g.entries.data(), int(g.entries.size()), g.dtype, step, current_stream(g.device.index).handle());
  }
  for (size_t i = 0; i < params.size(); ++i) {
    ops::add(steps[i], wrapped(1.0), 1.0, Out{&steps[i], Out::inplace});  // the add itself records the write
    for (const Tensor* t : {&params[i], &squares[i]}) t->impl()->bump(op);
    if (centered) means[i].impl()->bump(op);
    if (momentum != 0) buffers[i].impl()->bump(op);
  }
}

}  // namespace

void register_optim() {
  ops::_fused_sgd_.set_kernel(DeviceType::cuda, &sgd);
  ops::_fused_adam_.set_kernel(DeviceType::cuda, &adam);
  ops::_fused_rmsprop_.set_kernel(DeviceType::cuda, &rmsprop);
}

}  // namespace vesta::cuda
