// Sparse tensors in coordinates.
#pragma once
#include <torch/exceptions.h>
#include <torch/factories.h>

#include <algorithm>
#include <vector>

#include <vesta/core/ops/sparse.h>
#include <vesta/core/sparse.h>

namespace torch {

/// Makes a sparse tensor of sizes `size`: column k of `indices` says where values[k] stands. A place may occur more
/// than once; its values add up. Error: an index is out of range, or sizes do not fit.
inline Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, IntArrayRef size,
                                const TensorOptions& o = {}, optional<bool> is_coalesced = {}) {
  TORCH_CHECK(indices.defined() && values.defined(), "sparse_coo_tensor: expected defined tensors.");
  TORCH_CHECK(!indices.is_floating_point() && !indices.is_complex(),
              "sparse_coo_tensor: indices must be integers, got ", indices.dtype());
  TORCH_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  Tensor own = values.to(o.device_opt().value_or(values.device()), o.dtype_opt().value_or(values.dtype()));
  if (own.dim() == 0) own = own.expand({indices.size(1)});
  const int64_t sparse = indices.size(0), count = indices.size(1);
  TORCH_CHECK(own.size(0) == count, "sparse_coo_tensor: expected as many values as indices, got ", own.size(0), " and ",
              count);
  TORCH_CHECK(sparse + own.dim() - 1 == int64_t(size.size()), "number of dimensions must be sparse_dim (", sparse,
              ") + dense_dim (", own.dim() - 1, "), but got ", size.size());
  for (size_t d = 0; d < size.size(); ++d) {
    TORCH_CHECK(size[d] >= 0 && (d < size_t(sparse) || size[d] == own.size(int64_t(d) - sparse + 1)),
                "sparse_coo_tensor: values of sizes ", own.sizes(), " do not fit a tensor of sizes ", size);
  }
  const Tensor where = indices.to(own.device(), kLong);
  for (int64_t d = 0; d < sparse && count > 0; ++d) {
    const auto low = where[d].min().item<int64_t>(), high = where[d].max().item<int64_t>();
    TORCH_CHECK(low >= 0, "found negative index ", low, " for dim ", d);
    TORCH_CHECK(high < size[size_t(d)], "size is inconsistent with indices: for dim ", d, ", size is ", size[size_t(d)],
                " but found index ", high);
  }
  Tensor made = vesta::_sparse_coo(where, own, size, false);
  if (is_coalesced.value_or(false)) made = made.coalesce();  // the promise is not needed: it is made true
  return o.requires_grad() ? made.detach().set_requires_grad() : made;
}
/// The same of the smallest sizes that hold the indices.
inline Tensor sparse_coo_tensor(const Tensor& indices, const Tensor& values, const TensorOptions& o = {},
                                optional<bool> is_coalesced = {}) {
  TORCH_CHECK(indices.defined() && values.defined(), "sparse_coo_tensor: expected defined tensors.");
  TORCH_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: ", indices.sizes());
  std::vector<int64_t> size;
  for (int64_t d = 0; d < indices.size(0); ++d) {
    size.push_back(indices.size(1) > 0 ? indices[d].max().item<int64_t>() + 1 : 0);
  }
  for (int64_t d = 1; d < values.dim(); ++d) size.push_back(values.size(d));
  return sparse_coo_tensor(indices, values, IntArrayRef(size), o, is_coalesced);
}
/// Makes a sparse tensor of zeros.
inline Tensor sparse_coo_tensor(IntArrayRef size, const TensorOptions& o) {
  const Tensor nowhere = vesta::empty({int64_t(size.size()), 0}, kLong, o.device_opt());
  return sparse_coo_tensor(nowhere, vesta::empty({0}, o.dtype(), o.device_opt()), size, o, true);
}

}  // namespace torch

namespace vesta {

inline int64_t Tensor::sparse_dim() const {
  VESTA_CHECK(defined(), runtime, "sparse_dim: expected a defined tensor.");
  return sparse_dims(sparse_parts(*this, "sparse_dim"));
}
inline bool Tensor::is_coalesced() const {
  VESTA_CHECK(defined(), runtime, "is_coalesced: expected a defined tensor.");
  return sparse_parts(*this, "is_coalesced").coalesced;
}
inline Tensor Tensor::indices() const { return vesta::_unique_indices(*this); }
inline Tensor Tensor::values() const { return vesta::_unique_values(*this); }

}  // namespace vesta
