// Normalisation over dimensions, groups and channels of one example as layers.
#pragma once
#include <initializer_list>

#include <torch/nn/functional/normalization.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// The layer that brings the last dimensions [*, normalized_shape] to mean 0 and variance 1, times weight, plus bias.
class LayerNormImpl : public Cloneable<LayerNormImpl> {
 public:
  TORCH_LAYER_OPTIONS(LayerNormImpl, LayerNormOptions);
  void reset() override {
    const bool affine = options.elementwise_affine();
    const vesta::IntList sizes(options.normalized_shape());
    weight = register_parameter("weight", affine ? vesta::empty(sizes) : Tensor(), affine);
    bias = register_parameter("bias", affine ? vesta::empty(sizes) : Tensor(), affine);
    reset_parameters();
  }
  void reset_parameters() {
    if (options.elementwise_affine()) init::ones_(weight), init::zeros_(bias);
  }
  Tensor forward(const Tensor& input) {
    return vesta::layer_norm(input, options.normalized_shape(), weight, bias, options.eps());
  }
  void pretty_print(std::ostream& stream) const override {
    stream << std::boolalpha << "torch::nn::LayerNorm([";
    const auto& sizes = options.normalized_shape();
    for (size_t i = 0; i < sizes.size(); ++i) stream << (i ? ", " : "") << sizes[i];
    stream << "], eps=" << options.eps() << ", elementwise_affine=" << options.elementwise_affine() << ')';
  }

  Tensor weight, bias;
};
TORCH_MODULE(LayerNorm);

TORCH_PLAIN_LAYER(LocalResponseNorm, LocalResponseNormOptions, functional::local_response_norm(input, options),
                  options.size(), ", alpha=", options.alpha(), ", beta=", options.beta(), ", k=", options.k());
TORCH_PLAIN_LAYER(
    CrossMapLRN2d, CrossMapLRN2dOptions,
    vesta::nn::CrossMapLRN2d(options.size(), options.alpha(), options.beta(), double(options.k())).forward(input),
    options.size(), ", alpha=", options.alpha(), ", beta=", options.beta(), ", k=", options.k());

/// The normalisation of groups of channels of each example [N, C, ...].
class GroupNormImpl : public Cloneable<GroupNormImpl> {
 public:
  TORCH_LAYER_OPTIONS(GroupNormImpl, GroupNormOptions);
  void reset() override {
    TORCH_CHECK(options.num_groups() > 0 && options.num_channels() % options.num_groups() == 0,
                "num_channels must be divisible by num_groups");
    const bool affine = options.affine();
    weight = register_parameter("weight", affine ? vesta::empty({options.num_channels()}) : Tensor(), affine);
    bias = register_parameter("bias", affine ? vesta::empty({options.num_channels()}) : Tensor(), affine);
    reset_parameters();
  }
  void reset_parameters() {
    if (options.affine()) init::ones_(weight), init::zeros_(bias);
  }
  Tensor forward(const Tensor& input) {
    return vesta::group_norm(input, options.num_groups(), weight, bias, options.eps());
  }
  TORCH_LAYER_TEXT("GroupNorm", options.num_groups(), ", ", options.num_channels(), ", eps=", options.eps(),
                   ", affine=", options.affine())

  Tensor weight, bias;
};
TORCH_MODULE(GroupNorm);

}  // namespace torch::nn
