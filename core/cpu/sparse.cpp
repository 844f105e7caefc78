// Products of compressed matrices, whose rows are sums over the elements of a row, and sums over equal places.
#include <vesta/core/ops/sparse.h>

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>

namespace vesta::cpu {
namespace {

/// The columns of a row that are summed at a time: they stay in registers and the first cache.
constexpr int64_t kColumns = 64;

/// Raises for places outside of a matrix of `columns` columns and `count` elements, in rows [begin, end): they were in
/// it when it was made, but may have been written since.
template <class Index>
[[gnu::noinline]] void check_places(const Index* crow, const Index* col, int64_t columns, int64_t count, int64_t begin,
                                    int64_t end) {
  using Unsigned = std::make_unsigned_t<Index>;  // where negative numbers are large
  bool inside = crow[begin] >= 0 && int64_t(crow[end]) <= count;
  for (int64_t i = begin; i < end; ++i) inside = inside && crow[i] <= crow[i + 1];
  Unsigned last = 0;
  const int64_t stop = int64_t(inside ? crow[end] : crow[begin]);
  for (int64_t e = crow[begin]; e < stop; ++e) last = std::max(last, Unsigned(col[e]));
  VESTA_CHECK(inside && (crow[begin] == crow[end] || std::cmp_less(last, columns)), index,
              "matmul: expected indices of a sparse matrix with ", columns, " columns and ", count,
              " elements, got others. They were changed in place.");
}

/// Computes rows [begin, end) of the product with a dense matrix of k columns. Sums go in the order of the elements.
/// Not inlined beside check_places(): its loop would be slower by half.
template <class T, class Index>
[[gnu::noinline]] void product_rows(const Index* crow, const Index* col, const T* values, const T* dense, T* to,
                                    int64_t k, int64_t begin, int64_t end) {
  using C = compute_t<T>;
  for (int64_t from = 0; from < k; from += kColumns) {
    const int64_t count = std::min(kColumns, k - from);
    for (int64_t i = begin; i < end; ++i) {
      std::array<C, size_t(kColumns)> sum{};
      for (Index e = crow[i]; e < crow[i + 1]; ++e) {
        const C value = C(values[e]);
        const T* row = dense + int64_t(col[e]) * k + from;
        for (int64_t j = 0; j < count; ++j) sum[size_t(j)] += C(value * C(row[j]));
      }
      std::transform(sum.begin(), sum.begin() + count, to + i * k + from, [](C s) { return T(s); });
    }
  }
}

Tensor csr_product_kernel(const Tensor& crow, const Tensor& col, const Tensor& values, const Tensor& dense) {
  VESTA_CHECK(crow.dim() == 1 && crow.numel() > 0 && col.dim() == 1 && values.dim() == 1 && dense.dim() == 2 &&
                  col.numel() == values.numel() && crow.dtype() == col.dtype() && values.dtype() == dense.dtype(),
              value, "_csr_product: expected crow [n + 1], col [nnz], values [nnz] and dense [m, k], got ",
              crow.sizes(), ", ", col.sizes(), ", ", values.sizes(), " and ", dense.sizes(), ".");
  const int64_t n = crow.numel() - 1, k = dense.size(1);
  Tensor r = result_tensor(Dims{n, k}, values.dtype());
  if (r.numel() == 0) return r;
  const Tensor ends = contiguous_values(crow), columns = contiguous_values(col), v = contiguous_values(values),
               b = contiguous_values(dense);
  const int64_t work = std::max<int64_t>(1, (values.numel() * k) / n);  // of a row
  const int64_t grain = std::max<int64_t>(1, kTaskWork / work);
  visit<kNumbers>(values.dtype(), [&]<class T>() {
    const auto run = [&]<class Index>(const Index*) {
      parallel_for(n, grain, [&](int64_t begin, int64_t end) {
        const auto *places = elements<Index>(ends), *column = elements<Index>(columns);
        check_places(places, column, b.size(0), v.numel(), begin, end);
        product_rows(places, column, elements<T>(v), elements<T>(b), elements<T>(r), k, begin, end);
      });
    };
    if (ends.dtype() == DType::int32) run(static_cast<const int32_t*>(nullptr));
    else run(static_cast<const int64_t*>(nullptr));
  });
  return r;
}

/// Sums go in order, and 16-bit floats are added in float.
Tensor sum_runs_kernel(const Tensor& values, const Tensor& order, const Tensor& starts) {
  check_runs(values, order, starts);
  if (is_bool(values.dtype())) return ops::_sum_runs.body()(values, order, starts);
  const Tensor v = contiguous_values(values), which = contiguous_values(order), from = contiguous_values(starts);
  Dims sizes(values.sizes());
  const int64_t count = sizes[0] = starts.size(0) - 1;
  Tensor r = result_tensor(sizes, values.dtype());
  if (r.numel() == 0) return r;
  const int64_t k = r.numel() / count, work = std::max<int64_t>(1, which.numel() * k / count);
  const auto *elements_of = elements<int64_t>(which), *begin_of = elements<int64_t>(from);
  const int64_t rows = values.size(0), last = which.numel();
  VESTA_CHECK(begin_of[0] >= 0 && std::is_sorted(begin_of, begin_of + count + 1) && begin_of[count] <= last &&
                  std::all_of(elements_of, elements_of + last, [&](int64_t e) { return e >= 0 && e < rows; }),
              index, "_sum_runs: expected ascending places in ", last, " numbers of ", rows,
              " values (starts, order).");
  visit<kNumbers>(values.dtype(), [&]<class T>() {
    using C = compute_t<T>;
    parallel_for(count, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        for (int64_t first = 0; first < k; first += kColumns) {
          const int64_t columns = std::min(kColumns, k - first);
          std::array<C, size_t(kColumns)> sum{};
          for (int64_t e = begin_of[i]; e < begin_of[i + 1]; ++e) {
            const T* const row = elements<T>(v) + elements_of[e] * k + first;
            for (int64_t j = 0; j < columns; ++j) sum[size_t(j)] += C(row[j]);
          }
          T* const to = elements<T>(r) + i * k + first;
          std::transform(sum.begin(), sum.begin() + columns, to, [](C total) { return T(total); });
        }
      }
    });
  });
  return r;
}

}  // namespace

void register_sparse() {
  ops::_csr_product.set_kernel(DeviceType::cpu, csr_product_kernel);
  ops::_sum_runs.set_kernel(DeviceType::cpu, sum_runs_kernel);
}

}  // namespace vesta::cpu
