#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/view.h>
#include <vesta/nn/optim/optim.h>

#include <algorithm>
#include <cmath>

namespace vesta::optim {
namespace {

using detail::check_not_negative;

// ---- fused steps ----

/// The parameters of a group that have a gradient, and lists of their states for a fused op.
/// Complex tensors take part as pairs of real numbers, which share their memory.
template <class Slots>
struct Lists {
  static Tensor part(const Tensor& t) { return is_complex(t.dtype()) ? view_as_real(t) : t; }
  explicit Lists(Slots& all) {
    for (auto& slot : all) {
      if (Tensor g = slot.parameter.grad(); g.defined()) {
        slots.push_back(&slot);
        parameters.push_back(part(slot.parameter));
        grads.push_back(part(g));
      }
    }
  }
  /// Returns the states of a name, zeros where they are new; none unless they are used.
  std::vector<Tensor> zeros(const char* name, bool used = true) {
    std::vector<Tensor> r;
    for (auto* slot : slots) {
      if (used) r.push_back(part(slot->state.zeros(name, slot->parameter)));
    }
    return r;
  }
  /// Returns the states of a name, filled with a value where they are new.
  std::vector<Tensor> filled(const char* name, double value) {
    std::vector<Tensor> r;
    for (auto* slot : slots) {
      Tensor& state = slot->state[name];
      if (!state.defined()) {
        state = empty_like(slot->parameter.detach());
        fill_(part(state), value);
      }
      r.push_back(part(state));
    }
    return r;
  }
  /// Returns states of one number for each parameter, with a value where they are new.
  std::vector<Tensor> numbers(const char* name, double value) {
    std::vector<Tensor> r;
    for (auto* slot : slots) {
      Tensor& state = slot->state[name];
      if (!state.defined()) state = full(IntList(), value, DType::float32);
      r.push_back(state);
    }
    return r;
  }
  /// Returns the counts of steps, which the op increments.
  std::vector<Tensor> steps() { return numbers("step", 0); }
  std::vector<std::remove_reference_t<decltype(std::declval<Slots>()[0])>*> slots;
  std::vector<Tensor> parameters, grads;
};

template <class Options>
void check_adam(const char* op, const Options& o) {
  VESTA_CHECK(o.lr >= 0, value, op, ": Invalid learning rate: ", o.lr, ".");
  check_not_negative(op, "epsilon", o.eps);
  VESTA_CHECK(o.beta1 >= 0 && o.beta1 < 1, value, op, ": Invalid beta parameter at index 0: ", o.beta1, ".");
  VESTA_CHECK(o.beta2 >= 0 && o.beta2 < 1, value, op, ": Invalid beta parameter at index 1: ", o.beta2, ".");
  check_not_negative(op, "weight_decay", o.weight_decay);
}

template <class Group>
void adam_step(Group& group, bool decoupled) {
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto& o = group.options;
  _fused_adam_(lists.parameters, lists.grads, lists.zeros("exp_avg"), lists.zeros("exp_avg_sq"),
               lists.zeros("max_exp_avg_sq", o.amsgrad), lists.steps(), o.lr, o.beta1, o.beta2, o.weight_decay, o.eps,
               o.amsgrad, o.maximize, decoupled);
}

}  // namespace

void SGD::check(const Options& o) {
  VESTA_CHECK(o.lr >= 0, value, "SGD: Invalid learning rate: ", o.lr, ".");
  check_not_negative("SGD", "momentum", o.momentum);
  check_not_negative("SGD", "weight_decay", o.weight_decay);
  VESTA_CHECK(!o.nesterov || (o.momentum > 0 && o.dampening == 0), value,
              "SGD: Nesterov momentum requires a momentum and zero dampening.");
}

void SGD::step_group(Group& group) {
  // Parameters that get their first gradient now start their momentum with it; the others continue theirs.
  const Options& o = group.options;
  const bool momentum = o.momentum != 0;
  std::vector<Slot*> fresh, going;
  for (Slot& slot : group.slots) {
    if (!slot.parameter.grad().defined()) continue;
    (momentum && !slot.state["momentum_buffer"].defined() ? fresh : going).push_back(&slot);
  }
  for (const auto* some : {&fresh, &going}) {
    if (some->empty()) continue;
    std::vector<Tensor> parameters, grads, buffers;
    for (Slot* slot : *some) {
      const auto part = Lists<decltype(group.slots)>::part;
      parameters.push_back(part(slot->parameter));
      grads.push_back(part(slot->parameter.grad()));
      if (momentum) buffers.push_back(part(slot->state.zeros("momentum_buffer", slot->parameter)));
    }
    _fused_sgd_(parameters, grads, buffers, o.weight_decay, o.momentum, o.lr, o.dampening, o.nesterov, o.maximize,
                some == &fresh);
  }
}

void Adam::check(const Options& o) { check_adam("Adam", o); }
void Adam::step_group(Group& group) { adam_step(group, false); }
void AdamW::check(const Options& o) { check_adam("AdamW", o); }
void AdamW::step_group(Group& group) { adam_step(group, true); }

void RMSprop::check(const Options& o) {
  VESTA_CHECK(o.lr >= 0, value, "RMSprop: Invalid learning rate: ", o.lr, ".");
  check_not_negative("RMSprop", "epsilon", o.eps);
  check_not_negative("RMSprop", "momentum", o.momentum);
  check_not_negative("RMSprop", "weight_decay", o.weight_decay);
  check_not_negative("RMSprop", "alpha", o.alpha);
}

void RMSprop::step_group(Group& group) {
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const Options& o = group.options;
  _fused_rmsprop_(lists.parameters, lists.grads, lists.zeros("square_avg"), lists.zeros("grad_avg", o.centered),
                  lists.zeros("momentum_buffer", o.momentum > 0), lists.steps(), o.lr, o.alpha, o.eps, o.weight_decay,
                  o.momentum, o.centered, o.maximize);
}

// ---- the others, each a fused op with numbers of its own ----

namespace {

template <class Options>
void check_common(const char* op, const Options& o) {
  VESTA_CHECK(o.lr >= 0, value, op, ": Invalid learning rate: ", o.lr, ".");
  if constexpr (requires { o.eps; }) check_not_negative(op, "epsilon", o.eps);
  if constexpr (requires { o.weight_decay; }) check_not_negative(op, "weight_decay", o.weight_decay);
  if constexpr (requires { o.beta1; }) check_adam(op, o);
}

}  // namespace

void Adagrad::check(const Options& o) {
  check_common("Adagrad", o);
  check_not_negative("Adagrad", "lr_decay", o.lr_decay);
  check_not_negative("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
}
void Adagrad::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto sums = lists.filled("sum", o.initial_accumulator_value);
  _fused_adagrad_(lists.parameters, lists.grads, sums, lists.steps(), o.lr, o.lr_decay, o.weight_decay, o.eps,
                  o.maximize);
}

void Adadelta::check(const Options& o) {
  check_common("Adadelta", o);
  VESTA_CHECK(o.rho >= 0 && o.rho <= 1, value, "Adadelta: Invalid rho value: ", o.rho, ".");
}
void Adadelta::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto squares = lists.zeros("square_avg"), changes = lists.zeros("acc_delta");
  _fused_adadelta_(lists.parameters, lists.grads, squares, changes, lists.steps(), o.lr, o.rho, o.eps, o.weight_decay,
                   o.maximize);
}

