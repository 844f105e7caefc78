// Linear algebra: functions that Vesta's C++ library has in another form or not at all. torch::linalg::x and
// torch::linalg_x are the same.
#pragma once
#include <torch/exceptions.h>
#include <torch/functions.h>

#include <cmath>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

namespace torch {

inline Tensor frobenius_norm(const Tensor& t, IntArrayRef dim, bool keepdim = false) {
  return vesta::linalg_vector_norm(t, 2, vesta::MaybeDims(dim), keepdim);
}

namespace linalg {

namespace detail {
inline Tensor of_dtype(const Tensor& t, optional<Dtype> dtype) { return dtype ? t.to(*dtype) : t; }
}  // namespace detail

inline Tensor matrix_norm(const Tensor& t, std::string_view ord = "fro", IntArrayRef dim = {-2, -1},
                          bool keepdim = false, optional<Dtype> dtype = {}) {
  const Tensor x = detail::of_dtype(t, dtype);
  TORCH_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", dim);
  if (ord == "fro") return frobenius_norm(x, dim, keepdim);
  TORCH_CHECK(ord == "nuc", "linalg.matrix_norm: expected the order \"fro\" or \"nuc\", got \"", ord, '"');
  Tensor r = vesta::linalg_svdvals(x.movedim(dim, IntArrayRef({-2, -1}))).sum(-1);
  if (keepdim) r = r.unsqueeze(-1).unsqueeze(-1).movedim(IntArrayRef({-2, -1}), dim);
  return r;
}
/// Orders 1 and infinity are the largest sums of columns and rows, 2 the largest singular value; negative ones the
/// smallest.
inline Tensor matrix_norm(const Tensor& t, Scalar ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                          optional<Dtype> dtype = {}) {
  const double p = ord.real(), size = std::abs(p);
  TORCH_CHECK(size == 1 || size == 2 || std::isinf(size), "linalg.matrix_norm: Order ", p, " not supported.");
  TORCH_CHECK(dim.size() == 2, "linalg.matrix_norm: dim must be a 2-tuple. Got ", dim);
  const Tensor m = detail::of_dtype(t, dtype).movedim(dim, IntArrayRef({-2, -1}));
  const Tensor sums = size == 2 ? vesta::linalg_svdvals(m) : m.abs().sum(size == 1 ? -2 : -1);
  Tensor r = p > 0 ? sums.amax(-1) : sums.amin(-1);
  if (keepdim) r = r.unsqueeze(-1).unsqueeze(-1).movedim(IntArrayRef({-2, -1}), dim);
  return r;
}
/// The norm of vectors along one dimension or of matrices along two; of all elements without `dim`.
inline Tensor norm(const Tensor& t, const optional<Scalar>& ord = {}, OptionalIntArrayRef dim = {},
                   bool keepdim = false, optional<Dtype> dtype = {}) {
  const bool matrices = dim ? (*dim).size() == 2 : ord && t.dim() == 2;
  if (matrices && ord) return matrix_norm(t, *ord, dim ? IntArrayRef(*dim) : IntArrayRef({-2, -1}), keepdim, dtype);
  TORCH_CHECK(dim || !ord || t.dim() == 1,
              "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D.");
  return vesta::linalg_vector_norm(t, ord ? ord->real() : 2, dim, keepdim, dtype);
}
inline Tensor norm(const Tensor& t, std::string_view ord, OptionalIntArrayRef dim = {}, bool keepdim = false,
                   optional<Dtype> dtype = {}) {
  const IntArrayRef dims = dim ? IntArrayRef(*dim) : IntArrayRef({-2, -1});
  return matrix_norm(t, ord, dims, keepdim, dtype);
}
// A literal would be a flag before it is a text.
inline Tensor matrix_norm(const Tensor& t, const char* ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                          optional<Dtype> dtype = {}) {
  return matrix_norm(t, std::string_view(ord), dim, keepdim, dtype);
}
inline Tensor norm(const Tensor& t, const char* ord, OptionalIntArrayRef dim = {}, bool keepdim = false,
                   optional<Dtype> dtype = {}) {
  return norm(t, std::string_view(ord), dim, keepdim, dtype);
}

}  // namespace linalg

namespace detail {

/// Returns a tolerance as a tensor of the real dtype of `t`, undefined where there is none.
inline Tensor tolerance(const Tensor& t, optional<double> value) {
  if (!value) return {};
  const Dtype real = t.dtype() == kComplexFloat ? kFloat : t.dtype() == kComplexDouble ? kDouble : t.dtype();
  return vesta::full(IntArrayRef(), *value, real, t.device());
}
/// Returns up to which fraction of the largest one singular values count as 0.
inline double default_rcond(const Tensor& t) {
  const bool single = t.dtype() == kFloat || t.dtype() == kComplexFloat;
  return (single ? 0x1p-23 : 0x1p-52) * double(std::max(t.size(-1), t.size(-2)));
}
inline void check_matrices(const char* op, const Tensor& t) {
  TORCH_CHECK(t.defined(), op, ": expected a defined tensor.");
  TORCH_CHECK(t.dim() >= 2, op, ": The input tensor must have at least 2 dimensions, got ", t.sizes());
}
/// Multiplies matrices in the order with the fewest multiplications (Cormen et al., "Introduction to Algorithms",
/// 15.2). The first and the last may be vectors.
inline Tensor product_of_chain(const char* op, TensorList given) {
  const size_t n = given.size();
  std::vector<Tensor> all(given.begin(), given.end());
  for (const Tensor& t : all) TORCH_CHECK(t.defined(), op, ": expected defined tensors.");
  const bool row = n > 1 && all.front().dim() == 1, column = n > 1 && all.back().dim() == 1;
  if (row) all.front() = all.front().unsqueeze(0);
  if (column) all.back() = all.back().unsqueeze(-1);
  for (size_t i = 0; i < n; ++i) {
    TORCH_CHECK(all[i].dim() == 2, op, ": expected matrices, got a ", given[i].dim(), "-D tensor (tensors[", i, "])");
    TORCH_CHECK(i == 0 || all[i].size(0) == all[i - 1].size(1), op, ": tensors ", i - 1, " and ", i, " of shapes ",
                all[i == 0 ? 0 : i - 1].sizes(), " and ", all[i].sizes(), " cannot be multiplied");
  }
  struct Best {
    double cost = 0;
    size_t split = 0;
  };
  std::map<std::pair<size_t, size_t>, Best> best;  // of matrices i to j
  for (size_t span = 1; span < n; ++span) {
    for (size_t i = 0, j = span; j < n; ++i, ++j) {
      Best& least = best[{i, j}];
      for (size_t k = i; k < j; ++k) {
        const double cost = best[{i, k}].cost + best[{k + 1, j}].cost +
                            double(all[i].size(0)) * double(all[k].size(1)) * double(all[j].size(1));
        if (k == i || cost < least.cost) least = {cost, k};
      }
    }
  }
  const auto product = [&](const auto& self, size_t i, size_t j) -> Tensor {
    if (i == j) return all[i];
    const size_t k = best[{i, j}].split;
    return self(self, i, k).mm(self(self, k + 1, j));
  };
  Tensor r = product(product, 0, n - 1);
  if (row) r = r.squeeze(0);
  return column ? r.squeeze(-1) : r;
}

}  // namespace detail

inline Tensor chain_matmul(TensorList matrices) {
  TORCH_CHECK(!matrices.empty(), "chain_matmul: Expected one or more matrices");
  return torch::detail::product_of_chain("chain_matmul", matrices);
}
inline Tensor nuclear_norm(const Tensor& t, bool keepdim = false) {
  return linalg::matrix_norm(t, "nuc", {-2, -1}, keepdim);
}
inline Tensor nuclear_norm(const Tensor& t, IntArrayRef dim, bool keepdim = false) {
  return linalg::matrix_norm(t, "nuc", dim, keepdim);
}

namespace linalg {

/// Returns pseudoinverses. Singular values up to max(atol, rtol * largest) count as 0.
inline Tensor pinv(const Tensor& t, optional<double> atol, optional<double> rtol, bool hermitian = false) {
  torch::detail::check_matrices("linalg.pinv", t);
  return vesta::_linalg_pinv(t, torch::detail::tolerance(t, atol), torch::detail::tolerance(t, rtol), hermitian);
}
inline Tensor pinv(const Tensor& t, double rcond, bool hermitian = false) { return pinv(t, {}, rcond, hermitian); }
inline Tensor pinv(const Tensor& t) { return pinv(t, {}, optional<double>()); }
inline Tensor matrix_rank(const Tensor& t, optional<double> atol, optional<double> rtol, bool hermitian = false) {
  torch::detail::check_matrices("linalg.matrix_rank", t);
  return vesta::_linalg_matrix_rank(t, torch::detail::tolerance(t, atol), torch::detail::tolerance(t, rtol), hermitian);
}
inline Tensor matrix_rank(const Tensor& t, double tol, bool hermitian = false) {
  return matrix_rank(t, tol, 0.0, hermitian);
}
inline Tensor matrix_rank(const Tensor& t) { return matrix_rank(t, {}, optional<double>()); }
inline Tensor multi_dot(TensorList tensors) {
  TORCH_CHECK(tensors.size() >= 2, "multi_dot(): expected at least 2 tensors but got ", tensors.size());
  return torch::detail::product_of_chain("multi_dot()", tensors);
}
/// Returns condition numbers: the norm of order p times that of the inverse; of singular values for 2 and -2.
inline Tensor cond(const Tensor& t, const optional<Scalar>& p = {}) {
  torch::detail::check_matrices("linalg.cond", t);
  if (!p || std::abs(p->real()) == 2) {
    const Tensor s = vesta::linalg_svdvals(t), first = s.select(-1, 0), last = s.select(-1, -1);
    return p && p->real() < 0 ? last / first : first / last;
  }
  return matrix_norm(t, *p) * matrix_norm(vesta::linalg_inv(t), *p);
}
inline Tensor cond(const Tensor& t, std::string_view p) {
  torch::detail::check_matrices("linalg.cond", t);
  return matrix_norm(t, p) * matrix_norm(vesta::linalg_inv(t), p);
}
/// Returns (solution, residuals, rank, singular values) of min |A X - B|: the smallest X, from A's singular values,
/// those up to `rcond` times the largest counting as 0. Which of the others there are depends on the driver.
inline std::tuple<Tensor, Tensor, Tensor, Tensor> lstsq(const Tensor& A, const Tensor& B, optional<double> rcond = {},
                                                        optional<std::string_view> driver = {}) {
  torch::detail::check_matrices("linalg.lstsq", A);
  TORCH_CHECK(B.defined(), "linalg.lstsq: expected a defined tensor (b).");
  const std::string_view by = driver.value_or("gelsy");
  TORCH_CHECK(by == "gels" || by == "gelsy" || by == "gelsd" || by == "gelss",
              "linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss), got ", by);
  const int64_t m = A.size(-2), n = A.size(-1);
  const bool vector = B.dim() == A.dim() - 1 && B.sizes() == A.sizes().slice(0, size_t(A.dim()) - 1);
  const Tensor right = vector ? B.unsqueeze(-1) : B;
  TORCH_CHECK(right.dim() >= 2 && right.size(-2) == m, "linalg.lstsq: input.size(-2) should match other.size(-2), got ",
              A.sizes(), " and ", B.sizes());
  TORCH_CHECK(A.dtype() == B.dtype(), "linalg.lstsq: Expected input and other to have the same dtype, got ", A.dtype(),
              " and ", B.dtype());
  const double limit = rcond.value_or(torch::detail::default_rcond(A));
  const Tensor s = vesta::linalg_svdvals(A.detach());
  Tensor rank = (s.size(-1) > 0 ? s > s.amax(-1, true) * limit : s > 0).sum(-1);
  const Tensor solution = vesta::_linalg_pinv(A, {}, torch::detail::tolerance(A, limit), false).matmul(right);
  Tensor residuals = vesta::empty({0}, s.dtype(), s.device());
  if (m > n && by != "gelsy" && (rank == n).all().item<bool>()) {
    residuals = (A.matmul(solution) - right).abs().square().sum(-2);
  }
  const bool values = by == "gelsd" || by == "gelss";
  if (by == "gels") rank = vesta::empty({0}, kLong, s.device());
  return {vector ? solution.squeeze(-1) : solution, residuals, rank,
          values ? s : vesta::empty({0}, s.dtype(), s.device())};
}
/// Returns the inverse of `t` as a map from its last dimensions to the first `ind`.
inline Tensor tensorinv(const Tensor& t, int64_t ind = 2) {
  TORCH_CHECK(t.defined() && ind > 0 && ind <= t.dim(),
              "linalg.tensorinv: expected ind from 1 to the number of dimensions, got ", ind);
  const IntArrayRef sizes = t.sizes();
  std::vector<int64_t> turned(sizes.begin() + ind, sizes.end());
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d < t.dim(); ++d) (d < ind ? rows : columns) *= sizes[size_t(d)];
  TORCH_CHECK(rows == columns, "linalg.tensorinv: expected equal numbers of elements, got ", rows, " and ", columns);
  turned.insert(turned.end(), sizes.begin(), sizes.begin() + ind);
  return vesta::linalg_inv(t.reshape({rows, columns})).reshape(turned);
}
/// Returns X for which tensordot(t, X, X.dim()) is `other`; `dims` of t are moved to its end first.
inline Tensor tensorsolve(const Tensor& t, const Tensor& other, OptionalIntArrayRef dims = {}) {
  TORCH_CHECK(t.defined() && other.defined(), "linalg.tensorsolve: expected defined tensors.");
  Tensor map = t;
  if (dims) {
    std::vector<int64_t> last;
    for (int64_t d = t.dim() - int64_t((*dims).size()); d < t.dim(); ++d) last.push_back(d);
    map = t.movedim(*dims, last);
  }
  const IntArrayRef sizes = map.sizes();
  const std::vector<int64_t> rest(sizes.begin() + std::min(other.dim(), map.dim()), sizes.end());
  int64_t columns = 1;
  for (const int64_t n : rest) columns *= n;
  TORCH_CHECK(columns == other.numel(), "linalg.tensorsolve: expected prod(input.shape[other.dim():]) to be ",
              other.numel(), ", the number of elements of other, got ", columns);
  return vesta::linalg_solve(map.reshape({-1, columns}), other.reshape({-1})).reshape(rest);
}
inline Tensor diagonal(const Tensor& t, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) {
  return t.diagonal(offset, dim1, dim2);
}
inline Tensor vecdot(const Tensor& a, const Tensor& b, int64_t dim = -1) { return (a.conj() * b).sum(dim); }
inline Tensor matmul(const Tensor& a, const Tensor& b) { return a.matmul(b); }

}  // namespace linalg

