#include <vesta/core/ops/optim.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/optim.h>
#include <vesta/core/ops/optim_call.h>

#include <algorithm>
#include <utility>
#include <vector>

#include <vesta/core/ops/pointwise.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_OPTIM)

namespace {

/// Checks one list against the parameters: same length, shapes, dtypes.
void check_list(TensorList params, TensorList list, const char* op, const char* name) {
  VESTA_CHECK(list.size() == params.size(), value, op, ": expected as many ", name, " as params, got ", list.size(),
              " and ", params.size(), ".");
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor &p = params[i], &t = list[i];
    VESTA_CHECK(t.defined(), value, op, ": expected a tensor, got None (", name, "[", i, "]).");
    VESTA_CHECK(same_numbers(p.sizes(), t.sizes()) && p.dtype() == t.dtype(), value, op, ": expected ", name, "[", i,
                "] of shape ", p.sizes(), " and dtype ", p.dtype(), ", got ", t.sizes(), " and ", t.dtype(), ".");
  }
}

void check_params(TensorList params, const char* op) {
  for (size_t i = 0; i < params.size(); ++i) {
    const Tensor& p = params[i];
    VESTA_CHECK(p.defined() && is_float(p.dtype()), type, op, ": expected floating-point params, got ",
                p.defined() ? name(p.dtype()) : "None", " (params[", i, "]).");
    check_writable(p, op);
  }
}

/// Numbers of a parameter each: the count of its steps, or a scalar of its state.
void check_numbers(TensorList params, TensorList list, const char* op, const char* name) {
  VESTA_CHECK(list.size() == params.size(), value, op, ": expected as many ", name, " as params, got ", list.size(),
              " and ", params.size(), ".");
  for (size_t i = 0; i < list.size(); ++i) {
    const Tensor& s = list[i];
    VESTA_CHECK(s.defined() && s.numel() == 1 && s.dtype() == DType::float32, value, op, ": expected ", name,
                " of one float32 element each.");
    VESTA_CHECK(s.device().type() != DeviceType::meta || params[i].device().type() == DeviceType::meta, device, op,
                ": expected ", name, "[", i, "] with a value, got a meta tensor.");
    check_writable(s, op);
  }
}
}  // namespace

Tensor InOrder::copy_of(const Tensor& t, const Tensor& param) const {
  Tensor r = param.impl()->dense() ? empty_tensor_strided(t.sizes(), param.strides(), t.dtype(), t.device())
                                   : empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_into(r, t, op_);
  return r;
}

const char* InOrder::copied(const Tensor& t, const Tensor& param) {
  kept_.push_back(copy_of(t, param));
  return kept_.back().impl()->data();
}

char* InOrder::copied_back(const Tensor& t, const Tensor& param) {
  changed_.emplace_back(t, copy_of(t, param));
  return changed_.back().second.impl()->data();
}

void InOrder::finish() {
  for (const auto& [t, copy] : changed_) copy_into(t, copy, op_);
}

void StepLists::check() const {
  check_params(params, op);
  check_list(params, grads, op, "grads");
  for (int i = 0; i < num_states; ++i) {
    if (!used[i]) continue;
    check_list(params, states[i], op, state_names[i]);
    for (const Tensor& t : states[i]) check_writable(t, op);
  }
  for (int i = 0; i < num_scalars; ++i) check_numbers(params, scalars[i], op, scalar_names[i]);
  if (counts) check_numbers(params, steps, op, "state_steps");
}

void StepLists::check_devices(DeviceType type) const {
  const auto check = [&](TensorList list, const char* name) {
    for (size_t i = 0; i < list.size(); ++i) {
      const Device d = params[i].device(), other = list[i].device();
      VESTA_CHECK(d == other, device, op, ": expected a parameter, its gradient and its state on one device, got ", d,
                  " (params[", i, "]) and ", other, " (", name, "[", i, "]). Move one with .to().");
    }
  };
  check(grads, "grads");
  for (int k = 0; k < num_states; ++k) {
    if (used[k]) check(states[k], state_names[k]);
  }
  for (size_t i = 0; i < params.size(); ++i) {
    VESTA_CHECK(params[i].device().type() == type, device, op, ": expected all tensors on ", name(type),
                " devices, of which one is, got ", params[i].device(), " (params[", i, "]). Move it with .to().");
  }
}

bool overlapping(TensorList list) {
  std::vector<std::pair<const char*, const char*>> ranges;
  for (const Tensor& p : list) {
    if (p.numel() == 0 || p.impl()->storage()->use_count() == 1) continue;  // nobody else has this memory
    int64_t last = 0;
    for (int64_t d = 0; d < p.dim(); ++d) last += (p.sizes()[size_t(d)] - 1) * p.strides()[size_t(d)];
    const char* data = p.impl()->data();
    ranges.emplace_back(data, data + (last + 1) * itemsize(p.dtype()));
  }
  std::ranges::sort(ranges);
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].first < ranges[i - 1].second) return true;
  }
  return false;
}

StepLists StepLists::part(size_t i) const {
  const auto one = [i](TensorList l) { return l.empty() ? l : TensorList(l.subspan(i, 1)); };
  StepLists r = *this;
  r.params = one(params), r.grads = one(grads), r.steps = one(steps);
  for (TensorList& l : r.states) l = one(l);
  for (TensorList& l : r.scalars) l = one(l);
  return r;
}

float number_in(const Tensor& t, const char* op) {
  const DeviceType d = t.device().type();
  if (d == DeviceType::meta) return 0;
  VESTA_CHECK(d == DeviceType::cpu, device, op, ": expected the numbers of a parameter's state on the CPU, got ",
              t.device(), ". Use .cpu().");
  return *static_cast<const float*>(t.data_ptr());
}

void set_number(const Tensor& t, float value) {
  if (t.device().type() == DeviceType::cpu) *static_cast<float*>(t.data_ptr()) = value;
}

void StepLists::bump() const {
  for (size_t i = 0; i < params.size(); ++i) {
    params[i].impl()->bump(op);
    for (int k = 0; k < num_states; ++k) {
      if (used[k]) states[k][i].impl()->bump(op);
    }
    for (int k = 0; k < num_scalars; ++k) scalars[k][i].impl()->bump(op);
    if (counts) steps[i].impl()->bump(op);
  }
}

}  // namespace vesta
