// torch::jit as far as programs name it. Vesta keeps no programs: load() says what to do instead.
#pragma once
#include <torch/torch.h>

namespace torch::jit {

struct Module;

[[noreturn]] inline void refuse() {
  vesta::fail(vesta::Cause::not_implemented,
              "torch::jit: Vesta does not run saved programs. Write the model in C++ and load the weights: save its "
              "state_dict() in Python as safetensors, read it with torch::load.");
}

/// The name of a class of a saved program.
struct QualifiedName {
  std::string name() const { refuse(); }
  std::string qualifiedName() const { refuse(); }
};
/// The class of a module of a saved program.
struct ClassType {
  optional<QualifiedName> name() const { refuse(); }
};

/// A value of a saved program, which may be a module.
struct IValue : c10::IValue {
  using c10::IValue::IValue;
  IValue(c10::IValue v) : c10::IValue(std::move(v)) {}
  Module toModule() const;
};

/// What lists of parts of modules hold.
template <class T>
struct Named {
  std::string name;
  T value;
};

/// A module of a saved program. There is none in Vesta, so that its methods raise.
struct Module {
  IValue forward(const std::vector<IValue>&) const { refuse(); }
  IValue operator()(const std::vector<IValue>&) const { refuse(); }
  IValue attr(const std::string&) const { refuse(); }
  IValue attr(const std::string&, const IValue&) const { refuse(); }
  bool hasattr(const std::string&) const { refuse(); }
  void setattr(const std::string&, const IValue&) const { refuse(); }
  template <class... A>
  IValue run_method(const std::string&, A&&...) const {
    refuse();
  }
  void to(Device, bool = false) const { refuse(); }
  void to(Dtype, bool = false) const { refuse(); }
  void to(Device, Dtype, bool = false) const { refuse(); }
  void eval() const { refuse(); }
  void train(bool = true) const { refuse(); }
  bool is_training() const { refuse(); }
  void zero_grad() const { refuse(); }
  Module clone(bool = false) const { refuse(); }
  void save(const std::string&) const { refuse(); }
  void dump(bool, bool, bool) const { refuse(); }
  std::vector<Tensor> parameters(bool = true) const { refuse(); }
  std::vector<Tensor> buffers(bool = true) const { refuse(); }
  std::vector<Named<Tensor>> named_parameters(bool = true) const { refuse(); }
  std::vector<Named<Tensor>> named_buffers(bool = true) const { refuse(); }
  std::vector<Named<IValue>> named_attributes(bool = true) const { refuse(); }
  std::vector<Module> children() const { refuse(); }
  std::vector<Named<Module>> named_children() const;
  std::vector<Named<Module>> named_modules() const;
  std::shared_ptr<ClassType> type() const { refuse(); }
};
inline Module IValue::toModule() const { refuse(); }
inline std::vector<Named<Module>> Module::named_children() const { refuse(); }
inline std::vector<Named<Module>> Module::named_modules() const { refuse(); }

inline Module load(const std::string& /*path*/, optional<Device> = {}) { refuse(); }
inline Module load(std::istream& /*from*/, optional<Device> = {}) { refuse(); }

inline Module freeze(const Module&) { refuse(); }
inline Module optimize_for_inference(const Module&) { refuse(); }

namespace script {
using jit::load;
using jit::Module;
}  // namespace script

}  // namespace torch::jit
