// The distinct values of a tensor, or its distinct slices along a dimension. Results that were not asked for are empty.
#pragma once
#include <torch/exceptions.h>
#include <torch/factories.h>

#include <tuple>

namespace torch {

namespace detail {

using Distinct = std::tuple<Tensor, Tensor, Tensor>;

/// Returns the slices of t along dim as rows; its elements without dim.
inline Tensor rows_of(const char* op, const Tensor& t, const optional<int64_t>& dim) {
  TORCH_CHECK(t.defined(), op, ": expected a defined tensor.");
  const Tensor plain = t.detach();
  if (!dim) return plain.reshape({-1, 1});
  TORCH_CHECK_INDEX(t.dim() > 0 && *dim >= -t.dim() && *dim < t.dim(), op, ": Dimension out of range, got ", *dim,
                    " for ", t.dim(), " dimensions.");
  const Tensor first = plain.movedim(*dim, 0);
  const int64_t n = first.size(0);
  return first.reshape({n, n == 0 ? 1 : first.numel() / n});
}
/// Returns the order that sorts rows: by the first column, then by the next.
inline Tensor order_of_rows(const Tensor& rows) {
  Tensor order = torch::arange(rows.size(0), TensorOptions(kLong).device(optional<Device>(rows.device())));
  for (int64_t c = rows.size(1); c-- > 0;) {
    const Tensor column = rows.select(1, c).index_select(0, order);
    order = order.index_select(0, std::get<1>(vesta::sort(column, vesta::MaybeBool(true), 0, false)));
  }
  return order;
}
/// Keeps the first of equal neighbours, and says for each row which it is and how many each has.
inline Distinct first_of_equals(const Tensor& rows) {
  const int64_t n = rows.size(0);
  const TensorOptions o = TensorOptions(kLong).device(optional<Device>(rows.device()));
  if (n == 0) return {torch::empty({0}, o), torch::empty({0}, o), torch::empty({0}, o)};
  const Tensor changes = (rows.narrow(0, 1, n - 1) != rows.narrow(0, 0, n - 1)).to(kLong).sum(1).gt(0);
  const Tensor starts = vesta::cat({torch::ones({1}, o), changes.to(kLong)});
  const Tensor at = starts.nonzero().flatten();
  const Tensor ends = vesta::cat({at.narrow(0, 1, at.size(0) - 1), torch::full({1}, n, o)});
  return {at, starts.cumsum(0) - 1, ends - at};
}
/// Picks slices of t along dim, or elements.
inline Tensor picked(const Tensor& t, const optional<int64_t>& dim, const Tensor& at) {
  return dim ? t.detach().index_select(*dim, at) : t.detach().flatten().index_select(0, at);
}
inline Distinct distinct(const char* op, const Tensor& t, const optional<int64_t>& dim, bool sorts, bool inverse,
                         bool counts) {
  const Tensor rows = rows_of(op, t, dim);
  Tensor order;
  if (sorts) order = order_of_rows(rows);
  auto [at, group, count] = first_of_equals(sorts ? rows.index_select(0, order) : rows);
  if (sorts) {
    at = order.index_select(0, at);
    group = torch::empty_like(group).scatter_(0, order, group);
  }
  const Tensor none = torch::empty({0}, at.options());
  return {picked(t, dim, at), !inverse ? none : dim ? group : group.reshape(t.sizes()), counts ? count : none};
}

}  // namespace detail

/// The distinct slices along dim in ascending order, which of them each slice is, and how often each occurs.
inline detail::Distinct unique_dim(const Tensor& t, int64_t dim, bool /*sorted*/ = true, bool return_inverse = false,
                                   bool return_counts = false) {
  return detail::distinct("unique_dim", t, dim, true, return_inverse, return_counts);
}
inline detail::Distinct unique_dim_consecutive(const Tensor& t, int64_t dim, bool return_inverse = false,
                                               bool return_counts = false) {
  return detail::distinct("unique_dim_consecutive", t, dim, false, return_inverse, return_counts);
}
/// The same of neighbours that are equal.
inline detail::Distinct unique_consecutive(const Tensor& t, bool return_inverse = false, bool return_counts = false,
                                           optional<int64_t> dim = {}) {
  return detail::distinct("unique_consecutive", t, dim, false, return_inverse, return_counts);
}
inline detail::Distinct _unique2(const Tensor& t, bool /*sorted*/ = true, bool return_inverse = false,
                                 bool return_counts = false) {
  return detail::distinct("_unique2", t, {}, true, return_inverse, return_counts);
}
inline std::tuple<Tensor, Tensor> _unique(const Tensor& t, bool /*sorted*/ = true, bool return_inverse = false) {
  const auto r = detail::distinct("_unique", t, {}, true, return_inverse, false);
  return {std::get<0>(r), std::get<1>(r)};
}

}  // namespace torch