#define VESTA_LINALG(name)                                                     \
  template <class... A>                                                        \
  decltype(auto) linalg_##name(const Tensor& t, const A&... arguments) {       \
    return linalg::name(t, arguments...);                                      \
  }
VESTA_LINALG(cond)
VESTA_LINALG(diagonal)
VESTA_LINALG(lstsq)
VESTA_LINALG(matmul)
VESTA_LINALG(matrix_rank)
VESTA_LINALG(pinv)
VESTA_LINALG(tensorinv)
VESTA_LINALG(vecdot)
#undef VESTA_LINALG
inline Tensor linalg_multi_dot(TensorList tensors) { return linalg::multi_dot(tensors); }
inline Tensor linalg_tensorsolve(const Tensor& t, const Tensor& other, OptionalIntArrayRef dims = {}) {
  return linalg::tensorsolve(t, other, dims);
}
// Their arguments may be braces.
inline Tensor linalg_norm(const Tensor& t, const optional<Scalar>& ord = {}, OptionalIntArrayRef dim = {},
                          bool keepdim = false, optional<Dtype> dtype = {}) {
  return linalg::norm(t, ord, dim, keepdim, dtype);
}
inline Tensor linalg_norm(const Tensor& t, std::string_view ord, OptionalIntArrayRef dim = {}, bool keepdim = false,
                          optional<Dtype> dtype = {}) {
  return linalg::norm(t, ord, dim, keepdim, dtype);
}
inline Tensor linalg_norm(const Tensor& t, const char* ord, OptionalIntArrayRef dim = {}, bool keepdim = false,
                          optional<Dtype> dtype = {}) {
  return linalg::norm(t, ord, dim, keepdim, dtype);
}
inline Tensor linalg_matrix_norm(const Tensor& t, Scalar ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                                 optional<Dtype> dtype = {}) {
  return linalg::matrix_norm(t, ord, dim, keepdim, dtype);
}
inline Tensor linalg_matrix_norm(const Tensor& t, std::string_view ord = "fro", IntArrayRef dim = {-2, -1},
                                 bool keepdim = false, optional<Dtype> dtype = {}) {
  return linalg::matrix_norm(t, ord, dim, keepdim, dtype);
}
inline Tensor linalg_matrix_norm(const Tensor& t, const char* ord, IntArrayRef dim = {-2, -1}, bool keepdim = false,
                                 optional<Dtype> dtype = {}) {
  return linalg::matrix_norm(t, ord, dim, keepdim, dtype);
}

}  // namespace torch
