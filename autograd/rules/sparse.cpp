// Sparse tensors: the step from values to a sparse tensor, and back. Everything else is made of them.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/sparse.h>

namespace vesta::autograd::rules {
namespace {

/// The gradient of the values is that of the sparse tensor at its positions, whether it comes dense or sparse.
struct SparseRule {
  Saved indices;
  static SparseRule save(const Tensor&, const Tensor& indices, const Tensor&, IntList, bool, Needs) {
    return {Saved(indices)};
  }
  Grads<2> operator()(const Tensor& g, Needs) const { return {Tensor{}, elements_at(to_dense(g), indices())}; }
};

struct SparseValuesRule {
  Saved indices, first;
  Dims sizes;
  static SparseValuesRule save(const Tensor&, const Tensor& input, Needs) {
    const SparseParts& p = sparse_parts(input, "values");
    NoGrad off;
    return {Saved(p.indices), p.coalesced ? Saved() : Saved(first_of_place(p, input.sizes(), input.dtype())),
            Dims(input.sizes())};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    const bool repeats = first.defined();
    return _sparse_coo(indices(), repeats ? g * first() : g, IntList(sizes), !repeats);
  }
};

}  // namespace

void register_sparse() {
  record<ops::_sparse_coo, SparseRule>();
  record<ops::_sparse_values, SparseValuesRule>();
}

}  // namespace vesta::autograd::rules