void Adamax::check(const Options& o) { check_common("Adamax", o); }
void Adamax::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto means = lists.zeros("exp_avg"), largest = lists.zeros("exp_inf");
  _fused_adamax_(lists.parameters, lists.grads, means, largest, lists.steps(), o.lr, o.beta1, o.beta2, o.eps,
                 o.weight_decay, o.maximize);
}

void NAdam::check(const Options& o) {
  check_common("NAdam", o);
  check_not_negative("NAdam", "momentum_decay", o.momentum_decay);
}
void NAdam::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto means = lists.zeros("exp_avg"), squares = lists.zeros("exp_avg_sq");
  _fused_nadam_(lists.parameters, lists.grads, means, squares, lists.numbers("mu_product", 1), lists.steps(), o.lr,
                o.beta1, o.beta2, o.eps, o.weight_decay, o.momentum_decay, o.decoupled_weight_decay, o.maximize);
}

void RAdam::check(const Options& o) { check_common("RAdam", o); }
void RAdam::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto means = lists.zeros("exp_avg"), squares = lists.zeros("exp_avg_sq");
  _fused_radam_(lists.parameters, lists.grads, means, squares, lists.steps(), o.lr, o.beta1, o.beta2, o.eps,
                o.weight_decay, o.decoupled_weight_decay, o.maximize);
}

void ASGD::check(const Options& o) { check_common("ASGD", o); }
void ASGD::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto means = lists.zeros("ax");
  _fused_asgd_(lists.parameters, lists.grads, means, lists.numbers("eta", o.lr), lists.numbers("mu", 1), lists.steps(),
               o.lr, o.lambd, o.alpha, o.t0, o.weight_decay, o.maximize);
}

void Rprop::check(const Options& o) {
  check_common("Rprop", o);
  VESTA_CHECK(o.etaminus > 0 && o.etaminus < 1 && o.etaplus > 1, value, "Rprop: Invalid eta values: ", o.etaminus, ", ",
              o.etaplus, ".");
}
void Rprop::step_group(Group& group) {
  const Options& o = group.options;
  Lists lists(group.slots);
  if (lists.slots.empty()) return;
  const auto sizes = lists.filled("step_size", o.lr), previous = lists.zeros("prev");
  _fused_rprop_(lists.parameters, lists.grads, previous, sizes, lists.steps(), o.etaminus, o.etaplus, o.min_step,
                o.max_step, o.maximize);
}

}  // namespace vesta::optim
