#include <vesta/core/ops/optim.h>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/optim.h>

#include <algorithm>

#include <vesta/core/ops/pointwise.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_OPTIM)

namespace {

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

void check_steps(TensorList params, TensorList steps, const char* op) {
  VESTA_CHECK(steps.size() == params.size(), value, op, ": expected as many state_steps as params, got ", steps.size(),
              " and ", params.size(), ".");
  for (const Tensor& s : steps) {
    VESTA_CHECK(s.defined() && s.numel() == 1 && s.dtype() == DType::float32, value, op,
                ": expected state_steps of one float32 element each.");
    check_writable(s, op);
  }
}

}  // namespace

Tensor in_order_of(const Tensor& t, const Tensor& like) {
  if (std::ranges::equal(t.strides(), like.strides())) return t;
  Tensor r = empty_tensor_strided(like.sizes(), like.strides(), t.dtype(), t.device());
  copy_into(r, t, "optimizer step");
  return r;
}

void check_sgd(TensorList params, TensorList grads, TensorList buffers, double momentum) {
  constexpr const char* op = "_fused_sgd_";
  check_params(params, op);
  check_list(params, grads, op, "grads", false);
  check_list(params, buffers, op, "momentum_buffer_list", true);
  check_state(params, buffers, op, "momentum_buffer_list");
  VESTA_CHECK(momentum == 0 || !buffers.empty(), value, op, ": expected a momentum_buffer_list for momentum ", momentum,
              ".");
}

void check_adam(TensorList params, TensorList grads, TensorList m, TensorList v, TensorList top, TensorList steps,
                bool amsgrad) {
  constexpr const char* op = "_fused_adam_";
  check_params(params, op);
  check_list(params, grads, op, "grads", false);
  check_list(params, m, op, "exp_avgs", false);
  check_list(params, v, op, "exp_avg_sqs", false);
  check_list(params, top, op, "max_exp_avg_sqs", !amsgrad);
  check_state(params, m, op, "exp_avgs");
  check_state(params, v, op, "exp_avg_sqs");
  check_state(params, top, op, "max_exp_avg_sqs");
  check_steps(params, steps, op);
}

void check_rmsprop(TensorList params, TensorList grads, TensorList squares, TensorList means, TensorList buffers,
                   TensorList steps, double momentum, bool centered) {
  constexpr const char* op = "_fused_rmsprop_";
  check_params(params, op);
  check_list(params, grads, op, "grads", false);
  check_list(params, squares, op, "square_avgs", false);
  check_list(params, means, op, "grad_avgs", !centered);
  check_list(params, buffers, op, "momentum_buffer_list", momentum == 0);
  check_state(params, squares, op, "square_avgs");
  check_state(params, means, op, "grad_avgs");
  check_state(params, buffers, op, "momentum_buffer_list");
  check_steps(params, steps, op);
}

}  // namespace vesta
