// Products of compressed matrices.
#include <vesta/core/ops/sparse.h>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/factory.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/sparse.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

Tensor csr_product(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense) {
  VESTA_CHECK(crow.dim() == 1 && crow.numel() > 0 && col.dim() == 1 && values.dim() == 1 && dense.dim() == 2 &&
                  col.numel() == values.numel() && crow.dtype() == col.dtype() && values.dtype() == dense.dtype(),
              value, "_csr_product: expected crow [n + 1], col [nnz], values [nnz] and dense [m, k], got ",
              crow.sizes(), ", ", col.sizes(), ", ", values.sizes(), " and ", dense.sizes(), ".");
  check_one_device("_csr_product", {&crow, &col, &values, &dense});
  OperandDevice device(values);
  CsrProduct l;
  l.rows = crow.numel() - 1, l.inner = dense.size(0), l.columns = dense.size(1), l.count = values.numel();
  if (l.inner == 0) return zeros({{l.rows, l.columns}}, values.dtype(), values.device());
  const Tensor r = result_tensor(Dims{l.rows, l.columns}, values.dtype(), values.device());
  if (r.numel() == 0) return r;
  const Tensor ends = contiguous_values(crow), places = contiguous_values(col), v = contiguous_values(values),
               b = contiguous_values(dense);
  l.dtype = values.dtype(), l.index = crow.dtype(), l.stream = device.stream();
  l.ends = ends.impl()->data(), l.places = places.impl()->data();
  l.values = v.impl()->data(), l.dense = b.impl()->data(), l.out = r.impl()->data();
  l.fault = fault_of(device.index());
  l.not_ends = "matmul: expected the ends of a sparse matrix's rows, got others. They were changed in place.";
  run_csr_product(l);
  return r;
}

}  // namespace

void register_sparse() { ops::_csr_product.set_kernel(DeviceType::cuda, csr_product); }

}  // namespace vesta::cuda
