// Options and states by the names of their fields: in archives, compared, merged with defaults. Files have libtorch's
// names: "state" has an archive per parameter, "param_groups" one per group. Classes list their fields as pointers, and
// everything else is done here once, so that little is compiled for each optimizer.
#pragma once
#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <torch/optim/optimizer.h>

namespace torch::optim {
namespace detail {

/// A field of options or of a state: its name, and where it is.
class Field {
 public:
  Field(const char* field, double* at) : name(field), kind_(Kind::real), at_(at) {}
  Field(const char* field, bool* at) : name(field), kind_(Kind::boolean), at_(at) {}
  Field(const char* field, int64_t* at) : name(field), kind_(Kind::integer), at_(at) {}
  Field(const char* field, std::tuple<double, double>* at) : name(field), kind_(Kind::pair), at_(at) {}
  Field(const char* field, std::optional<int64_t>* at) : name(field), kind_(Kind::maybe_integer), at_(at) {}
  Field(const char* field, std::optional<std::string>* at) : name(field), kind_(Kind::maybe_text), at_(at) {}
  Field(const char* field, Tensor* at) : name(field), kind_(Kind::tensor), at_(at) {}
  Field(const char* field, std::deque<Tensor>* at) : name(field), kind_(Kind::tensors), at_(at) {}
  Field(const char* field, std::optional<std::vector<Tensor>>* at) : name(field), kind_(Kind::maybe_tensors), at_(at) {}

  const char* name;
  double& number() const { return *static_cast<double*>(at_); }

  /// Writes the value, unless it is an undefined tensor.
  void write(serialize::OutputArchive& archive) const {
    visit([&](const auto& value) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, Tensor>) {
        if (value.defined()) archive.write(name, IValue(value));
      } else if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
        archive.write(name, IValue(std::vector<Tensor>(value.begin(), value.end())));
      } else {
        archive.write(name, IValue(value));
      }
    });
  }
  /// Reads the value. Error: there is none, unless it is a tensor or optional.
  void read(serialize::InputArchive& archive) const {
    IValue found;
    if (!archive.try_read(name, found)) {
      TORCH_CHECK(kind_ >= Kind::maybe_integer, "load: the file has no '", name, "'");
      return;
    }
    visit([&](auto& value) {
      using T = std::decay_t<decltype(value)>;
      if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
        const std::vector<Tensor> list = found.toTensorVector();
        value.assign(list.begin(), list.end());
      } else if constexpr (std::is_same_v<T, std::tuple<double, double>>) {
        TORCH_CHECK(found.elements().size() == 2, "load: '", name, "' has ", found.elements().size(), " parts, not 2");
        value = {found.elements()[0].toDouble(), found.elements()[1].toDouble()};
      } else if constexpr (requires {
                             typename T::value_type;
                             value.reset();
                           }) {
        value.reset();
        if (!found.isNone()) value = found.to<typename T::value_type>();
      } else {
        value = found.to<T>();
      }
    });
  }
  /// Takes over the value of the same field of another object.
  void copy(const Field& from) const {
    visit([&](auto& value) { value = *static_cast<std::decay_t<decltype(value)>*>(from.at_); });
  }
  /// Returns whether the same field of another object has the same value.
  bool is_same(const Field& other) const {
    bool r = false;
    visit([&](const auto& value) { r = same(value, *static_cast<std::decay_t<decltype(value)>*>(other.at_)); });
    return r;
  }

 private:
  enum class Kind : uint8_t { real, boolean, integer, pair, maybe_integer, maybe_text, tensor, tensors, maybe_tensors };
  template <class F>
  void visit(const F& f) const {
    switch (kind_) {
      case Kind::real: return f(*static_cast<double*>(at_));
      case Kind::boolean: return f(*static_cast<bool*>(at_));
      case Kind::integer: return f(*static_cast<int64_t*>(at_));
      case Kind::pair: return f(*static_cast<std::tuple<double, double>*>(at_));
      case Kind::maybe_integer: return f(*static_cast<std::optional<int64_t>*>(at_));
      case Kind::maybe_text: return f(*static_cast<std::optional<std::string>*>(at_));
      case Kind::tensor: return f(*static_cast<Tensor*>(at_));
      case Kind::tensors: return f(*static_cast<std::deque<Tensor>*>(at_));
      case Kind::maybe_tensors: return f(*static_cast<std::optional<std::vector<Tensor>>*>(at_));
    }
  }
  template <class T>
  static bool same(const T& a, const T& b) {
    if constexpr (std::is_same_v<T, Tensor>) {
      if (!a.defined() || !b.defined()) return a.defined() == b.defined();
      return a.is_same(b) || (a.dtype() == b.dtype() && vesta::equal(a, b));
    } else if constexpr (std::is_same_v<T, std::optional<std::vector<Tensor>>>) {
      return a.has_value() == b.has_value() &&
             (!a || std::equal(a->begin(), a->end(), b->begin(), b->end(), same<Tensor>));
    } else if constexpr (std::is_same_v<T, std::deque<Tensor>>) {
      return std::equal(a.begin(), a.end(), b.begin(), b.end(), same<Tensor>);
    } else {
      return a == b;
    }
  }

  Kind kind_;
  void* at_;
};
using Fields = std::vector<Field>;

