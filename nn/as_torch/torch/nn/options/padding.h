// Options of padding.
#pragma once
#include <utility>
#include <variant>
#include <vector>

#include <torch/nn/options/conv.h>

namespace torch::nn {

/// Defines the options of a padding whose values are known: the sides of D dimensions, the last one first.
#define TORCH_PAD_OPTIONS(Name)                                                    \
  template <size_t D>                                                              \
  struct Name##Options {                                                           \
    Name##Options(ExpandingArray<D * 2> padding) : padding_(std::move(padding)) {} \
    TORCH_ARG(ExpandingArray<D * 2>, padding);                                     \
  };                                                                               \
  TORCH_OPTIONS_OF_DIMENSIONS(Name, Options)
TORCH_PAD_OPTIONS(ReflectionPad);
TORCH_PAD_OPTIONS(ReplicationPad);
TORCH_PAD_OPTIONS(ZeroPad);
#undef TORCH_PAD_OPTIONS

template <size_t D>
struct ConstantPadOptions {
  ConstantPadOptions(ExpandingArray<D * 2> padding, double value) : padding_(std::move(padding)), value_(value) {}
  TORCH_ARG(ExpandingArray<D * 2>, padding);
  TORCH_ARG(double, value);
};
TORCH_OPTIONS_OF_DIMENSIONS(ConstantPad, Options);

namespace functional {

struct PadFuncOptions {
  using mode_t = std::variant<enumtype::kConstant, enumtype::kReflect, enumtype::kReplicate, enumtype::kCircular>;
  PadFuncOptions(std::vector<int64_t> pad) : pad_(std::move(pad)) {}
  TORCH_ARG(std::vector<int64_t>, pad);
  TORCH_ARG(mode_t, mode) = torch::kConstant;
  TORCH_ARG(double, value) = 0;
};

}  // namespace functional
}  // namespace torch::nn
