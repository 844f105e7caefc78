// Sparse tensors: the step from values to a sparse tensor, and back. Everything else is made of them.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/sparse.h>

namespace vesta::autograd::rules {
namespace {

/// Returns the elements of a gradient, dense or sparse, at some indices; its values if it is sparse with these indices.
Tensor gradient_at(const Tensor& g, const Tensor& indices) {
  if (g.is_sparse()) {
    const SparseParts& p = sparse_parts(g, "values");
    const bool alike = p.indices.impl()->data() == indices.impl()->data() && nnz(p) == indices.size(1);
    if (alike && (p.coalesced || p.layout != SparseLayout::coo)) return _sparse_values(g);
  }
  return elements_at(to_dense(g), indices);
}

/// The gradient of the values is that of the sparse tensor at its positions, whether it comes dense or sparse.
struct SparseRule {
  Saved indices;
  static SparseRule save(const Tensor&, const Tensor& indices, const Tensor&, IntList, bool, Needs) {
    return {Saved(indices)};
  }
  Grads<2> operator()(const Tensor& g, Needs) const { return {Tensor{}, gradient_at(g, indices())}; }
};

struct CompressedRule {
  Saved indices;
  static CompressedRule save(const Tensor& out, const Tensor&, const Tensor&, const Tensor&, IntList, bool, Needs) {
    return {Saved(sparse_parts(out, "values").indices)};
  }
  Grads<3> operator()(const Tensor& g, Needs) const { return {Tensor{}, Tensor{}, gradient_at(g, indices())}; }
};

/// The gradient of a sparse tensor has its layout and places.
struct SparseValuesRule {
  Saved indices, compressed, plain, first;
  SparseLayout layout = SparseLayout::coo;
  Dims sizes;
  static SparseValuesRule save(const Tensor&, const Tensor& input, Needs) {
    const SparseParts& p = sparse_parts(input, "values");
    NoGrad off;
    const bool coordinates = p.layout == SparseLayout::coo, repeats = coordinates && !p.coalesced;
    return {coordinates ? Saved(p.indices) : Saved(),
            coordinates ? Saved() : Saved(p.compressed),
            coordinates ? Saved() : Saved(p.plain),
            repeats ? Saved(first_of_place(p, input.sizes(), input.dtype())) : Saved(),
            p.layout,
            Dims(input.sizes())};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    if (layout != SparseLayout::coo) {
      return _sparse_compressed(compressed(), plain(), g, IntList(sizes), layout == SparseLayout::csr);
    }
    const bool repeats = first.defined();
    return _sparse_coo(indices(), repeats ? g * first() : g, IntList(sizes), !repeats);
  }
};

}  // namespace

void register_sparse() {
  record<ops::_sparse_coo, SparseRule>();
  record<ops::_sparse_compressed, CompressedRule>();
  record<ops::_sparse_values, SparseValuesRule>();
}

}  // namespace vesta::autograd::rules
