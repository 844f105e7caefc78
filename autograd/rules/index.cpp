// Indexing: reading from places has writing to those places as its gradient, and the other way round.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/ops.h>

namespace vesta::autograd::rules {
namespace {

using SavedList = std::vector<Saved>;

SavedList save_all(TensorList l) {
  SavedList r;
  for (const Tensor& t : l) r.push_back(Saved(t));
  return r;
}
std::vector<Tensor> unpack(const SavedList& l) {
  std::vector<Tensor> r;
  for (const Saved& s : l) r.push_back(s());
  return r;
}

/// Returns zeros of `sizes` like g.
Tensor blank(const Dims& sizes, const Tensor& g) { return zeros(sizes, g.dtype(), g.device()); }

struct IndexRule {
  Dims sizes;
  SavedList indices;
  static IndexRule save(const Tensor&, const Tensor& x, TensorList indices, Needs) {
    return {Dims(x.sizes()), save_all(indices)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    Tensor r = blank(sizes, g);
    r.index_put_(unpack(indices), g, true);
    return r;
  }
};

struct IndexPutRule {
  SavedList indices;
  bool accumulate = false;
  static IndexPutRule save(const Tensor&, const Tensor&, TensorList indices, const Tensor&, bool accumulate, Needs) {
    return {save_all(indices), accumulate};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    std::vector<Tensor> at = unpack(indices);
    Tensor self;
    if (needs[0] && accumulate) {
      self = g;
    } else if (needs[0]) {
      self = g.clone();
      self.index_put_(at, zeros({}, g.dtype(), g.device()), false);
    }
    return {self, needs[1] ? g._index(at) : Tensor{}};
  }
};

struct IndexSelectRule {
  Dims sizes;
  int64_t dim = 0;
  Saved index;
  static IndexSelectRule save(const Tensor&, const Tensor& x, int64_t dim, const Tensor& index, Needs) {
    return {Dims(x.sizes()), dim, Saved(index)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    Tensor r = blank(sizes, g);
    r.index_add_(dim, index(), g);
    return r;
  }
};

struct FlipRule {
  Dims dims;
  static FlipRule save(const Tensor&, const Tensor&, IntList dims, Needs) { return {Dims(dims)}; }
  Tensor operator()(const Tensor& g, Needs) const { return flip(g, dims); }
};

struct IndexAddRule {
  int64_t dim = 0;
  Saved index;
  double alpha = 1;
  Dims source;
  static IndexAddRule save(const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& source,
                           double alpha, Needs) {
    return {dim, Saved(index), alpha, Dims(source.sizes())};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    Tensor from;
    if (needs[2]) {
      from = g.index_select(dim, index()).reshape(source);
      if (alpha != 1) from = from * Scalar(alpha);
    }
    return {needs[0] ? g : Tensor{}, Tensor{}, from};
  }
};

struct IndexFillRule {
  int64_t dim = 0;
  Saved index;
  Device home;  // of the value
  static IndexFillRule save(const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& value,
                            Needs) {
    return {dim, Saved(index), value.device()};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    const Tensor at = index();
    Tensor self, value;
    if (needs[0]) self = g.index_fill(dim, at, 0);
    if (needs[2]) {  // a place counts once, however many indices name it
      const Tensor filled = zeros(Dims(g.sizes()), DType::bool_, g.device()).index_fill_(dim, at, true);
      value = where(filled, g, wrapped(0.0)).sum().to(home);
    }
    return {self, Tensor{}, value};
  }
};

struct GatherRule {
  Dims sizes;
  int64_t dim = 0;
  Saved index;
  static GatherRule save(const Tensor&, const Tensor& x, int64_t dim, const Tensor& index, bool, Needs) {
    return {Dims(x.sizes()), dim, Saved(index)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    const Tensor places = index();
    if (places.numel() != 0 && size_t(places.dim()) != sizes.size()) {  // no dimension beside one: both are lists
      Tensor list = blank(sizes.empty() ? Dims{1} : sizes, g);
      list.scatter_add_(0, places.reshape({-1}), g.reshape({-1}));
      return list.reshape(sizes);
    }
    Tensor r = blank(sizes, g);
    r.scatter_add_(dim, places, g);
    return r;
  }
};

struct ScatterAddRule {
  int64_t dim = 0;
  Saved index;
  Dims source;
  static ScatterAddRule save(const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& src, Needs) {
    return {dim, Saved(index), Dims(src.sizes())};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    Tensor from;
    if (needs[2]) {
      Tensor at = index();
      from = g.gather(dim, at);
      if (!std::ranges::equal(at.sizes(), IntSpan(source))) {  // only the corner that the index covers was read
        Tensor all = blank(source, g), corner = all;
        for (int64_t d = 0; d < at.dim(); ++d) corner = corner.slice(d, 0, at.size(d));
        corner.copy_(from);
        from = all;
      }
    }
    return {needs[0] ? g : Tensor{}, Tensor{}, from};
  }
};

struct CatRule {
  int64_t dim = 0;
  Dims lengths;  // along dim; 0 where the tensor is the empty one-dimensional kind that cat passes over
  static constexpr bool lists = true;
  static CatRule save(const Tensor& y, TensorList tensors, int64_t dim, Needs) {
    CatRule r{wrap_dim(dim, y.dim(), "cat"), {}};
    for (const Tensor& t : tensors) r.lengths.push_back(t.dim() == y.dim() ? t.size(r.dim) : -1);
    return r;
  }
  GradList operator()(const Tensor& g, Needs needs) const {
    GradList r(lengths.size());
    int64_t at = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (needs[i] && lengths[i] >= 0) r[i] = g.slice(dim, at, at + lengths[i]);
      else if (needs[i]) r[i] = zeros(0, g.dtype(), g.device());
      at += std::max<int64_t>(lengths[i], 0);
    }
    return r;
  }
};

struct EmbeddingRule {
  Dims sizes;
  Saved indices;
  int64_t padding_idx = -1;
  static EmbeddingRule save(const Tensor&, const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool, bool,
                            Needs) {
    return {Dims(weight.sizes()), Saved(indices), padding_idx};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    Tensor r = blank(sizes, g);
    r.index_add_(0, indices().reshape(-1), g.reshape({-1, sizes[1]}));
    if (padding_idx >= 0) r.select(0, padding_idx).fill_(0);
    return r;
  }
};

}  // namespace

void register_index() {
  record<ops::_index, IndexRule>();
  record_inplace<ops::index_put_, IndexPutRule>();
  record<ops::index_select, IndexSelectRule>();
  record<ops::flip, FlipRule>();
  record_inplace<ops::index_add_, IndexAddRule>();
  record_inplace<ops::index_fill_, IndexFillRule>();
  record<ops::gather, GatherRule>();
  record_inplace<ops::scatter_add_, ScatterAddRule>();
  record<ops::cat, CatRule>();
  record<ops::embedding, EmbeddingRule>();
}

}  // namespace vesta::autograd::rules
