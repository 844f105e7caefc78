#include <vesta/nn/optim/optim.h>

#include <algorithm>
#include <cmath>

namespace vesta::optim {
namespace {

using detail::check_not_negative;

// ---- fused steps ----

/// The parameters of a group that have a gradient, and lists of their states for a fused op.
template <class Slots>
struct Lists {
  explicit Lists(Slots& all) {
    for (auto& slot : all) {
      if (Tensor g = slot.parameter.grad(); g.defined()) {
        slots.push_back(&slot);
        parameters.push_back(slot.parameter);
        grads.push_back(std::move(g));
      }
    }
  }
  /// Returns the states of a name, zeros where they are new; none unless they are used.
  std::vector<Tensor> zeros(const char* name, bool used = true) {
    std::vector<Tensor> r;
    for (auto* slot : slots) {
      if (used) r.push_back(slot->state.zeros(name, slot->parameter));
    }
    return r;
  }
  /// Returns the counts of steps, which the op increments.
  std::vector<Tensor> steps() {
    std::vector<Tensor> r;
    for (auto* slot : slots) {
      Tensor& step = slot->state["step"];
      if (!step.defined()) step = vesta::zeros(IntList(), DType::float32);
      r.push_back(step);
    }
    return r;
  }
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
      parameters.push_back(slot->parameter);
      grads.push_back(slot->parameter.grad());
      if (momentum) buffers.push_back(slot->state.zeros("momentum_buffer", slot->parameter));
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

// ---- rules ----

namespace {

/// Returns the gradient to step along: negated to ascend, with the decay of the weights, or these decayed themselves.
template <class Options>
Tensor prepared(const char* op, const Tensor& p, const Tensor& grad, const Options& o) {
  VESTA_CHECK(!is_complex(p.dtype()), not_implemented, op, ": expected real parameters, got ", p.dtype(),
              ". Keep view_as_real of it as the parameter, or use SGD or Adam.");
  Tensor g = o.maximize ? neg(grad) : grad;
  if constexpr (requires { o.weight_decay; }) {
    if (o.weight_decay == 0) return g;
    if constexpr (requires { o.decoupled_weight_decay; }) {
      if (o.decoupled_weight_decay) {
        p.mul_(1 - o.lr * o.weight_decay);
        return g;
      }
    }
    g = add(g, p, o.weight_decay);
  }
  return g;
}

/// Sets `average` to beta * average + (1 - beta) * value.
void move_average(const Tensor& average, const Tensor& value, double beta) { average.mul_(beta).add_(value, 1 - beta); }

template <class Options>
void check_rule(const char* op, const Options& o) {
  VESTA_CHECK(o.lr >= 0, value, op, ": Invalid learning rate: ", o.lr, ".");
  if constexpr (requires { o.eps; }) check_not_negative(op, "epsilon", o.eps);
  if constexpr (requires { o.weight_decay; }) check_not_negative(op, "weight_decay", o.weight_decay);
  if constexpr (requires { o.beta1; }) check_adam(op, o);
}

}  // namespace

void Adagrad::check(const Options& o) {
  check_rule("Adagrad", o);
  check_not_negative("Adagrad", "lr_decay", o.lr_decay);
  check_not_negative("Adagrad", "initial_accumulator_value", o.initial_accumulator_value);
}
void Adagrad::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  const Tensor g = prepared("Adagrad", p, grad, o);
  if (state.empty()) state["sum"] = full_like(p.detach(), o.initial_accumulator_value);
  const double step = state.next_step();
  const Tensor sum = state["sum"];
  sum.add_(mul(g, g));
  p.add_(div(g, sqrt(sum).add_(o.eps)), -o.lr / (1 + (step - 1) * o.lr_decay));
}

void Adadelta::check(const Options& o) {
  check_rule("Adadelta", o);
  VESTA_CHECK(o.rho >= 0 && o.rho <= 1, value, "Adadelta: Invalid rho value: ", o.rho, ".");
}
void Adadelta::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  const Tensor g = prepared("Adadelta", p, grad, o);
  state.next_step();
  const Tensor square = state.zeros("square_avg", p), change = state.zeros("acc_delta", p);
  move_average(square, mul(g, g), o.rho);
  const Tensor delta = add(change, o.eps).sqrt_().div_(add(square, o.eps).sqrt_()).mul_(g);
  move_average(change, mul(delta, delta), o.rho);
  p.add_(delta, -o.lr);
}

void Adamax::check(const Options& o) { check_rule("Adamax", o); }
void Adamax::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  const Tensor g = prepared("Adamax", p, grad, o);
  const double step = state.next_step();
  const Tensor mean = state.zeros("exp_avg", p), largest = state.zeros("exp_inf", p);
  move_average(mean, g, o.beta1);
  largest.copy_(maximum(mul(largest, o.beta2), abs(g).add_(o.eps)));
  p.add_(div(mean, largest), -o.lr / (1 - std::pow(o.beta1, step)));
}

