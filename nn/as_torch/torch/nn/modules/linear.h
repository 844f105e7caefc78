// Linear and bilinear maps, and layers that change shapes only.
#pragma once
#include <cmath>
#include <string>

#include <torch/nn/functional/linear.h>
#include <torch/nn/modules/common.h>
#include <torch/nn/options/linear.h>

namespace torch::nn {

TORCH_PLAIN_LAYER(Identity, detail::NoOptions, input);
TORCH_PLAIN_LAYER(Flatten, FlattenOptions, vesta::flatten(input, options.start_dim(), options.end_dim()),
                  "start_dim=", options.start_dim(), ", end_dim=", options.end_dim());

/// The layer that splits a dimension into sizes, of which one may be -1.
class UnflattenImpl : public detail::PlainLayer<UnflattenImpl, UnflattenOptions> {
 public:
  using PlainLayer::PlainLayer;
  Tensor forward(const Tensor& input) { return vesta::unflatten(input, options.dim(), options.sizes()); }
  void pretty_print(std::ostream& stream) const override {
    stream << "torch::nn::Unflatten(dim=" << options.dim() << ", unflattened_size={";
    for (size_t i = 0; i < options.sizes().size(); ++i) stream << (i ? ", " : "") << options.sizes()[i];
    stream << "})";
  }
};
TORCH_MODULE(Unflatten);

/// The map input @ weight.T + bias from [*, in_features] to [*, out_features].
class LinearImpl : public Cloneable<LinearImpl> {
 public:
  TORCH_LAYER_OPTIONS(LinearImpl, LinearOptions);
  void reset() override {
    weight = register_parameter("weight", vesta::empty({options.out_features(), options.in_features()}));
    bias =
        register_parameter("bias", options.bias() ? vesta::empty({options.out_features()}) : Tensor(), options.bias());
    reset_parameters();
  }
  /// Draws weight and bias from U(-1 / sqrt(in_features), 1 / sqrt(in_features)).
  void reset_parameters() {
    init::kaiming_uniform_(weight, std::sqrt(5.0));
    if (!bias.defined() || options.in_features() == 0) return;
    const double bound = 1 / std::sqrt(double(options.in_features()));
    init::uniform_(bias, -bound, bound);
  }
  Tensor forward(const Tensor& input) { return vesta::linear(input, weight, bias); }
  TORCH_LAYER_TEXT("Linear", "in_features=", options.in_features(), ", out_features=", options.out_features(),
                   ", bias=", options.bias())

  Tensor weight, bias;
};
TORCH_MODULE(Linear);

/// The map y_o = x1' W_o x2 + b_o from [*, in1_features] and [*, in2_features] to [*, out_features].
class BilinearImpl : public Cloneable<BilinearImpl> {
 public:
  TORCH_LAYER_OPTIONS(BilinearImpl, BilinearOptions);
  void reset() override {
    TORCH_CHECK(options.in1_features() > 0, "in1_features must be > 0, but got ", options.in1_features());
    weight = register_parameter("weight",
                                vesta::empty({options.out_features(), options.in1_features(), options.in2_features()}));
    bias =
        register_parameter("bias", options.bias() ? vesta::empty({options.out_features()}) : Tensor(), options.bias());
    reset_parameters();
  }
  void reset_parameters() {
    const double bound = 1 / std::sqrt(double(options.in1_features()));
    init::uniform_(weight, -bound, bound);
    if (bias.defined()) init::uniform_(bias, -bound, bound);
  }
  Tensor forward(const Tensor& input1, const Tensor& input2) { return vesta::bilinear(input1, input2, weight, bias); }
  TORCH_LAYER_TEXT("Bilinear", "in1_features=", options.in1_features(), ", in2_features=", options.in2_features(),
                   ", out_features=", options.out_features(), ", bias=", options.bias())

  Tensor weight, bias;
};
TORCH_MODULE(Bilinear);

}  // namespace torch::nn
