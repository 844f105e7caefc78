// Padding as a function.
#pragma once
#include <variant>

#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/padding.h>

namespace torch::nn::functional {

inline Tensor pad(const Tensor& input, const PadFuncOptions& o) {
  if (std::holds_alternative<enumtype::kConstant>(o.mode())) return vesta::pad(input, o.pad(), "constant", o.value());
  TORCH_CHECK(o.value() == 0, "Padding mode \"", detail::word(o.mode()), "\" doesn't take in value argument");
  return vesta::pad(input, o.pad(), detail::word(o.mode()));
}

}  // namespace torch::nn::functional
