#include <vesta/nn/module.h>

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <sstream>
#include <typeinfo>
#include <unordered_map>

#include <vesta/autograd/accumulate_grad.h>
#include <vesta/core/ops/copy.h>

namespace vesta::nn {

Tensor Module::forward(const Tensor&) {
  fail(Cause::not_implemented, kind(),
       ": Module is missing the required forward(const Tensor&). Override it, or call the ",
       "forward of the module's own signature.");
}

namespace {

/// The modules below the outermost one that is being called in this thread, while a profile runs, by their paths.
struct CalledTree {
  int depth = 0;
  std::unordered_map<const Module*, std::string> paths;
};
thread_local CalledTree called;
constexpr uint32_t kNoTag = ~0u;  // the number of a module of another language: none

}  // namespace

uint64_t ProfiledCall::begin(Module& m) {
  if (called.depth == 0) {
    called.paths.clear();
    for (const auto& [path, module] : m.named_modules()) called.paths.emplace(module, path);
    called.paths[&m] = m.kind();
  }
  const auto found = called.paths.find(&m);
  const std::string name = found == called.paths.end() ? m.kind() : found->second;
  const uint64_t token = profiler::open(profiler::Kind::layer, name, kNoTag);
  if (token) ++called.depth;
  return token;
}

void ProfiledCall::end(uint64_t token) {
  profiler::close(token);
  --called.depth;
}

Tensor Module::operator()(const Tensor& input) {
  return in_context([&] {
    if (!input.defined()) fail_undefined_input(0);
    if (!has_hooks()) return forward(input);
    const Value given(input);
    return run({&given, 1}).tensor();
  });
}

Value Module::call(std::span<const Value> inputs) {
  VESTA_CHECK(inputs.size() == 1, type, kind(), ": expected 1 input, got ", inputs.size(), ".");
  if (!inputs[0].has_value()) fail_undefined_input(0);
  return forward(inputs[0].to<Tensor>());
}

Value Module::run(std::span<const Value> inputs) {
  return in_context([&]() -> Value {
    if (!has_hooks()) return call(inputs);
    Values given(inputs.begin(), inputs.end());
    run_pre_hooks(given);
    Value output = call(given);
    run_hooks(given, output);
    return output;
  });
}

void Module::run_pre_hooks(Values& inputs) {
  const auto hooks = pre_hooks_;  // a hook may remove itself
  for (const auto& [id, hook] : hooks) (*hook)(*this, inputs);
}
void Module::run_hooks(const Values& inputs, Value& output) {
  const auto hooks = hooks_;
  for (const auto& [id, hook] : hooks) (*hook)(*this, inputs, output);
}

void Module::fail_undefined_input(size_t i) const {
  fail(Cause::type, kind(), ": expected a tensor as input ", i, ", got an undefined one.");
}

void Module::fail_in_context(const Error& e) const {
  const bool has_context = e.message().find("\n  in ") != std::string::npos;
  throw Error(e.cause(), has_context ? e.message() : e.message() + "\n  in " + kind() + "(" + extra_repr() + ")");
}

const Tensor& detail::only_tensor(const Module& module, const Values& inputs) {
  VESTA_CHECK(inputs.size() == 1 && inputs[0].is_tensor(), type, module.kind(),
              ": a hook of one tensor was called with ", inputs.size(), " inputs. Write one of `const Values&`.");
  return inputs[0].tensor();
}

std::string class_name(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type.name(), nullptr, nullptr, &status),
                                                    std::free);
  std::string_view full = status == 0 ? name.get() : type.name();
  full = full.substr(0, full.find('<'));
  const size_t colon = full.rfind("::");
  return std::string(colon == std::string_view::npos ? full : full.substr(colon + 2));
}

std::string Module::kind() const { return class_name(typeid(*this)); }

std::shared_ptr<Module> Module::clone() const {
  fail(Cause::not_implemented, kind(),
       ": expected a class with a clone() of its own, got one without. Override clone(), or derive from ", "ModuleOf<",
       kind(), ">, which has it.");
}

void Module::check_name(const std::string& name) const {
  VESTA_CHECK(!name.empty() && name.find('.') == std::string::npos, value, kind(),
              ": expected a name that is not empty and has no dot, got '", name, "'.");
  auto taken = [&](const auto& list) {
    return std::ranges::any_of(list, [&](const auto& e) { return e.first == name; });
  };
  bool buffer = std::ranges::any_of(buffers_, [&](const Buffer& b) { return b.name == name; });
  VESTA_CHECK(!taken(parameters_) && !taken(modules_) && !buffer, value, kind(), ": attribute '", name,
              "' already exists.");
}