inline bool same_fields(const Fields& a, const Fields& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Field& x, const Field& y) { return x.is_same(y); });
}

/// The options of the optimizers here: they list their fields, "lr" first.
class FieldOptions : public OptimizerOptions {
 public:
  virtual Fields fields() = 0;
  Fields fields() const { return const_cast<FieldOptions*>(this)->fields(); }
  void serialize(serialize::InputArchive& archive) override {
    for (const Field& field : fields()) field.read(archive);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    for (const Field& field : fields()) field.write(archive);
  }
  double get_lr() const override { return fields()[0].number(); }
  void set_lr(double lr) override { fields()[0].number() = lr; }

 protected:
  /// Takes over from the defaults what is here as in `initial`.
  void merge_fields(const FieldOptions& initial, const FieldOptions* defaults) {
    TORCH_CHECK(defaults != nullptr, "optimizer: expected options of the optimizer's class for a parameter group, got ",
                c10::demangle(typeid(*this).name()));
    const Fields own = fields(), first = initial.fields(), usual = defaults->fields();
    for (size_t i = 0; i < own.size(); ++i) {
      if (own[i].is_same(first[i])) own[i].copy(usual[i]);
    }
  }
};

/// The base of options `Derived`.
template <class Derived>
class OptionsOf : public FieldOptions {
 public:
  friend bool operator==(const Derived& a, const Derived& b) {
    const FieldOptions &x = a, &y = b;
    return same_fields(x.fields(), y.fields());
  }

 private:
  std::unique_ptr<OptimizerOptions> clone() const override {
    return std::unique_ptr<OptimizerOptions>(new Derived(static_cast<const Derived&>(*this)));
  }
  void merge(const OptimizerOptions& defaults) override {
    const Derived initial = [] {
      if constexpr (std::is_default_constructible_v<Derived>) return Derived();
      else return Derived(1e-3);
    }();
    merge_fields(initial, dynamic_cast<const Derived*>(&defaults));
  }
};

/// A state of the optimizers here, which lists its fields.
class FieldState : public OptimizerParamState {
 public:
  virtual Fields fields() = 0;
  Fields fields() const { return const_cast<FieldState*>(this)->fields(); }
  /// Returns where the number of steps is, null where they are not counted.
  virtual int64_t* count() { return nullptr; }
  void serialize(serialize::InputArchive& archive) override {
    for (const Field& field : fields()) field.read(archive);
  }
  void serialize(serialize::OutputArchive& archive) const override {
    for (const Field& field : fields()) field.write(archive);
  }

  /// The number of steps as a tensor, which the fused ops increment, and the number that it has.
  Tensor counter;
  int64_t counted = -1;
};

/// The base of states `Derived`.
template <class Derived>
class StateOf : public FieldState {
 public:
  friend bool operator==(const Derived& a, const Derived& b) {
    const FieldState &x = a, &y = b;
    return same_fields(x.fields(), y.fields());
  }

 private:
  std::unique_ptr<OptimizerParamState> clone() const override {
    auto* const copy = new Derived(static_cast<const Derived&>(*this));
    copy->counted = -1;  // the counter is of the original
    return std::unique_ptr<OptimizerParamState>(copy);
  }
};

inline std::string address(const void* impl) { return std::to_string(reinterpret_cast<size_t>(impl)); }
inline Tensor count(size_t n) { return vesta::full(vesta::IntList(), int64_t(n), vesta::DType::int64); }
inline size_t read_count(serialize::InputArchive& archive, const std::string& key) {
  Tensor n;
  archive.read(key, n);
  return size_t(n.item<int64_t>());
}

