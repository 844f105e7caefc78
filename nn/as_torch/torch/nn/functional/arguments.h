// The values of options as arguments of Vesta's functions: words for tags, lists for arrays.
#pragma once
#include <string>
#include <variant>

#include <torch/types.h>

#include <vesta/core/ops/ops.h>
#include <vesta/nn/fields.h>

namespace torch::nn::functional::detail {

/// Returns the word that Vesta has for a tag: "mean" for kMean, "nearest-exact" for kNearestExact.
template <class... Tags>
std::string word(const std::variant<Tags...>& tag) {
  std::string name = enumtype::get_enum_name(tag).substr(1);
  if (name == "NearestExact") return "nearest-exact";
  for (char& c : name) c = char(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return name;
}

/// Returns a view of sizes, valid as long as they are.
template <size_t D>
vesta::IntSpan list(const ExpandingArray<D>& sizes) {
  return vesta::IntSpan(sizes->data(), D);
}
/// Returns sizes as the options of Vesta's layers hold them.
template <size_t D>
vesta::nn::Ints<D> ints(const ExpandingArray<D>& sizes) {
  vesta::nn::Ints<D> r;
  r.v = *sizes;
  return r;
}

/// Runs a pointwise op into fresh memory, or into its input.
template <class Op, class... A>
Tensor pointwise(const Op& op, const Tensor& input, bool inplace, const A&... parameters) {
  if (!inplace) return op(input, parameters..., vesta::Out());
  op(input, parameters..., vesta::Out{&input, vesta::Out::inplace});
  return input;
}

/// Reduces losses of elements or examples as asked for.
inline Tensor reduced(const Tensor& losses, const std::string& reduction) {
  return reduction == "none" ? losses : reduction == "mean" ? vesta::mean(losses) : vesta::sum(losses);
}

}  // namespace torch::nn::functional::detail
