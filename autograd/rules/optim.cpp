// Fused optimizer steps that are recorded: the formula of the step on tensors, so that gradients flow through it
// (`differentiable=True`). Without recording, under no_grad, the kernels run. The unscaling before a step is no part of
// the tape.
#include <vector>

#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/autograd/rules/tensor_math.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/optim_call.h>

namespace vesta::autograd::rules {
namespace {

/// Computes a step on tensors, one parameter at a time, and writes the results in place. Formulas get copies: what they
/// save must not be what is written.
template <StepKind kind, class Step, class... A>
void recorded_step(A... a) {
  constexpr size_t states = Step::states.size();
  constexpr const char* op = step_name(kind);
  const auto [lists, step] = step_call<Step>(op, a...);
  for (const Tensor& p : lists.params) check_inplace(p, requires_grad(p), op);
  std::vector<CountedStep<Step>> counted;
  for (size_t i = 0; i < lists.params.size(); ++i) counted.push_back(count_step(lists, step, i));
  for (size_t i = 0; i < lists.params.size(); ++i) {
    Tensor p = clone(lists.params[i]), s[states];
    for (size_t k = 0; k < states; ++k) s[k] = lists.used[k] ? clone(lists.states[k][i]) : p;  // unused: any tensor
    [&, &step = step, &lists = lists]<size_t... k>(std::index_sequence<k...>) {
      step.update(p, lists.grads[i], s[k]..., counted[i].numbers);
    }(std::make_index_sequence<states>());
    for (size_t k = 0; k < states; ++k) {
      if (lists.used[k]) copy_(lists.states[k][i], s[k]);
    }
    copy_(lists.params[i], p);
    keep_count(lists, i, counted[i]);
    for (int k = 0; k < lists.num_scalars; ++k) lists.scalars[k][i].impl()->bump(op);
    if (lists.counts) lists.steps[i].impl()->bump(op);
  }
}

template <StepKind kind, class Step, class... A>
void enter(Op<void(A...)>& o) {
  o.set_layer(Layer::autograd, &recorded_step<kind, Step, A...>);
}

void unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  for (const Tensor& g : grads) check_inplace(g, requires_grad(g), ops::_amp_unscale_.name);
  Below autograd(Layer::autograd);
  ops::_amp_unscale_(grads, found_inf, inv_scale);
}

void list_mul(TensorList tensors, MaybeTensor by, double factor, bool clip) {
  for (const Tensor& t : tensors) check_inplace(t, requires_grad(t), ops::_list_mul_.name);
  Below autograd(Layer::autograd);
  ops::_list_mul_(tensors, by, factor, clip);
}

void list_zero(TensorList tensors) {
  for (const Tensor& t : tensors) check_inplace(t, requires_grad(t), ops::_list_zero_.name);
  Below autograd(Layer::autograd);
  ops::_list_zero_(tensors);
}

}  // namespace

void register_optim() {
#define VESTA_ENTER_STEP(op, Step) enter<StepKind::op, Step>(ops::op);
  VESTA_OPTIMIZER_STEPS(VESTA_ENTER_STEP)
#undef VESTA_ENTER_STEP
  ops::_amp_unscale_.set_layer(Layer::autograd, &unscale);
  ops::_list_mul_.set_layer(Layer::autograd, &list_mul);
  ops::_list_zero_.set_layer(Layer::autograd, &list_zero);
}

}  // namespace vesta::autograd::rules
