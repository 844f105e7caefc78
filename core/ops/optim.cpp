#include <vesta/core/ops/optim.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/optim.h>
#include <vesta/core/ops/optim_call.h>

#include <algorithm>

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
    VESTA_CHECK(std::ranges::equal(p.sizes(), t.sizes()) && p.dtype() == t.dtype(), value, op, ": expected ", name, "[",
                i, "] of shape ", p.sizes(), " and dtype ", p.dtype(), ", got ", t.sizes(), " and ", t.dtype(), ".");
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
  for (const Tensor& s : list) {
    VESTA_CHECK(s.defined() && s.numel() == 1 && s.dtype() == DType::float32, value, op, ": expected ", name,
                " of one float32 element each.");
    check_writable(s, op);
  }
}

}  // namespace

namespace {
bool in_order(const Tensor& t, const Tensor& param) {
  return param.impl()->dense() && std::ranges::equal(t.strides(), param.strides());
}
}  // namespace

Tensor InOrder::copy_of(const Tensor& t, const Tensor& param) const {
  Tensor r = param.impl()->dense() ? empty_tensor_strided(t.sizes(), param.strides(), t.dtype(), t.device())
                                   : empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_into(r, t, op_);
  return r;
}

const char* InOrder::read(const Tensor& t, const Tensor& param) {
  if (in_order(t, param)) return t.impl()->data();
  kept_.push_back(copy_of(t, param));
  return kept_.back().impl()->data();
}

char* InOrder::write(const Tensor& t, const Tensor& param) {
  if (in_order(t, param)) return t.impl()->data();
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

float number_in(const Tensor& t, const char* op) {
  const DeviceType d = t.device().type;
  if (d == DeviceType::meta) return 0;
  VESTA_CHECK(d == DeviceType::cpu, device, op, ": expected the numbers of a parameter's state on the CPU, got ",
              t.device(), ". Use .cpu().");
  return *static_cast<const float*>(t.data_ptr());
}

void set_number(const Tensor& t, float value) {
  if (t.device().type == DeviceType::cpu) *static_cast<float*>(t.data_ptr()) = value;
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
