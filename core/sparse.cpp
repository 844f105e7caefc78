#include <vesta/core/sparse.h>

namespace vesta {

Tensor make_sparse(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  intrusive_ptr<SparseParts> parts(new SparseParts);
  parts->indices = indices, parts->values = values;
  parts->coalesced = coalesced || indices.size(1) < 2;
  return Tensor(TensorImpl::make_sparse(std::move(parts), Storage::allocate(0, values.device()), sizes, values.dtype(),
                                        "sparse_coo_tensor"));
}

const SparseParts& sparse_parts(const Tensor& t, const char* op) {
  VESTA_CHECK(t.is_sparse(), runtime, op, ": expected a sparse tensor, got a dense one. Convert it with .to_sparse().");
  return *t.impl()->sparse_parts;
}

void set_sparse_parts(const Tensor& t, const Tensor& indices, const Tensor& values, bool coalesced, const char* op) {
  sparse_parts(t, op);  // raises for a dense tensor
  SparseParts& parts = *t.impl()->sparse_parts;
  parts.indices = indices, parts.values = values;
  parts.coalesced = coalesced || indices.size(1) < 2;
  t.impl()->bump(op);
}

}  // namespace vesta
