#include <vesta/nn/optim/optimizer.h>

#include <algorithm>

namespace vesta::optim {

Parameters::Parameters(const nn::Module::Named& named) {
  for (const auto& [name, t] : named) {
    names.push_back(name);
    tensors.push_back(t);
  }
}

Tensor& State::operator[](std::string_view name) {
  for (auto& [n, t] : entries_) {
    if (n == name) return t;
  }
  return entries_.emplace_back(std::string(name), Tensor()).second;
}

Tensor State::zeros(std::string_view name, const Tensor& p) {
  Tensor& t = (*this)[name];
  if (!t.defined()) t = zeros_like(p.detach());
  return t;
}

double State::next_step() {
  Tensor& step = (*this)["step"];
  if (!step.defined()) step = vesta::zeros(IntList(), DType::float32);
  step.add_(1);
  return step.item<double>();
}

Tensor Optimizer::step(const std::function<Tensor()>& closure) {
  Tensor loss;
  {
    const EnableGrad on;
    loss = closure();
  }
  step();
  return loss;
}

std::vector<Tensor> Optimizer::parameters() const {
  std::vector<Tensor> r;
  for (const Slot* slot : slots()) r.push_back(slot->parameter);
  return r;
}

void Optimizer::zero_grad(bool set_to_none) {
  const NoGrad off;
  for (const Slot* slot : slots()) {
    const Tensor g = slot->parameter.grad();
    if (!g.defined()) continue;
    if (set_to_none) slot->parameter.set_grad({});
    else g.detach().zero_();
  }
}

std::deque<Optimizer::Slot> Optimizer::make_slots(const Parameters& given) const {
  VESTA_CHECK(!given.tensors.empty(), value, "optimizer got an empty parameter list.");
  std::deque<Slot> made;
  const std::vector<const Slot*> others = slots();
  for (size_t i = 0; i < given.tensors.size(); ++i) {
    const Tensor& p = given.tensors[i];
    VESTA_CHECK(p.defined() && p.is_leaf(), value, "optimizer: can't optimize a non-leaf Tensor (parameter ", i, ").");
    const auto is_p = [&](const Slot& slot) { return slot.parameter.is_same(p); };
    VESTA_CHECK(
        std::ranges::none_of(made, is_p) && std::ranges::none_of(others, [&](const Slot* slot) { return is_p(*slot); }),
        value, "optimizer: some parameters appear more than once (parameter ", i, ").");
    made.push_back({p, given.names.empty() ? std::to_string(others.size() + i) : given.names[i], {}});
  }
  return made;
}

nn::StateDict Optimizer::state_dict() const {
  nn::StateDict r;
  for (const Slot* slot : slots()) {
    for (const auto& [name, t] : slot->state.entries()) {
      if (t.defined()) r.emplace_back("state." + slot->name + "." + name, t);
    }
  }
  for (size_t g = 0; g < num_groups(); ++g) {
    for (const auto& [name, t] : group_options(g)) {
      r.emplace_back("param_groups." + std::to_string(g) + "." + name, t);
    }
  }
  return r;
}

void Optimizer::load_state_dict(const nn::StateDict& given) {
  const NoGrad off;
  const std::vector<const Slot*> all = slots();
  std::vector<State> states(all.size());
  std::vector<nn::StateDict> options(num_groups());
  std::vector<nn::StateDict> known;
  for (size_t g = 0; g < num_groups(); ++g) known.push_back(group_options(g));
  for (const auto& [key, t] : given) {
    const size_t last = key.rfind('.');
    const std::string path = key.substr(0, last), name = last == std::string::npos ? "" : key.substr(last + 1);
    bool fits = false;
    for (size_t i = 0; i < all.size() && !fits; ++i) {
      if (path != "state." + all[i]->name) continue;
      const Tensor& p = all[i]->parameter;
      VESTA_CHECK(t.dim() == 0 || std::ranges::equal(t.sizes(), p.sizes()), value,
                  "load_state_dict: expected a state of the parameter's shape ", p.sizes(), ", got ", t.sizes(), " (",
                  key, ").");
      const bool counts = t.dim() == 0 && p.dim() != 0;  // steps stay as they are
      states[i][name] = (counts || name == "step" ? t.to(DType::float32) : t.to(p.dtype()).to(p.device())).clone();
      fits = true;
    }
    for (size_t g = 0; g < options.size() && !fits; ++g) {
      fits = path == "param_groups." + std::to_string(g) &&
             std::ranges::any_of(known[g], [&](const auto& e) { return e.first == name; });
      if (fits) options[g].emplace_back(name, t);
    }
    VESTA_CHECK(fits, value, "load_state_dict: expected the state of one of this optimizer's ", all.size(),
                " parameters or an option of one of its ", options.size(), " groups, got '", key, "'.");
  }
  for (size_t i = 0; i < all.size(); ++i) const_cast<Slot*>(all[i])->state = std::move(states[i]);
  for (size_t g = 0; g < options.size(); ++g) set_group_options(g, options[g]);
}

namespace detail {

Tensor option_tensor(double value) { return full(IntList(), value, DType::float64); }
Tensor option_tensor(bool value) { return full(IntList(), value, DType::bool_); }
Tensor option_tensor(int64_t value) { return full(IntList(), value, DType::int64); }
void read_option(const Tensor& t, double& value) { value = t.to(DType::float64).item<double>(); }
void read_option(const Tensor& t, bool& value) { value = t.to(DType::bool_).item<bool>(); }
void read_option(const Tensor& t, int64_t& value) { value = t.to(DType::int64).item<int64_t>(); }

void check_not_negative(const std::string& op, const char* what, double value) {
  VESTA_CHECK(value >= 0, value, op, ": Invalid ", what, " value: ", value, ".");
}

}  // namespace detail

}  // namespace vesta::optim
