// Sparse tensors: the order of their places, sums over equal ones, and products of compressed matrices.
#include <vesta/core/ops/sparse.h>

#include <algorithm>
#include <bit>

#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/sparse.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/sort_keys.h>
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
  Tensor r = result_tensor(Dims{l.rows, l.columns}, values.dtype(), values.device());
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

/// Returns the places that `indices` [s, n] has in dimensions of these sizes, and the number of places there are.
SparsePlaces places_of(IntTuple size, int64_t n, StreamHandle stream) {
  SparsePlaces p;
  p.stream = stream, p.n = n, p.dims = int(size.size());
  for (size_t d = 0; d < size.size(); ++d) p.sizes[d] = size[d];
  return p;
}
SparsePlaces places_at(const Tensor& indices, IntTuple size, StreamHandle stream) {
  SparsePlaces p = places_of(size, indices.sizes()[1], stream);
  p.indices = indices.data_ptr<int64_t>(), p.row = indices.strides()[0], p.column = indices.strides()[1];
  return p;
}

Tensor sparse_numbers(const Tensor& indices, IntTuple size) {
  check_places(indices, size, "_sparse_numbers");
  const OperandDevice device(indices);
  Tensor numbers = empty_tensor({{indices.sizes()[1]}}, DType::int64, indices.device());
  if (numbers.numel()) run_sparse_numbers(places_at(indices, size, device.stream()), numbers.data_ptr(), true);
  return numbers;
}

Tensor sparse_places(const Tensor& numbers, IntTuple size) {
  const OperandDevice device(numbers);
  const Tensor n = contiguous_values(numbers);
  Tensor r = empty_tensor({{int64_t(size.size()), n.numel()}}, DType::int64, numbers.device());
  if (r.numel() == 0) return r;
  run_sparse_places(places_of(size, n.numel(), device.stream()), n.data_ptr<int64_t>(), r.data_ptr<int64_t>());
  return r;
}

/// Waits for the device to learn how many places there are.
TensorTriple sparse_order(const Tensor& indices, IntTuple size) {
  check_places(indices, size, "_sparse_order");
  const OperandDevice device(indices);
  const int64_t n = indices.sizes()[1];
  uint64_t last = 0;  // the highest number of a place
  for (int64_t d : size) last = last * uint64_t(d) + uint64_t(std::max<int64_t>(d, 1) - 1);
  const bool wide = last > UINT32_MAX || n >= int64_t(1) << 31;
  const auto made = [&](IntSpan sizes) { return empty_tensor(sizes, DType::int64, indices.device()); };
  if (n == 0) return {made({{int64_t(size.size()), 0}}), made({{0}}), zeros({{1}}, DType::int64, indices.device())};
  const SparsePlaces p = places_at(indices, size, device.stream());
  Keys keys(n, std::max(1, int(std::bit_width(last))), wide, indices.device());
  run_sparse_numbers(p, keys.input(), wide);
  keys.sort();
  Tensor order = made({{n}}), heads = made({{n}});
  SparseRuns r{keys.keys(), keys.order(), wide, order.data_ptr<int64_t>(), heads.data_ptr<int64_t>()};
  run_sparse_heads(p, r);
  const Tensor group = ops::cumsum.kernel(heads, 0, {});
  const int64_t count = ops::select.kernel(group, 0, n - 1).item<int64_t>();
  Tensor places = made({{int64_t(size.size()), count}}), starts = made({{count + 1}});
  r.group = group.data_ptr<int64_t>();
  run_sparse_starts(p, r, count, places.data_ptr<int64_t>(), starts.data_ptr<int64_t>());
  return {places, order, starts};
}

Tensor sum_runs(const Tensor& values, const Tensor& order, const Tensor& starts) {
  check_runs(values, order, starts);
  if (is_bool(values.dtype())) return ops::_sum_runs.body()(values, order, starts);
  check_one_device("_sum_runs", {&values, &order, &starts});
  const OperandDevice device(values);
  const Tensor v = contiguous_values(values), which = contiguous_values(order), from = contiguous_values(starts);
  Dims sizes(values.sizes());
  sizes[0] = starts.sizes()[0] - 1;
  Tensor r = result_tensor(sizes, values.dtype(), values.device());
  if (r.numel() == 0) return r;
  RunSums l;
  l.dtype = v.dtype(), l.stream = device.stream(), l.count = sizes[0], l.columns = r.numel() / sizes[0];
  l.order = which.data_ptr<int64_t>(), l.starts = from.data_ptr<int64_t>();
  l.values = v.impl()->data(), l.out = r.impl()->data();
  run_run_sums(l);
  return r;
}

}  // namespace

void register_sparse() {
  ops::_csr_product.set_kernel(DeviceType::cuda, csr_product);
  ops::_sparse_numbers.set_kernel(DeviceType::cuda, sparse_numbers);
  ops::_sparse_places.set_kernel(DeviceType::cuda, sparse_places);
  ops::_sparse_order.set_kernel(DeviceType::cuda, sparse_order);
  ops::_sum_runs.set_kernel(DeviceType::cuda, sum_runs);
}

}  // namespace vesta::cuda