void NAdam::check(const Options& o) {
  check_rule("NAdam", o);
  check_not_negative("NAdam", "momentum_decay", o.momentum_decay);
}
void NAdam::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  const Tensor g = prepared("NAdam", p, grad, o);
  if (state.empty()) state["mu_product"] = ones(IntList(), DType::float32);
  const double step = state.next_step();
  const Tensor mean = state.zeros("exp_avg", p), square = state.zeros("exp_avg_sq", p);
  const auto momentum = [&](double t) { return o.beta1 * (1 - 0.5 * std::pow(0.96, t * o.momentum_decay)); };
  const double mu = momentum(step), next = momentum(step + 1);
  const double product = state["mu_product"].mul_(mu).item<double>();
  move_average(mean, g, o.beta1);
  move_average(square, mul(g, g), o.beta2);
  const Tensor divisor = div(square, 1 - std::pow(o.beta2, step)).sqrt_().add_(o.eps);
  p.add_(div(g, divisor), -o.lr * (1 - mu) / (1 - product));
  p.add_(div(mean, divisor), -o.lr * next / (1 - product * next));
}

void RAdam::check(const Options& o) { check_rule("RAdam", o); }
void RAdam::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  const Tensor g = prepared("RAdam", p, grad, o);
  const double step = state.next_step();
  const Tensor mean = state.zeros("exp_avg", p), square = state.zeros("exp_avg_sq", p);
  move_average(mean, g, o.beta1);
  move_average(square, mul(g, g), o.beta2);
  const double correction1 = 1 - std::pow(o.beta1, step), correction2 = 1 - std::pow(o.beta2, step);
  const double longest = 2 / (1 - o.beta2) - 1;
  const double length = longest - 2 * step * std::pow(o.beta2, step) / correction2;
  if (length <= 5) {
    p.add_(mean, -o.lr / correction1);
    return;
  }
  const double above = (length - 4) * (length - 2) * longest, below = (longest - 4) * (longest - 2) * length;
  const double factor = std::sqrt(above / below * correction2);
  p.add_(div(mean, sqrt(square).add_(o.eps)), -o.lr * factor / correction1);
}

void ASGD::check(const Options& o) { check_rule("ASGD", o); }
void ASGD::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  const Tensor g = prepared("ASGD", p, grad, o);
  if (state.empty()) {
    state["eta"] = full(IntList(), o.lr, DType::float32);
    state["mu"] = ones(IntList(), DType::float32);
  }
  const double step = state.next_step();
  const Tensor mean = state.zeros("ax", p);
  const double eta = state["eta"].item<double>(), mu = state["mu"].item<double>();
  p.mul_(1 - o.lambd * eta).add_(g, -eta);
  if (mu == 1) mean.copy_(p);
  else mean.add_(sub(p, mean), mu);
  state["eta"].fill_(o.lr / std::pow(1 + o.lambd * o.lr * step, o.alpha));
  state["mu"].fill_(1 / std::max(1.0, step - o.t0));
}

void Rprop::check(const Options& o) {
  check_rule("Rprop", o);
  VESTA_CHECK(o.etaminus > 0 && o.etaminus < 1 && o.etaplus > 1, value, "Rprop: Invalid eta values: ", o.etaminus, ", ",
              o.etaplus, ".");
}
void Rprop::update(const Tensor& p, const Tensor& grad, State& state, const Options& o) {
  Tensor g = prepared("Rprop", p, grad, o);
  if (state.empty()) state["step_size"] = full_like(p.detach(), o.lr);
  state.next_step();
  const Tensor previous = state.zeros("prev", p), size = state["step_size"];
  const Tensor turn = sign(mul(g, previous));
  const Tensor one = ones_like(turn);
  const Tensor slower = lt(turn, 0);
  size.mul_(where(gt(turn, 0), mul(one, o.etaplus), where(slower, mul(one, o.etaminus), one)));
  size.copy_(clamp(size, o.min_step, o.max_step));
  g = where(slower, zeros_like(g), g);
  p.sub_(mul(sign(g), size));
  previous.copy_(g);
}

}  // namespace vesta::optim
