// Indexing: reading from positions has writing to those positions as its gradient, and the other way round.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/dense_gradient.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/sparse.h>
#include <vesta/core/ops/view.h>

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
    index_put_(r, unpack(indices), g, true);
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
      self = clone(g);
      index_put_(self, at, zeros({}, g.dtype(), g.device()), false);
    }
    return {self, needs[1] ? _index(g, at) : Tensor{}};
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
    const Tensor dense = dense_gradient(g);
    Tensor r = blank(sizes, dense);
    index_add_(r, dim, index(), dense);
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
      from = reshape(index_select(g, dim, index()), source);
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
    if (needs[0]) self = index_fill(g, dim, at, 0);
    if (needs[2]) {  // a position counts once, however many indices name it
      const Tensor filled = index_fill_(zeros(Dims(g.sizes()), DType::bool_, g.device()), dim, at, true);
      value = sum(where(filled, g, wrapped(0.0))).to(home);
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
      scatter_add_(list, 0, reshape(places, {-1}), reshape(g, {-1}));
      return reshape(list, sizes);
    }
    Tensor r = blank(sizes, g);
    scatter_add_(r, dim, places, g);
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
      from = gather(g, dim, at);
      if (!std::ranges::equal(at.sizes(), IntSpan(source))) {  // only the corner that the index covers was read
        Tensor all = blank(source, g), corner = all;
        for (int64_t d = 0; d < at.dim(); ++d) corner = slice(corner, d, 0, at.size(d));
        copy_(corner, from);
        from = all;
      }
    }
    return {needs[0] ? g : Tensor{}, Tensor{}, from};
  }
};

// What was there loses its gradient, what was written has that of its position (each of several equal ones has it).
struct ScatterRule {
  int64_t dim = 0;
  Saved index;
  Dims source;
  static ScatterRule save(const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& src, Needs) {
    return {dim, Saved(index), Dims(src.sizes())};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    const Tensor at = index();
    const Tensor self = needs[0] ? scatter(g, dim, at, wrapped(int64_t(0))) : Tensor{};
    if (!needs[2]) return {self, Tensor{}, Tensor{}};
    return {self, Tensor{}, ScatterAddRule{dim, Saved(at), source}(g, needs)[2]};
  }
};

// Products: the result without the element, as in cumprod's rule; extrema: all that are equal share the gradient.
struct ScatterReduceRule {
  int64_t dim = 0;
  Saved x, index, src, y;
  bool product = false, include_self = true;
  static ScatterReduceRule save(const Tensor& y, const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src,
                                Text reduce, bool include_self, Needs) {
    return {dim, Saved(x), Saved(index), Saved(src), Saved::result(y), reduce == "prod", include_self};
  }
  Grads<3> operator()(const Tensor& g, Needs) const {
    const Tensor at = index(), input = x(), result = y();
    Tensor from = src(), self, source;
    const bool corner = !std::ranges::equal(at.sizes(), from.sizes());
    for (int64_t d = 0; d < at.dim() && corner; ++d) from = slice(from, d, 0, at.size(d));
    if (product) {
      const Tensor zero = input == 0, ones = wrapped(1.0);
      const Tensor filled = where(zero, ones, input);
      const Tensor others = _scatter_reduce(filled, dim, at, from, "prod", include_self);
      self = where(zero, g * others, g * result / filled);
      const Tensor from_zero = from == 0, count = scatter_add(zeros(Dims(input.sizes()), g.dtype(), g.device()), dim,
                                                              at, from_zero.to(g.dtype()));
      const Tensor only = logical_and(from_zero, gather(count, dim, at) == 1);
      const Tensor without = _scatter_reduce(input, dim, at, where(only, ones, from), "prod", include_self);
      source = where(only, gather(g * without, dim, at), gather(g * result, dim, at) / where(from_zero, ones, from));
      source = where(logical_and(from_zero, logical_not(only)), wrapped(0.0), source);
    } else {
      const Tensor own = (input == result).to(g.dtype()), theirs = (from == gather(result, dim, at)).to(g.dtype());
      const Tensor kept = include_self ? own : scatter(own, dim, at, wrapped(int64_t(0)));
      const Tensor count = scatter_add(kept, dim, at, theirs);
      const Tensor share = g / where(count == 0, wrapped(1.0), count);
      self = kept * share;
      source = theirs * gather(share, dim, at);
    }
    if (!include_self) self = scatter(self, dim, at, wrapped(int64_t(0)));
    if (corner) {
      Tensor all = blank(Dims(src().sizes()), g), part = all;
      for (int64_t d = 0; d < at.dim(); ++d) part = slice(part, d, 0, at.size(d));
      copy_(part, source);
      source = all;
    }
    return {self, Tensor{}, source};
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
    const Tensor dense = dense_gradient(g);
    for (size_t i = 0; i < lengths.size(); ++i) {
      if (needs[i] && lengths[i] >= 0) r[i] = slice(dense, dim, at, at + lengths[i]);
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
  bool by_frequency = false, sparse = false;
  static EmbeddingRule save(const Tensor&, const Tensor& weight, const Tensor& indices, int64_t padding_idx,
                            bool scale_grad_by_freq, bool sparse, Needs) {
    return {Dims(weight.sizes()), Saved(indices), padding_idx, scale_grad_by_freq, sparse};
  }
  Tensor operator()(const Tensor& given, Needs) const {
    const Tensor g = by_frequency ? mul(given, shares(given)) : given;
    if (sparse) return of_rows(g);
    Tensor r = blank(sizes, g);
    index_add_(r, 0, reshape(indices(), -1), reshape(g, {-1, sizes[1]}));
    if (padding_idx >= 0) fill_(select(r, 0, padding_idx), 0);
    return r;
  }
  /// Returns one over how often each index occurs, of the gradient's dtype.
  Tensor shares(const Tensor& g) const {
    const Tensor at = reshape(indices(), -1).to(DType::int64);
    const Tensor counts = zeros(IntList{sizes[0]}, DType::int64, g.device());
    index_add_(counts, 0, at, ones_like(at));
    Dims shape(indices().sizes());
    shape.push_back(1);
    return reshape(reciprocal(index_select(counts, 0, at).to(DType::float64)).to(g.dtype()), shape);
  }
  /// The gradient as a sparse tensor of rows, one per index.
  Tensor of_rows(const Tensor& g) const {
    Tensor at = reshape(indices(), -1).to(DType::int64), rows = reshape(g, {-1, sizes[1]});
    if (padding_idx >= 0) {
      const Tensor kept = reshape(nonzero(at != wrapped(padding_idx)), -1);
      at = index_select(at, 0, kept), rows = index_select(rows, 0, kept);
    }
    return _sparse_coo(unsqueeze(at, 0), rows, IntList(sizes), false);
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
  record_inplace<ops::scatter_, ScatterRule>();
  record<ops::_scatter_reduce, ScatterReduceRule>();
  record<ops::cat, CatRule>();
  record<ops::embedding, EmbeddingRule>();
}

}  // namespace vesta::autograd::rules
