#include <vesta/nn/layers/linear.h>

#include <cmath>

#include <vesta/nn/functional.h>
#include <vesta/nn/init.h>

namespace vesta::nn {

Linear::Linear(Options o) : LayerOf(o) {
  VESTA_CHECK(o.in_features >= 0 && o.out_features >= 0, value, "Linear: expected sizes >= 0, got in_features ",
              o.in_features, " and out_features ", o.out_features, ".");
  weight = register_parameter("weight", empty({o.out_features, o.in_features}, o.dtype));
  bias = register_parameter("bias", o.bias ? empty({o.out_features}, o.dtype) : Tensor());
  reset_parameters();
}

void Linear::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  double bound = options.in_features > 0 ? 1 / std::sqrt(double(options.in_features)) : 0;
  init::uniform_(bias, 0 - bound, bound);  // -bound would be -0.0 for no features; Python has 0
}

Bilinear::Bilinear(Options o) : LayerOf(o) {
  VESTA_CHECK(o.in1_features > 0, value, "Bilinear: in1_features must be > 0, but got ", o.in1_features, ".");
  VESTA_CHECK(o.in2_features >= 0 && o.out_features >= 0, value, "Bilinear: expected sizes >= 0, got in2_features ",
              o.in2_features, " and out_features ", o.out_features, ".");
  weight = register_parameter("weight", empty({o.out_features, o.in1_features, o.in2_features}, o.dtype));
  bias = register_parameter("bias", o.bias ? empty({o.out_features}, o.dtype) : Tensor());
  reset_parameters();
}

void Bilinear::reset_parameters() {
  const double bound = 1 / std::sqrt(double(options.in1_features));
  init::uniform_(weight, -bound, bound);
  if (bias.defined()) init::uniform_(bias, -bound, bound);
}

namespace {
/// Counts padding_idx from the start.
EmbeddingOptions normalized(EmbeddingOptions o) {
  VESTA_CHECK(o.num_embeddings >= 0 && o.embedding_dim >= 0, value, "Embedding: expected sizes >= 0, got ",
              o.num_embeddings, " and ", o.embedding_dim, " (num_embeddings, embedding_dim).");
  if (!o.padding_idx) return o;
  VESTA_CHECK(*o.padding_idx >= -o.num_embeddings && *o.padding_idx < o.num_embeddings, value,
              "Embedding: Padding_idx must be within num_embeddings, got ", *o.padding_idx, ".");
  if (*o.padding_idx < 0) *o.padding_idx += o.num_embeddings;
  return o;
}
}  // namespace

Embedding::Embedding(Options o) : LayerOf(normalized(o)) {
  weight = register_parameter("weight", empty({o.num_embeddings, o.embedding_dim}, o.dtype));
  reset_parameters();
}

void Embedding::reset_parameters() {
  init::normal_(weight);
  if (!options.padding_idx) return;
  NoGrad off;
  weight.select(0, *options.padding_idx).fill_(0);
}

Tensor Embedding::forward(const Tensor& input) {
  return functional::embedding(input, weight, options.padding_idx, options.sparse);
}

Tensor functional::embedding(const Tensor& input, const Tensor& weight, MaybeInt padding_idx, bool sparse) {
  if (padding_idx) {
    int64_t rows = weight.size(0);
    VESTA_CHECK(*padding_idx >= -rows && *padding_idx < rows, value,
                "embedding: Padding_idx must be within num_embeddings, got ", *padding_idx, ".");
    if (*padding_idx < 0) padding_idx = *padding_idx + rows;
  }
  return vesta::embedding(weight, input, padding_idx.value_or(-1), false, sparse);
}

}  // namespace vesta::nn
