// Sparse tensors: the step from values to a sparse tensor, and back. Everything else is made of them.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/ops.h>

namespace vesta::autograd::rules {
namespace {

/// The gradient of the values is that of the sparse tensor at its places, whether it comes dense or sparse.
struct SparseRule {
  Saved indices;
  static SparseRule save(const Tensor&, const Tensor& indices, const Tensor&, IntList, bool, Needs) {
    return {Saved(indices)};
  }
  Grads<2> operator()(const Tensor& g, Needs) const { return {Tensor{}, elements_at(to_dense(g), indices())}; }
};

struct SparseValuesRule {
  Saved indices;
  Dims sizes;
  bool is_coalesced = false;
  static SparseValuesRule save(const Tensor&, const Tensor& input, Needs) {
    const SparseParts& p = sparse_parts(input, "values");
    return {Saved(p.indices), Dims(input.sizes()), p.coalesced};
  }
  Tensor operator()(const Tensor& g, Needs) const { return _sparse_coo(indices(), g, IntList(sizes), is_coalesced); }
};

}  // namespace

void register_sparse() {
  record<ops::_sparse_coo, SparseRule>();
  record<ops::_sparse_values, SparseValuesRule>();
}

}  // namespace vesta::autograd::rules
