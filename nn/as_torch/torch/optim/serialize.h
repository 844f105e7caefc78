// Options and states by the names of their fields: in archives, compared, merged with defaults. Files have libtorch's
// form: "state" has an archive per parameter, "param_groups" one per group.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

#include <vesta/nn/fields.h>

namespace torch::optim {
namespace detail {

template <class T>
void put(serialize::OutputArchive& archive, const std::string& key, const T& value) {
  if constexpr (std::is_same_v<T, Tensor>) {
    if (value.defined()) archive.write(key, IValue(value));
  } else if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
    archive.write(key, IValue(std::vector<Tensor>(value.begin(), value.end())));
  } else {
    archive.write(key, IValue(value));
  }
}
template <class T>
void put(serialize::OutputArchive& archive, const std::string& key, const std::optional<T>& value) {
  archive.write(key, value ? IValue(*value) : IValue());
}
/// Reads a value, if there is one.
template <class T>
void take(serialize::InputArchive& archive, const std::string& key, T& value) {
  IValue found;
  if (!archive.try_read(key, found)) {
    TORCH_CHECK((std::is_same_v<T, Tensor>), "load: the file has no '", key, "'");
    return;
  }
  if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
    const auto list = found.toTensorVector();
    value.assign(list.begin(), list.end());
  } else if constexpr (std::is_same_v<T, std::tuple<double, double>>) {
    const auto& parts = found.elements();
    value = {parts.at(0).toDouble(), parts.at(1).toDouble()};
  } else {
    value = found.to<T>();
  }
}
template <class T>
void take(serialize::InputArchive& archive, const std::string& key, std::optional<T>& value) {
  IValue found;
  if (!archive.try_read(key, found)) return;
  if (found.isNone()) value.reset();
  else take(archive, key, value.emplace());
}
inline void take(serialize::InputArchive& archive, const std::string& key, std::optional<std::vector<Tensor>>& value) {
  IValue found;
  if (archive.try_read(key, found) && !found.isNone()) value = found.toTensorVector();
}

/// Calls `f(name, value)` for each field, which VESTA_FIELDS(lr_, momentum_) names.
template <class T, class F>
void each_field(T& of, const F& f) {
  const auto names = vesta::nn::split_names(T::field_names);
  size_t i = 0;
  const auto name = [&] {
    std::string_view s = names[i++];
    s.remove_suffix(1);
    return std::string(s);
  };
  of.with_fields([&](auto&... values) { (f(name(), values), ...); });
}

inline bool same(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.is_same(b) || (a.dtype() == b.dtype() && vesta::equal(a, b));
}
template <class T>
bool same(const T& a, const T& b) {
  if constexpr (requires {
                  a.size();
                  a.begin();
                  a.begin()->defined();
                }) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](const Tensor& x, const Tensor& y) { return same(x, y); });
  } else if constexpr (requires { a->begin()->defined(); }) {
    return a.has_value() == b.has_value() && (!a || same(*a, *b));
  } else {
    return a == b;
  }
}
template <class T>
bool same_fields(const T& a, const T& b) {
  return a.with_fields(
      [&](const auto&... x) { return b.with_fields([&](const auto&... y) { return (same(x, y) && ...); }); });
}

