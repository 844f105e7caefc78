// torch::jit as far as programs name it. Vesta keeps no programs: load() says what to do instead.
#pragma once
#include <torch/torch.h>

namespace torch::jit {

using torch::IValue;

/// A module of a saved program. There is none in Vesta, so that its methods raise.
struct Module {
  IValue forward(const std::vector<IValue>&) const { refuse(); }
  IValue operator()(const std::vector<IValue>&) const { refuse(); }
  IValue attr(const std::string&) const { refuse(); }
  void to(Device, bool = false) const { refuse(); }
  void eval() const { refuse(); }
  void train(bool = true) const { refuse(); }
  std::vector<Tensor> parameters() const { refuse(); }

  [[noreturn]] static void refuse() {
    vesta::fail(vesta::Cause::not_implemented,
                "torch::jit: Vesta does not run saved programs. Write the model in C++ and load the weights: save its "
                "state_dict() in Python as safetensors, read it with torch::load.");
  }
};

inline Module load(const std::string& /*path*/, optional<Device> = {}) { Module::refuse(); }
inline Module load(std::istream& /*from*/, optional<Device> = {}) { Module::refuse(); }

namespace script {
using jit::Module;
}

}  // namespace torch::jit