inline void write_optimizer(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  archive.write("pytorch_version", IValue("1.5.0"));
  serialize::OutputArchive states;
  for (const auto& [impl, state] : optimizer.state()) {
    serialize::OutputArchive one;
    std::as_const(*state).serialize(one);
    states.write(address(impl), one);
  }
  archive.write("state", states);
  serialize::OutputArchive groups;
  groups.write("param_groups/size", count(optimizer.param_groups().size()));
  for (size_t i = 0; i < optimizer.param_groups().size(); ++i) {
    const OptimizerParamGroup& group = optimizer.param_groups()[i];
    serialize::OutputArchive one, options;
    one.write("params/size", count(group.params().size()));
    for (size_t k = 0; k < group.params().size(); ++k) {
      one.write("params/" + std::to_string(k), IValue(address(group.params()[k].impl())));
    }
    group.options().serialize(options);
    one.write("options", options);
    groups.write("param_groups/" + std::to_string(i), one);
  }
  archive.write("param_groups", groups);
}

inline void read_optimizer(serialize::InputArchive& archive, Optimizer& optimizer,
                           std::unique_ptr<OptimizerParamState> (*new_state)()) {
  IValue version;
  TORCH_CHECK(archive.try_read("pytorch_version", version),
              "load: expected an optimizer's file of PyTorch 1.5 or later. Save it again with a later PyTorch.");
  serialize::InputArchive states, groups;
  archive.read("state", states);
  archive.read("param_groups", groups);
  std::vector<OptimizerParamGroup>& own = optimizer.param_groups();
  TORCH_CHECK(read_count(groups, "param_groups/size") == own.size(),
              "loaded state dict has a different number of parameter groups");
  std::vector<std::pair<void*, std::unique_ptr<OptimizerParamState>>> read_states;
  std::vector<std::unique_ptr<OptimizerOptions>> read_options;
  const std::vector<std::string> known = states.keys();
  for (size_t i = 0; i < own.size(); ++i) {
    serialize::InputArchive one, options;
    groups.read("param_groups/" + std::to_string(i), one);
    TORCH_CHECK(read_count(one, "params/size") == own[i].params().size(),
                "loaded state dict contains a parameter group that has a different size than the optimizer's parameter "
                "group");
    for (size_t k = 0; k < own[i].params().size(); ++k) {
      IValue key;
      one.read("params/" + std::to_string(k), key);
      if (std::find(known.begin(), known.end(), key.toStringRef()) == known.end()) continue;
      serialize::InputArchive entry;
      states.read(key.toStringRef(), entry);
      auto state = new_state();
      state->serialize(entry);
      read_states.emplace_back(own[i].params()[k].impl(), std::move(state));
    }
    one.read("options", options);
    read_options.push_back(own[i].options().clone());
    read_options.back()->serialize(options);
  }
  for (auto& [impl, state] : read_states) optimizer.state()[impl] = std::move(state);
  for (size_t i = 0; i < own.size(); ++i) own[i].set_options(std::move(read_options[i]));
}

template <class State>
std::unique_ptr<OptimizerParamState> new_state() {
  return std::unique_ptr<OptimizerParamState>(new State());
}

}  // namespace detail

/// Writes the states and options of an optimizer.
template <class State, class Options>
void serialize(serialize::OutputArchive& archive, const Optimizer& optimizer) {
  detail::write_optimizer(archive, optimizer);
}
/// Reads what serialize() wrote for an optimizer of the same class over as many groups and parameters. Error: they do
/// not fit; nothing is changed then.
template <class State, class Options>
void serialize(serialize::InputArchive& archive, Optimizer& optimizer) {
  detail::read_optimizer(archive, optimizer, detail::new_state<State>);
}

}  // namespace torch::optim

/// What optimizers of programs write in the serialize() of their options and states, and in save() and load().
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name) \
  torch::optim::detail::Field(#name, &const_cast<std::decay_t<decltype(*this)>*>(this)->name()).write(archive)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name) torch::optim::detail::Field(#name, &name()).read(archive)
#define _TORCH_OPTIM_SERIALIZE_TORCH_ARG_DEQUE(name) _TORCH_OPTIM_SERIALIZE_TORCH_ARG(name)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_DEQUE(T, name) _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)
#define _TORCH_OPTIM_DESERIALIZE_TORCH_ARG_OPTIONAL(T, name) _TORCH_OPTIM_DESERIALIZE_TORCH_ARG(T, name)
#define _TORCH_OPTIM_SERIALIZE_WITH_TEMPLATE_ARG(OptimizerName) \
  torch::optim::serialize<OptimizerName##ParamState, OptimizerName##Options>(archive, self)
