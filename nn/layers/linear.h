// Linear, Embedding, Flatten, Identity.
#pragma once
#include <vesta/nn/module.h>

namespace vesta::nn {

struct LinearOptions {
  int64_t in_features, out_features;
  bool bias = true;
  DType dtype = DType::float32;
};
/// The map input @ weight.T + bias from [*, in_features] to [*, out_features].
class VESTA_API Linear : public Module {
 public:
  explicit Linear(LinearOptions options);
  Linear(int64_t in_features, int64_t out_features, bool bias = true)
      : Linear(LinearOptions{in_features, out_features, bias}) {}
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "Linear"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override;
  /// Draws weight and bias from U(-1 / sqrt(in_features), 1 / sqrt(in_features)).
  void reset_parameters();
  const LinearOptions options;
  Tensor weight, bias;  // [out_features, in_features], [out_features] or undefined
};

struct EmbeddingOptions {
  int64_t num_embeddings, embedding_dim;
  MaybeInt padding_idx = {};
  DType dtype = DType::float32;
};
/// A lookup of rows of weight [num_embeddings, embedding_dim] by int64 numbers [*]; gives [*, embedding_dim].
class VESTA_API Embedding : public Module {
 public:
  explicit Embedding(EmbeddingOptions options);
  Embedding(int64_t num_embeddings, int64_t embedding_dim)
      : Embedding(EmbeddingOptions{num_embeddings, embedding_dim}) {}
  Tensor forward(const Tensor& input) override;
  std::string kind() const override { return "Embedding"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override;
  const EmbeddingOptions options;
  Tensor weight;
};

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
};
/// The module that flattens dimensions start_dim to end_dim into one.
class VESTA_API Flatten : public Module {
 public:
  explicit Flatten(FlattenOptions o = {}) : options(o) {}
  Tensor forward(const Tensor& input) override { return flatten(input, options.start_dim, options.end_dim); }
  std::string kind() const override { return "Flatten"; }
  std::string extra_repr() const override;
  std::shared_ptr<Module> clone() const override { return copy_of(*this, options); }
  const FlattenOptions options;
};

/// The module that returns its input.
class VESTA_API Identity : public Module {
 public:
  Tensor forward(const Tensor& input) override { return input; }
  std::string kind() const override { return "Identity"; }
  std::shared_ptr<Module> clone() const override { return copy_of(*this); }
};

}  // namespace vesta::nn
