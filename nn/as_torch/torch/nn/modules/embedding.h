// Tables of vectors as layers.
#pragma once
#include <torch/nn/functional/embedding.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {
namespace detail {

/// Returns the table of an embedding, given or drawn from N(0, 1), its padding row 0 if drawn.
template <class Options>
Tensor table_of(const Options& o) {
  const Tensor& given = o._weight();
  if (!given.defined()) return vesta::empty({o.num_embeddings(), o.embedding_dim()});
  TORCH_CHECK(given.dim() == 2 && given.size(0) == o.num_embeddings() && given.size(1) == o.embedding_dim(),
              "Shape of _weight does not match num_embeddings and embedding_dim");
  return given;
}
template <class Options>
void draw_table(const Tensor& weight, const Options& o) {
  init::normal_(weight);
  if (!o.padding_idx()) return;
  const vesta::NoGrad off;
  vesta::fill_(vesta::select(weight, 0, *o.padding_idx()), 0);
}
template <class Options>
void print_table(std::ostream& stream, const char* name, const Options& o) {
  stream << std::boolalpha << "torch::nn::" << name << "(num_embeddings=" << o.num_embeddings()
         << ", embedding_dim=" << o.embedding_dim();
}
template <class Options>
void print_norm(std::ostream& stream, const Options& o) {
  if (o.max_norm()) stream << ", max_norm=" << *o.max_norm();
  if (o.norm_type() != 2) stream << ", norm_type=" << o.norm_type();
  if (o.scale_grad_by_freq()) stream << ", scale_grad_by_freq=true";
  if (o.sparse()) stream << ", sparse=true";
}

}  // namespace detail

/// A lookup of rows of `weight` [num_embeddings, embedding_dim] by integers [*]; gives [*, embedding_dim].
class EmbeddingImpl : public Cloneable<EmbeddingImpl> {
 public:
  TORCH_LAYER_OPTIONS(EmbeddingImpl, EmbeddingOptions);
  void reset() override {
    if (options.padding_idx()) {
      options.padding_idx(functional::detail::padding_row(options.padding_idx(), options.num_embeddings()));
    }
    weight = register_parameter("weight", detail::table_of(options));
    if (!options._weight().defined()) reset_parameters();
  }
  void reset_parameters() { detail::draw_table(weight, options); }
  Tensor forward(const Tensor& indices) {
    return functional::embedding(indices, weight,
                                 functional::EmbeddingFuncOptions()
                                     .padding_idx(options.padding_idx())
                                     .max_norm(options.max_norm())
                                     .norm_type(options.norm_type())
                                     .scale_grad_by_freq(options.scale_grad_by_freq())
                                     .sparse(options.sparse()));
  }
  void pretty_print(std::ostream& stream) const override {
    detail::print_table(stream, "Embedding", options);
    if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
    detail::print_norm(stream, options);
    stream << ')';
  }

  Tensor weight;
};

class Embedding : public ModuleHolder<EmbeddingImpl> {
 public:
  using ModuleHolder<EmbeddingImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = EmbeddingImpl;
  /// Makes a layer with this table, which is trained unless `freeze`.
  static Embedding from_pretrained(const Tensor& embeddings, const EmbeddingFromPretrainedOptions& o = {}) {
    TORCH_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
    Embedding layer(EmbeddingOptions(embeddings.size(0), embeddings.size(1))
                        ._weight(embeddings)
                        .padding_idx(o.padding_idx())
                        .max_norm(o.max_norm())
                        .norm_type(o.norm_type())
                        .scale_grad_by_freq(o.scale_grad_by_freq())
                        .sparse(o.sparse()));
    layer->weight.set_requires_grad(!o.freeze());
    return layer;
  }
};

/// Sums, means or maxima of bags of rows of `weight`; gives [bags, embedding_dim].
class EmbeddingBagImpl : public Cloneable<EmbeddingBagImpl> {
 public:
  TORCH_LAYER_OPTIONS(EmbeddingBagImpl, EmbeddingBagOptions);
  void reset() override {
    if (options.padding_idx()) {
      options.padding_idx(functional::detail::padding_row(options.padding_idx(), options.num_embeddings()));
    }
    weight = register_parameter("weight", detail::table_of(options));
    if (!options._weight().defined()) reset_parameters();
  }
  void reset_parameters() { detail::draw_table(weight, options); }
  Tensor forward(const Tensor& input, const Tensor& offsets = {}, const Tensor& per_sample_weights = {}) {
    return functional::embedding_bag(input, weight,
                                     functional::EmbeddingBagFuncOptions()
                                         .offsets(offsets)
                                         .max_norm(options.max_norm())
                                         .norm_type(options.norm_type())
                                         .scale_grad_by_freq(options.scale_grad_by_freq())
                                         .mode(options.mode())
                                         .sparse(options.sparse())
                                         .per_sample_weights(per_sample_weights)
                                         .include_last_offset(options.include_last_offset())
                                         .padding_idx(options.padding_idx()));
  }
  void pretty_print(std::ostream& stream) const override {
    detail::print_table(stream, "EmbeddingBag", options);
    detail::print_norm(stream, options);
    if (!std::holds_alternative<enumtype::kMean>(options.mode())) {
      stream << ", mode=" << enumtype::get_enum_name(options.mode());
    }
    if (options.include_last_offset()) stream << ", include_last_offset=true";
    if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
    stream << ')';
  }

  Tensor weight;
};

class EmbeddingBag : public ModuleHolder<EmbeddingBagImpl> {
 public:
  using ModuleHolder<EmbeddingBagImpl>::ModuleHolder;
  using Impl [[maybe_unused]] = EmbeddingBagImpl;
  /// Makes a layer with this table, which is trained unless `freeze`.
  static EmbeddingBag from_pretrained(const Tensor& embeddings, const EmbeddingBagFromPretrainedOptions& o = {}) {
    TORCH_CHECK(embeddings.dim() == 2, "Embeddings parameter is expected to be 2-dimensional");
    EmbeddingBag layer(EmbeddingBagOptions(embeddings.size(0), embeddings.size(1))
                           ._weight(embeddings)
                           .max_norm(o.max_norm())
                           .norm_type(o.norm_type())
                           .scale_grad_by_freq(o.scale_grad_by_freq())
                           .mode(o.mode())
                           .sparse(o.sparse())
                           .include_last_offset(o.include_last_offset())
                           .padding_idx(o.padding_idx()));
    layer->weight.set_requires_grad(!o.freeze());
    return layer;
  }
};

}  // namespace torch::nn
