#include <vesta/core/sparse.h>

namespace vesta {

Tensor make_sparse(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  intrusive_ptr<SparseParts> parts(new SparseParts);
  parts->indices = indices, parts->values = values;
  parts->coalesced = coalesced || indices.size(1) < 2;
  return Tensor(TensorImpl::make_sparse(std::move(parts), Storage::allocate(0, values.device()), sizes, values.dtype(),
                                        "sparse_coo_tensor"));
}

Tensor make_compressed(SparseLayout layout, const Tensor& compressed, const Tensor& plain, const Tensor& indices,
                       const Tensor& values, IntSpan sizes) {
  Tensor t = make_sparse(indices, values, sizes, layout == SparseLayout::csr);
  SparseParts& parts = *t.impl()->sparse_parts;
  parts.layout = layout, parts.compressed = compressed, parts.plain = plain;
  return t;
}

Tensor make_sparse_like(const SparseParts& p, const Tensor& values, IntSpan sizes) {
  if (p.layout == SparseLayout::coo) return make_sparse(p.indices, values, sizes, p.coalesced);
  return make_compressed(p.layout, p.compressed, p.plain, p.indices, values, sizes);
}

const SparseParts& sparse_parts(const Tensor& t, const char* op) {
  VESTA_CHECK(t.is_sparse(), runtime, op, ": expected a sparse tensor, got a dense one. Convert it with .to_sparse().");
  return *t.impl()->sparse_parts;
}

void set_sparse_parts(const Tensor& t, const SparseParts& from, const char* op) {
  VESTA_CHECK(sparse_parts(t, op).layout == from.layout, runtime, op,
              ": expected sparse tensors of one layout, got two. Convert one with .to_sparse(layout=...).");
  SparseParts& parts = *t.impl()->sparse_parts;
  parts.indices = from.indices, parts.values = from.values, parts.coalesced = from.coalesced;
  parts.compressed = from.compressed, parts.plain = from.plain;
  t.impl()->bump(op);
}

}  // namespace vesta
