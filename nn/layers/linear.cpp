#include <vesta/nn/layers/linear.h>

#include <cmath>

#include <vesta/nn/functional.h>
#include <vesta/nn/init.h>
#include <vesta/nn/python_repr.h>

namespace vesta::nn {

Linear::Linear(LinearOptions o) : options(o) {
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

Tensor Linear::forward(const Tensor& input) { return vesta::linear(input, weight, bias); }

std::string Linear::extra_repr() const {
  return text("in_features=", options.in_features, ", out_features=", options.out_features,
              ", bias=", python_repr(options.bias));
}

std::shared_ptr<Module> Linear::clone() const { return copy_of(*this, options); }

Embedding::Embedding(EmbeddingOptions o)
    : options([&] {
        if (!o.padding_idx) return o;
        VESTA_CHECK(*o.padding_idx >= -o.num_embeddings && *o.padding_idx < o.num_embeddings, value,
                    "Embedding: Padding_idx must be within num_embeddings, got ", *o.padding_idx, ".");
        if (*o.padding_idx < 0) *o.padding_idx += o.num_embeddings;
        return o;
      }()) {
  weight = register_parameter("weight", empty({o.num_embeddings, o.embedding_dim}, o.dtype));
  init::normal_(weight);
  if (options.padding_idx) {
    NoGrad off;
    weight.select(0, *options.padding_idx).fill_(0);
  }
}

Tensor Embedding::forward(const Tensor& input) { return functional::embedding(input, weight, options.padding_idx); }

std::string Embedding::extra_repr() const {
  std::string s = text(options.num_embeddings, ", ", options.embedding_dim);
  return options.padding_idx ? s + text(", padding_idx=", *options.padding_idx) : s;
}

std::shared_ptr<Module> Embedding::clone() const { return copy_of(*this, options); }

std::string Flatten::extra_repr() const { return text("start_dim=", options.start_dim, ", end_dim=", options.end_dim); }

Tensor functional::embedding(const Tensor& input, const Tensor& weight, MaybeInt padding_idx) {
  if (padding_idx) {
    int64_t rows = weight.size(0);
    VESTA_CHECK(*padding_idx >= -rows && *padding_idx < rows, value,
                "embedding: Padding_idx must be within num_embeddings, got ", *padding_idx, ".");
    if (*padding_idx < 0) padding_idx = *padding_idx + rows;
  }
  return vesta::embedding(weight, input, padding_idx.value_or(-1));
}

}  // namespace vesta::nn