Tensor Module::register_parameter(std::string name, Tensor value) {
  check_name(name);
  if (value.defined()) {
    VESTA_CHECK(value.is_leaf(), value, kind(),
                ": expected a leaf, got the result of an operation that requires grad ('", name,
                "'). Register x.detach().");
    value.set_requires_grad(true);
  }
  parameters_.emplace_back(std::move(name), value);
  return value;
}

Tensor Module::register_buffer(std::string name, Tensor value, bool persistent) {
  check_name(name);
  buffers_.push_back({std::move(name), value, persistent});
  return value;
}

void Module::add_module(std::string name, std::shared_ptr<Module> module) {
  check_name(name);
  VESTA_CHECK(module, value, kind(), ": expected a module, got a null pointer ('", name, "').");
  modules_.emplace_back(std::move(name), std::move(module));
}

void Module::collect(const std::string& prefix, bool buffers, Named& into) const {
  auto add = [&](const std::string& name, const Tensor& t) {
    if (!t.defined()) return;
    bool seen = std::ranges::any_of(into, [&](const auto& e) { return e.second.is_same(t); });
    if (!seen) into.emplace_back(prefix + name, t);
  };
  if (buffers) {
    for (const Buffer& b : buffers_) add(b.name, b.value);
  } else {
    for (const auto& [name, t] : parameters_) add(name, t);
  }
  for (const auto& [name, m] : modules_) m->collect(prefix + name + ".", buffers, into);
}

Module::Named Module::named_parameters(const std::string& prefix) const {
  Named r;
  collect(prefix.empty() ? "" : prefix + ".", false, r);
  return r;
}
Module::Named Module::named_buffers(const std::string& prefix) const {
  Named r;
  collect(prefix.empty() ? "" : prefix + ".", true, r);
  return r;
}

namespace {
std::vector<Tensor> values(const Module::Named& named) {
  std::vector<Tensor> r;
  for (const auto& [name, t] : named) r.push_back(t);
  return r;
}
/// Gives `t` the memory of `value`: the object stays the same, with another dtype or device.
void replace(const Tensor& t, const Tensor& value) { autograd::replace_memory(t, value, "to"); }
}  // namespace

std::vector<Tensor> Module::parameters() const { return values(named_parameters()); }
std::vector<Tensor> Module::buffers() const { return values(named_buffers()); }

Module::NamedModules Module::named_modules(const std::string& prefix) {
  NamedModules r{{prefix, this}};
  for (auto& [name, m] : modules_) {
    std::string below = prefix;
    if (!prefix.empty()) below += '.';
    below += name;
    for (auto& e : m->named_modules(below)) {
      if (std::ranges::none_of(r, [&](const auto& s) { return s.second == e.second; })) r.push_back(e);
    }
  }
  return r;
}

void Module::train(bool on) {
  training_ = on;
  for (auto& [name, m] : modules_) m->train(on);
}

void Module::zero_grad(bool set_to_none) {
  for (const Tensor& p : parameters()) {
    Tensor g = p.grad();
    if (!g.defined()) continue;
    if (set_to_none) {
      p.set_grad({});
    } else {
      NoGrad off;
      zero_(g.detach());
    }
  }
}

void Module::to(DType dtype) {
  VESTA_CHECK(is_differentiable(dtype), type, kind(), ": to() only accepts floating point or complex dtypes, got ",
              dtype, ".");
  NoGrad off;
  auto convert = [&](const Tensor& t) {
    if (is_differentiable(t.dtype()) && t.dtype() != dtype) replace(t, t.detach().to(dtype));
  };
  for (const Tensor& t : parameters()) {
    convert(t);
    if (Tensor g = t.grad(); g.defined()) convert(g);
  }
  for (const Tensor& t : buffers()) convert(t);
}

void Module::to(Device device) {
  NoGrad off;
  for (const auto& list : {parameters(), buffers()}) {
    for (const Tensor& t : list) {
      if (t.device() != device) replace(t, t.detach().to(device));
      if (Tensor g = t.grad(); g.defined() && g.device() != device) replace(g, g.detach().to(device));
    }
  }
}

void Module::requires_grad_(bool on) {
  for (const Tensor& p : parameters()) p.set_requires_grad(on);
}

void Module::apply(const std::function<void(Module&)>& f) {
  for (auto& [name, m] : modules_) m->apply(f);
  f(*this);
}

StateDict Module::state_dict(const std::string& prefix) const {
  StateDict r;
  for (const auto& [name, t] : parameters_) {
    if (t.defined()) r.emplace_back(prefix + name, t.detach());
  }
  for (const Buffer& b : buffers_) {
    if (b.persistent && b.value.defined()) r.emplace_back(prefix + b.name, b.value.detach());
  }
  for (const auto& [name, m] : modules_) {
    for (auto& e : m->state_dict(prefix + name + ".")) r.push_back(std::move(e));
  }
  return r;
}

