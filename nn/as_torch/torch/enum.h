// Tags of options: torch::kMean and the like, each of a type of its own (torch::enumtype::kMean), and their names.
#pragma once
#include <string>
#include <string_view>
#include <variant>

#include <torch/tensor.h>

namespace torch {
namespace enumtype {

// clang-format off
#define VESTA_TORCH_TAGS(X) \
  X(Linear) X(Conv1D) X(Conv2D) X(Conv3D) X(ConvTranspose1D) X(ConvTranspose2D) X(ConvTranspose3D) X(Sigmoid) X(Tanh)  \
  X(ReLU) X(GELU) X(SiLU) X(Mish) X(LeakyReLU) X(FanIn) X(FanOut) X(Constant) X(Reflect) X(Replicate) X(Circular)      \
  X(Nearest) X(Bilinear) X(Bicubic) X(Trilinear) X(Area) X(NearestExact) X(Sum) X(Mean) X(Max) X(None) X(BatchMean)    \
  X(Zeros) X(Border) X(Reflection) X(RNN_TANH) X(RNN_RELU) X(LSTM) X(GRU) X(Valid) X(Same)
// clang-format on
#define VESTA_TORCH_TAG(name)                                 \
  struct k##name {                                            \
    static constexpr std::string_view text = "k" #name;       \
    friend constexpr bool operator==(k##name, k##name) = default; \
  };
VESTA_TORCH_TAGS(VESTA_TORCH_TAG)
#undef VESTA_TORCH_TAG

/// Returns the name of the tag that a variant holds, as libtorch prints it ("kMean").
template <class... Tags>
std::string get_enum_name(const std::variant<Tags...>& tag) {
  return std::visit([](const auto& t) { return std::string(t.text); }, tag);
}
/// Returns the number (torch::Reduction) that a variant of kNone, kMean and kSum means.
template <class... Tags>
int64_t reduction_get_enum(const std::variant<Tags...>& tag) {
  const std::string name = get_enum_name(tag);
  return name == "kNone" ? Reduction::None : name == "kSum" ? Reduction::Sum : Reduction::Mean;
}

}  // namespace enumtype

#define VESTA_TORCH_TAG(name) inline constexpr enumtype::k##name k##name;
VESTA_TORCH_TAGS(VESTA_TORCH_TAG)
#undef VESTA_TORCH_TAG

}  // namespace torch
