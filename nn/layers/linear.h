// Linear and bilinear maps, tables, distances, and layers that change shapes only.
#pragma once
#include <optional>

#include <vesta/core/ops/distance.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/nn/layer.h>

namespace vesta::nn {

struct LinearOptions {
  static constexpr size_t required = 2;
  int64_t in_features, out_features;
  bool bias = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(in_features, out_features, bias)
};
/// The map input @ weight.T + bias from [*, in_features] to [*, out_features].
class VESTA_API Linear : public LayerOf<Linear, LinearOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(Linear)
  Tensor forward(const Tensor& input) override { return linear(input, weight, bias); }
  /// Runs this layer and the activation behind it as one op; empty where that is no gain (not on CUDA), or where
  /// something sees what lies between: hooks, a class that derives from either, anomaly mode.
  std::optional<Tensor> forward_with(const Module& activation, const Tensor& input);
  /// Draws weight and bias from U(-1 / sqrt(in_features), 1 / sqrt(in_features)).
  void reset_parameters();
  Tensor weight, bias;  // [out_features, in_features], [out_features] or undefined
};

/// A Linear under the name that the output map of attention has in Python.
class VESTA_API NonDynamicallyQuantizableLinear : public Linear {
 public:
  using Linear::Linear;
  std::shared_ptr<Module> clone() const override { return copy_of(*this, options); }
};

struct BilinearOptions {
  static constexpr size_t required = 3;
  int64_t in1_features, in2_features, out_features;
  bool bias = true;
  DType dtype = DType::float32;
  VESTA_FIELDS(in1_features, in2_features, out_features, bias)
};
/// The map y_o = x1' W_o x2 + b_o from [*, in1_features] and [*, in2_features] to [*, out_features].
class VESTA_API Bilinear : public LayerOf<Bilinear, BilinearOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(Bilinear)
  Tensor forward(const Tensor& input1, const Tensor& input2) { return bilinear(input1, input2, weight, bias); }
  /// Draws weight and bias from U(-1 / sqrt(in1_features), 1 / sqrt(in1_features)).
  void reset_parameters();
  Tensor weight, bias;  // [out_features, in1_features, in2_features], [out_features] or undefined
};

struct EmbeddingOptions {
  static constexpr size_t required = 2;
  int64_t num_embeddings, embedding_dim;
  MaybeInt padding_idx = {};
  bool sparse = false;  // gives the weight a sparse gradient
  DType dtype = DType::float32;
  VESTA_FIELDS(num_embeddings, embedding_dim, padding_idx, sparse)
  static constexpr std::string_view shown =
      "{num_embeddings}, {embedding_dim}[, padding_idx={padding_idx}][, sparse={sparse}]";
};
/// A lookup of rows of weight [num_embeddings, embedding_dim] by integers [*]; gives [*, embedding_dim].
class VESTA_API Embedding : public LayerOf<Embedding, EmbeddingOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(Embedding)
  Tensor forward(const Tensor& input) override;
  /// Draws the table from N(0, 1); the row padding_idx becomes 0.
  void reset_parameters();
  Tensor weight;
};

struct EmbeddingBagOptions {
  static constexpr size_t required = 2;
  int64_t num_embeddings, embedding_dim;
  bool scale_grad_by_freq = false;
  std::string mode = "mean";  // "sum", "mean" or "max"
  bool sparse = false, include_last_offset = false;
  MaybeInt padding_idx = {};
  DType dtype = DType::float32;
  VESTA_FIELDS(num_embeddings, embedding_dim, scale_grad_by_freq, mode, sparse, include_last_offset, padding_idx)
  static constexpr std::string_view shown =
      "{num_embeddings}, {embedding_dim}[, scale_grad_by_freq={scale_grad_by_freq}], mode={*mode}"
      "[, padding_idx={padding_idx}]";
};
/// Sums, means or maxima of bags of rows of weight [num_embeddings, embedding_dim]; gives [bags, embedding_dim].
class VESTA_API EmbeddingBag : public LayerOf<EmbeddingBag, EmbeddingBagOptions> {
 public:
  VESTA_LAYER_CONSTRUCTORS(EmbeddingBag)
  /// Takes numbers of rows: [bags, n], or [n] with the offsets [bags] where the bags begin; per_sample_weights are of
  /// the input's shape, for sums.
  Tensor forward(const Tensor& input, MaybeTensor offsets = {}, MaybeTensor per_sample_weights = {});
  /// Draws the table from N(0, 1); the row padding_idx becomes 0.
  void reset_parameters();
  Tensor weight;
};

struct FlattenOptions {
  int64_t start_dim = 1, end_dim = -1;
  VESTA_FIELDS(start_dim, end_dim)
};
/// The module that merges dimensions start_dim to end_dim into one.
struct VESTA_API Flatten : LayerOf<Flatten, FlattenOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

struct UnflattenOptions {
  static constexpr size_t required = 2;
  int64_t dim;
  Shape unflattened_size;
  VESTA_FIELDS(dim, unflattened_size)
};
/// The module that splits dimension dim into sizes, of which one may be -1.
struct VESTA_API Unflatten : LayerOf<Unflatten, UnflattenOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& input) override;
};

/// The module that returns its input.
struct VESTA_API Identity : LayerOf<Identity> {
  Tensor forward(const Tensor& input) override { return input; }
};

struct PairwiseDistanceOptions {
  double p = 2, eps = 1e-6;
  bool keepdim = false;
  VESTA_FIELDS(p, eps, keepdim)
  static constexpr std::string_view shown = "";
};
/// The p-norm of x1 - x2 + eps along the last dimension.
struct VESTA_API PairwiseDistance : LayerOf<PairwiseDistance, PairwiseDistanceOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& x1, const Tensor& x2) {
    return pairwise_distance(x1, x2, options.p, options.eps, options.keepdim);
  }
};

struct CosineSimilarityOptions {
  int64_t dim = 1;
  double eps = 1e-8;
  VESTA_FIELDS(dim, eps)
  static constexpr std::string_view shown = "";
};
/// x1 . x2 / (|x1| * |x2|) along dim; each norm is at least eps.
struct VESTA_API CosineSimilarity : LayerOf<CosineSimilarity, CosineSimilarityOptions> {
  using LayerOf::LayerOf;
  Tensor forward(const Tensor& x1, const Tensor& x2) { return cosine_similarity(x1, x2, options.dim, options.eps); }
};

}  // namespace vesta::nn