void Module::load_state_dict(const StateDict& state, bool strict) {
  StateDict own = state_dict();  // aliases of the parameters and buffers
  auto find = [](const StateDict& in, const std::string& name) {
    return std::ranges::find_if(in, [&](const auto& e) { return e.first == name; });
  };
  std::string problems;
  for (const auto& [name, t] : own) {
    auto given = find(state, name);
    if (given == state.end()) {
      if (strict) problems += "\n  missing key: " + name;
    } else if (!given->second.defined()) {
      problems += "\n  undefined tensor for " + name;
    } else if (!std::ranges::equal(given->second.sizes(), t.sizes())) {
      problems += text("\n  size mismatch for ", name, ": copying a param with shape ", given->second.sizes(),
                       " from checkpoint, the shape in current model is ", t.sizes());
    } else if (is_complex(given->second.dtype()) && !is_complex(t.dtype())) {
      problems += text("\n  dtype mismatch for ", name, ": a complex checkpoint does not fit ", t.dtype());
    }
  }
  for (const auto& [name, t] : state) {
    if (strict && find(own, name) == own.end()) problems += "\n  unexpected key: " + name;
  }
  VESTA_CHECK(problems.empty(), value, "load_state_dict: Error(s) in loading state_dict for ", kind(), ":", problems);
  NoGrad off;
  for (const auto& [name, t] : own) {
    if (auto given = find(state, name); given != state.end()) copy_(t, given->second);
  }
}

int Module::add_forward_pre_hook(ForwardPreHook hook) {
  VESTA_CHECK(hook, type, kind(), ": expected a hook, got an empty function.");
  pre_hooks_.emplace_back(next_hook_, std::make_shared<ForwardPreHook>(std::move(hook)));
  return next_hook_++;
}
int Module::add_forward_hook(ForwardHook hook) {
  VESTA_CHECK(hook, type, kind(), ": expected a hook, got an empty function.");
  hooks_.emplace_back(next_hook_, std::make_shared<ForwardHook>(std::move(hook)));
  return next_hook_++;
}
void Module::remove_hook(int id) {
  std::erase_if(pre_hooks_, [&](const auto& e) { return e.first == id; });
  std::erase_if(hooks_, [&](const auto& e) { return e.first == id; });
}

std::string Module::repr() const {
  std::string extra = extra_repr();
  if (modules_.empty()) return kind() + "(" + extra + ")";
  std::ostringstream out;
  out << kind() << "(\n";
  if (!extra.empty()) out << "  " << extra << "\n";
  for (const auto& [name, m] : modules_) {
    std::istringstream lines(m->repr());
    std::string line;
    std::getline(lines, line);
    out << "  (" << name << "): " << line << "\n";
    while (std::getline(lines, line)) out << "  " << line << "\n";
  }
  out << ")";
  return out.str();
}

void Module::copy_state(const Module& from) {
  NoGrad off;
  const auto same = [](const Tensor& a, const Tensor& b) { return a.defined() == b.defined(); };
  bool fits = parameters_.size() == from.parameters_.size() && buffers_.size() == from.buffers_.size();
  for (size_t i = 0; fits && i < parameters_.size(); ++i) {
    fits = parameters_[i].first == from.parameters_[i].first && same(parameters_[i].second, from.parameters_[i].second);
  }
  for (size_t i = 0; fits && i < buffers_.size(); ++i) {
    fits = buffers_[i].name == from.buffers_[i].name && same(buffers_[i].value, from.buffers_[i].value);
  }
  VESTA_CHECK(fits, runtime, kind(), ": clone() made a module with other parameters or buffers. Override clone().");
  auto copy = [](const Tensor& to, const Tensor& t) {  // dtype and device are copied too
    if (t.defined()) replace(to, vesta::clone(t.detach()));
  };
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const Tensor &to = parameters_[i].second, &t = from.parameters_[i].second;
    copy(to, t);
    if (t.defined()) to.set_requires_grad(t.requires_grad());
  }
  for (size_t i = 0; i < buffers_.size(); ++i) copy(buffers_[i].value, from.buffers_[i].value);
  training_ = from.training_;
}

void Module::copy_entries(const Module& from) {
  const NoGrad off;
  const auto copied = [](const Tensor& t) { return t.defined() ? vesta::clone(t.detach()) : Tensor(); };
  for (const auto& [name, t] : from.parameters_) register_parameter(name, copied(t));
  for (const Buffer& b : from.buffers_) register_buffer(b.name, copied(b.value), b.persistent);
  copy_state(from);
}

void Module::copy_tree(const Module& from) {
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  VESTA_CHECK(std::ranges::equal(modules_, from.modules_, same), runtime, kind(),
              ": clone() made a module with other submodules. Override clone().");
  copy_state(from);
  for (size_t i = 0; i < modules_.size(); ++i) modules_[i].second->copy_tree(*from.modules_[i].second);
}

}  // namespace vesta::nn
