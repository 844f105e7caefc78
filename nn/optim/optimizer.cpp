#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
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
  VESTA_CHECK(!name.empty() && name.find('.') == std::string_view::npos, value,
              "optimizer: expected the name of a state without dots, got '", name, "'.");
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
  ops::add(step, wrapped(1), 1, Out{&step, Out::inplace});
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

std::optional<double> Optimizer::initial_lr(size_t group) const {
  return group < initial_lrs_.size() ? initial_lrs_[group] : std::nullopt;
}

void Optimizer::set_initial_lr(size_t group, double lr) {
  VESTA_CHECK(group < num_groups(), index, "optimizer: group ", group, " is out of range, there are ", num_groups(),
              ".");
  initial_lrs_.resize(num_groups());
  initial_lrs_[group] = lr;
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
    else zero_(g.detach());
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
    std::string name = given.names.empty() ? std::to_string(others.size() + i) : given.names[i];
    const auto has_name = [&](const Slot& slot) { return slot.name == name; };
    VESTA_CHECK(std::ranges::none_of(made, has_name) &&
                    std::ranges::none_of(others, [&](const Slot* slot) { return has_name(*slot); }),
                value, "optimizer: expected a name of its own for each parameter, got '", name, "' twice.");
    made.push_back({p, std::move(name), {}});
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
    if (const std::optional<double> first = initial_lr(g)) {
      r.emplace_back("param_groups." + std::to_string(g) + ".initial_lr", detail::option_tensor(*first));
    }
  }
  return r;
}

namespace {
/// States of one float32 number for each parameter, which stay on the CPU.
constexpr std::string_view kNumbers[] = {"step", "mu_product", "eta", "mu"};
}  // namespace

void Optimizer::load_state_dict(const nn::StateDict& given) {
  const NoGrad off;
  const std::vector<const Slot*> all = slots();
  std::vector<State> states(all.size());
  std::vector<nn::StateDict> options(num_groups());
  std::vector<std::optional<double>> initial(num_groups());
  std::vector<nn::StateDict> known;
  for (size_t g = 0; g < num_groups(); ++g) known.push_back(group_options(g));
  for (const auto& [key, t] : given) {
    const size_t last = key.rfind('.');
    const std::string path = key.substr(0, last), name = last == std::string::npos ? "" : key.substr(last + 1);
    VESTA_CHECK(t.defined(), value, "load_state_dict: expected a tensor, got an undefined one (", key, ").");
    bool fits = false;
    for (size_t i = 0; i < all.size() && !fits; ++i) {
      if (path != "state." + all[i]->name) continue;
      const Tensor& p = all[i]->parameter;
      VESTA_CHECK(t.dim() == 0 || std::ranges::equal(t.sizes(), p.sizes()), value,
                  "load_state_dict: expected a state of the parameter's shape ", p.sizes(), ", got ", t.sizes(), " (",
                  key, ").");
      const bool number = std::ranges::count(kNumbers, name) != 0 || (t.dim() == 0 && p.dim() != 0);
      states[i][name] =
          clone(number ? t.to(DType::float32).to(Device(DeviceType::cpu)) : t.to(p.dtype()).to(p.device()));
      fits = true;
    }
    for (size_t g = 0; g < options.size() && !fits; ++g) {
      if (path != "param_groups." + std::to_string(g)) continue;
      const bool is_initial = name == "initial_lr";
      fits = is_initial || std::ranges::any_of(known[g], [&](const auto& e) { return e.first == name; });
      VESTA_CHECK(!fits || (t.numel() == 1 && !is_complex(t.dtype())), value, "load_state_dict: expected a number (",
                  key, "), got a tensor of ", t.sizes(), " of ", t.dtype(), ".");
      if (is_initial) detail::read_option(t, initial[g].emplace());
      else if (fits) options[g].emplace_back(name, t);
    }
    VESTA_CHECK(fits, value, "load_state_dict: expected the state of one of this optimizer's ", all.size(),
                " parameters or an option of one of its ", options.size(), " groups, got '", key, "'.");
  }
  for (size_t g = 0; g < options.size(); ++g) {
    for (const auto& [name, t] : known[g]) {
      VESTA_CHECK(std::ranges::any_of(options[g], [&](const auto& e) { return e.first == name; }), value,
                  "load_state_dict: expected an option of each group, got no 'param_groups.", g, ".", name, "'.");
    }
  }
  set_options(options);
  initial_lrs_ = std::move(initial);
  for (size_t i = 0; i < all.size(); ++i) const_cast<Slot*>(all[i])->state = std::move(states[i]);
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
