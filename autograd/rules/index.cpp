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

// What was there loses its gradient, what was written has that of its place (of equal places, each has all of it).
struct ScatterRule {
  int64_t dim = 0;
  Saved index;
  Dims source;
  static ScatterRule save(const Tensor&, const Tensor&, int64_t dim, const Tensor& index, const Tensor& src, Needs) {
    return {dim, Saved(index), Dims(src.sizes())};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    const Tensor at = index();
    const Tensor self = needs[0] ? g.scatter(dim, at, wrapped(int64_t(0))) : Tensor{};
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
    for (int64_t d = 0; d < at.dim() && corner; ++d) from = from.slice(d, 0, at.size(d));
    if (product) {
      const Tensor zero = input == 0, ones = wrapped(1.0);
      const Tensor filled = where(zero, ones, input);
      const Tensor others = _scatter_reduce(filled, dim, at, from, "prod", include_self);
      self = where(zero, g * others, g * result / filled);
      const Tensor from_zero = from == 0,
                   count =
                       zeros(Dims(input.sizes()), g.dtype(), g.device()).scatter_add(dim, at, from_zero.to(g.dtype()));
      const Tensor only = logical_and(from_zero, count.gather(dim, at) == 1);
      const Tensor without = _scatter_reduce(input, dim, at, where(only, ones, from), "prod", include_self);
      source = where(only, (g * without).gather(dim, at), (g * result).gather(dim, at) / where(from_zero, ones, from));
      source = where(logical_and(from_zero, logical_not(only)), wrapped(0.0), source);
    } else {
      const Tensor own = (input == result).to(g.dtype()), theirs = (from == result.gather(dim, at)).to(g.dtype());
      const Tensor kept = include_self ? own : own.scatter(dim, at, wrapped(int64_t(0)));
      const Tensor count = kept.scatter_add(dim, at, theirs);
      const Tensor share = g / where(count == 0, wrapped(1.0), count);
      self = kept * share;
      source = theirs * share.gather(dim, at);
    }
    if (!include_self) self = self.scatter(dim, at, wrapped(int64_t(0)));
    if (corner) {
      Tensor all = blank(Dims(src().sizes()), g), part = all;
      for (int64_t d = 0; d < at.dim(); ++d) part = part.slice(d, 0, at.size(d));
      part.copy_(source);
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
  bool sparse = false;
  static EmbeddingRule save(const Tensor&, const Tensor& weight, const Tensor& indices, int64_t padding_idx, bool,
                            bool sparse, Needs) {
    return {Dims(weight.sizes()), Saved(indices), padding_idx, sparse};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    if (sparse) return of_rows(g);
    Tensor r = blank(sizes, g);
    r.index_add_(0, indices().reshape(-1), g.reshape({-1, sizes[1]}));
    if (padding_idx >= 0) r.select(0, padding_idx).fill_(0);
    return r;
  }
  /// The gradient as a sparse tensor of rows, one per index.
  Tensor of_rows(const Tensor& g) const {
    Tensor at = indices().reshape(-1).to(DType::int64), rows = g.reshape({-1, sizes[1]});
    if (padding_idx >= 0) {
      const Tensor kept = (at != wrapped(padding_idx)).nonzero().reshape(-1);
      at = at.index_select(0, kept), rows = rows.index_select(0, kept);
    }
    return _sparse_coo(at.unsqueeze(0), rows, IntList(sizes), false);
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