/// The base of options with VESTA_FIELDS, `lr` among them.
template <class Derived>
class OptionsOf : public OptimizerCloneableOptions<Derived> {
 public:
  void serialize(serialize::InputArchive& archive) override {
    each_field(self(), [&](const std::string& name, auto& value) { take(archive, name, value); });
  }
  void serialize(serialize::OutputArchive& archive) const override {
    each_field(self(), [&](const std::string& name, const auto& value) { put(archive, name, value); });
  }
  double get_lr() const override { return self().lr(); }
  void set_lr(double lr) override { self().lr(lr); }
  friend bool operator==(const Derived& a, const Derived& b) { return same_fields(a, b); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
  void merge(const OptimizerOptions& given) override {
    const auto* defaults = dynamic_cast<const Derived*>(&given);
    TORCH_CHECK(defaults != nullptr, "optimizer: expected options of the optimizer's class for a parameter group, got ",
                c10::demangle(typeid(Derived).name()));
    const Derived initial = [] {
      if constexpr (std::is_default_constructible_v<Derived>) return Derived();
      else return Derived(1e-3);
    }();
    self().with_fields([&](auto&... own) {
      initial.with_fields([&](const auto&... first) {
        defaults->with_fields([&](const auto&... usual) { ((own == first ? void(own = usual) : void()), ...); });
      });
    });
  }
};

/// The base of states with VESTA_FIELDS.
template <class Derived>
class StateOf : public OptimizerCloneableParamState<Derived> {
 public:
  void serialize(serialize::InputArchive& archive) override {
    each_field(self(), [&](const std::string& name, auto& value) { take(archive, name, value); });
  }
  void serialize(serialize::OutputArchive& archive) const override {
    each_field(self(), [&](const std::string& name, const auto& value) { put(archive, name, value); });
  }
  friend bool operator==(const Derived& a, const Derived& b) { return same_fields(a, b); }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

inline std::string address(const void* impl) { return std::to_string(reinterpret_cast<size_t>(impl)); }
inline Tensor count(size_t n) { return vesta::full(vesta::IntList(), int64_t(n), vesta::DType::int64); }
inline size_t read_count(serialize::InputArchive& archive, const std::string& key) {
  Tensor n;
  archive.read(key, n);
  return size_t(n.template item<int64_t>());
}

}  // namespace detail

/// Writes the states and options of an optimizer.
template <class State, class Options>
void serialize(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  archive.write("pytorch_version", IValue("1.5.0"));
  serialize::OutputArchive states;
  for (const auto& [impl, state] : optimizer.state()) {
    serialize::OutputArchive one;
    static_cast<const OptimizerParamState&>(*state).serialize(one);
    states.write(detail::address(impl), one);
  }
  archive.write("state", states);
  serialize::OutputArchive groups;
  groups.write("param_groups/size", detail::count(optimizer.param_groups().size()));
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    const OptimizerParamGroup& group = optimizer.param_groups()[i];
    serialize::OutputArchive one, options;
    one.write("params/size", detail::count(group.params().size()));
    for (size_t k = 0; k < group.params().size(); ++k) {
      one.write("params/" + std::to_string(k), IValue(detail::address(group.params()[k].impl())));
    }
    static_cast<const OptimizerOptions&>(group.options()).serialize(options);
    one.write("options", options);
    groups.write("param_groups/" + std::to_string(i), one);
  }
  archive.write("param_groups", groups);
}

/// Reads what serialize() wrote for an optimizer of the same class over as many groups and parameters. Error: they do
/// not fit; nothing is changed then.
template <class State, class Options>
void serialize(serialize::InputArchive& archive, Optimizer& optimizer) {
  IValue version;
  TORCH_CHECK(archive.try_read("pytorch_version", version),
              "load: expected an optimizer's file of PyTorch 1.5 or later. Save it again with a later PyTorch.");
  serialize::InputArchive states, groups;
  archive.read("state", states);
  archive.read("param_groups", groups);
  std::vector<OptimizerParamGroup>& own = optimizer.param_groups();
  TORCH_CHECK(detail::read_count(groups, "param_groups/size") == own.size(),
              "loaded state dict has a different number of parameter groups");
  std::vector<std::pair<void*, std::unique_ptr<State>>> read_states;
  std::vector<Options> read_options;
  const std::vector<std::string> known = states.keys();
  for (size_t i = 0; i < own.size(); ++i) {
    serialize::InputArchive one, options;
    groups.read("param_groups/" + std::to_string(i), one);
    TORCH_CHECK(detail::read_count(one, "params/size") == own[i].params().size(),
                "loaded state dict contains a parameter group that has a different size than the optimizer's parameter "
                "group");
    for (size_t k = 0; k < own[i].params().size(); ++k) {
      IValue key;
      one.read("params/" + std::to_string(k), key);
      if (std::find(known.begin(), known.end(), key.toStringRef()) == known.end()) continue;
      serialize::InputArchive entry;
      states.read(key.toStringRef(), entry);
      auto state = std::make_unique<State>();
      static_cast<OptimizerParamState&>(*state).serialize(entry);
      read_states.emplace_back(own[i].params()[k].impl(), std::move(state));
    }
    one.read("options", options);
    read_options.push_back(static_cast<const Options&>(own[i].options()));
    static_cast<OptimizerOptions&>(read_options.back()).serialize(options);
  }
  for (auto& [impl, state] : read_states) optimizer.state()[impl] = std::move(state);
  for (size_t i = 0; i < own.size(); ++i) static_cast<Options&>(own[i].options()) = read_options[i];
}

}  // namespace torch::optim

/// What optimizers of programs write in the serialize() of their options and states, and in save() and load().
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name) torch::optim::detail::put(archive, #name, name())
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name) torch::optim::detail::take(archive, #name, name())
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG_DEQUE(name) _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_DEQUE(T, name) _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(T, name) _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)
#define _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(OptimizerName) \
  torch::optim::serialize<OptimizerName##ParamState, OptimizerName##Options>(archive, self)
