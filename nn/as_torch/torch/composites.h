// Functions that libtorch has and Vesta's C++ library has not, written with its ops: einsum, meshgrid, windows, norms
// of matrices, other names.
#pragma once
#include <torch/exceptions.h>
#include <torch/functions.h>

#include <array>
#include <cctype>
#include <cmath>
#include <limits>
#include <numbers>
#include <string_view>

namespace torch {

namespace detail {

/// One operand of einsum: a dimension for each of its labels, in the order of `labels`.
struct Labelled {
  Tensor tensor;
  std::vector<int> labels;
};

/// Takes the diagonal of labels that repeat, sums out those that `keep` rejects, and sorts the rest.
template <class Keep>
Labelled simplified(Labelled x, Keep keep) {
  for (size_t i = 0; i < x.labels.size(); ++i) {
    for (size_t j = x.labels.size() - 1; j > i; --j) {
      if (x.labels[j] != x.labels[i]) continue;
      const int64_t a = x.tensor.size(int64_t(i)), b = x.tensor.size(int64_t(j));
      TORCH_CHECK(a == b, "einsum(): a subscript is repeated for dimensions of sizes ", a, " and ", b);
      x.tensor = x.tensor.diagonal(0, int64_t(i), int64_t(j)).movedim(-1, int64_t(i));
      x.labels.erase(x.labels.begin() + std::ptrdiff_t(j));
    }
  }
  for (size_t i = x.labels.size(); i-- > 0;) {
    if (keep(x.labels[i])) continue;
    x.tensor = x.tensor.sum(int64_t(i));
    x.labels.erase(x.labels.begin() + std::ptrdiff_t(i));
  }
  std::vector<int64_t> order(x.labels.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  std::sort(order.begin(), order.end(),
            [&](int64_t a, int64_t b) { return x.labels[size_t(a)] < x.labels[size_t(b)]; });
  if (!order.empty()) x.tensor = x.tensor.permute(order);
  std::sort(x.labels.begin(), x.labels.end());
  return x;
}

/// Multiplies two operands and sums over their common labels that `keep` rejects: one batched product.
template <class Keep>
Labelled contracted(const Labelled& a, const Labelled& b, Keep keep) {
  const auto has = [](const Labelled& x, int label) {
    return std::find(x.labels.begin(), x.labels.end(), label) != x.labels.end();
  };
  std::vector<int> batch, left, right, summed;
  for (int l : a.labels) (!has(b, l) ? left : keep(l) ? batch : summed).push_back(l);
  for (int l : b.labels) {
    if (!has(a, l)) right.push_back(l);
  }
  const auto size_of = [&](int label) {  // 1 broadcasts
    int64_t size = 1;
    for (const Labelled* x : {&a, &b}) {
      const auto at = std::find(x->labels.begin(), x->labels.end(), label);
      if (at == x->labels.end()) continue;
      const int64_t n = x->tensor.size(at - x->labels.begin());
      TORCH_CHECK(size == 1 || n == 1 || n == size, "einsum(): operands do not broadcast: sizes ", size, " and ", n);
      size = std::max(size, n);
    }
    return size;
  };
  const auto product = [&](const std::vector<int>& labels) {
    int64_t n = 1;
    for (int l : labels) n *= size_of(l);
    return n;
  };
  const auto as_matrices = [&](const Labelled& x, const std::vector<int>& rows, const std::vector<int>& columns) {
    std::vector<int64_t> order, sizes;
    for (const std::vector<int>* part : {&static_cast<const std::vector<int>&>(batch), &rows, &columns}) {
      for (int l : *part) {
        order.push_back(std::find(x.labels.begin(), x.labels.end(), l) - x.labels.begin());
        sizes.push_back(size_of(l));
      }
    }
    const Tensor t = order.empty() ? x.tensor : x.tensor.permute(order).expand(sizes);
    return t.reshape({product(batch), product(rows), product(columns)});
  };
  const Tensor r = as_matrices(a, left, summed).bmm(as_matrices(b, summed, right));
  Labelled result;
  std::vector<int64_t> sizes;
  for (const std::vector<int>* part : {&batch, &left, &right}) {
    for (int l : *part) {
      result.labels.push_back(l);
      sizes.push_back(size_of(l));
    }
  }
  result.tensor = r.reshape(sizes);
  return result;
}

}  // namespace detail

/// Sums products of operands over the subscripts that the output has not: einsum("bij,bjk->bik", {a, b}).
inline Tensor einsum(std::string_view equation, TensorList operands) {
  for (const Tensor& t : operands) TORCH_CHECK(t.defined(), "einsum(): expected defined tensors");
  TORCH_CHECK(!operands.empty(), "einsum(): must provide at least one operand");
  constexpr int kEllipsis = 128;  // labels of an ellipsis's dimensions, from the last on, are this and below
  std::vector<detail::Labelled> parts;
  size_t at = 0;
  std::string text;
  for (char c : equation) {
    if (c != ' ') text += c;
  }
  const size_t arrow = text.find("->");
  const std::string inputs = text.substr(0, arrow);
  std::array<int, 256> uses{};
  int64_t widest = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const size_t end = std::min(inputs.find(',', at), inputs.size());
    TORCH_CHECK(at <= inputs.size(), "einsum(): more operands were provided than specified in the equation");
    const std::string_view part = std::string_view(inputs).substr(at, end - at);
    at = end + 1;
    detail::Labelled one{operands[i], {}};
    const bool dots = part.find("...") != std::string_view::npos;
    const int64_t hidden = one.tensor.dim() - int64_t(part.size()) + (dots ? 3 : 0);
    TORCH_CHECK(dots ? hidden >= 0 : hidden == 0, "einsum(): the number of subscripts in the equation (",
                part.size() - (dots ? 3 : 0), ") does not match the number of dimensions (", one.tensor.dim(),
                ") for operand ", i);
    widest = std::max(widest, dots ? hidden : 0);
    for (size_t c = 0; c < part.size(); ++c) {
      if (part[c] == '.') {
        for (int64_t d = hidden; d > 0; --d) one.labels.push_back(kEllipsis - int(d));
        c += 2;
        continue;
      }
      TORCH_CHECK(std::isalpha(static_cast<unsigned char>(part[c])), "einsum(): invalid subscript given at index ", c,
                  " in the equation string, subscripts must be in [a-zA-Z]");
      one.labels.push_back(part[c] + kEllipsis);
    }
    for (int l : one.labels) ++uses[size_t(l) % 256];
    parts.push_back(std::move(one));
  }
  TORCH_CHECK(at > inputs.size(), "einsum(): fewer operands were provided than specified in the equation");
  std::vector<int> output;
  if (arrow == std::string::npos) {
    for (int64_t d = widest; d > 0; --d) output.push_back(kEllipsis - int(d));
    for (int l = kEllipsis + 'A'; l <= kEllipsis + 'z'; ++l) {
      if (uses[size_t(l) % 256] == 1) output.push_back(l);
    }
  } else {
    const std::string_view right = std::string_view(text).substr(arrow + 2);
    for (size_t c = 0; c < right.size(); ++c) {
      if (right[c] == '.') {
        for (int64_t d = widest; d > 0; --d) output.push_back(kEllipsis - int(d));
        c += 2;
        continue;
      }
      TORCH_CHECK(uses[size_t(right[c] + kEllipsis) % 256] > 0, "einsum(): output subscript ", right[c],
                  " does not appear in the equation for any input operand");
      output.push_back(right[c] + kEllipsis);
    }
  }
  const auto needed = [&](size_t from) {
    return [&, from](int label) {
      if (std::find(output.begin(), output.end(), label) != output.end()) return true;
      for (size_t i = from; i < parts.size(); ++i) {
        if (std::find(parts[i].labels.begin(), parts[i].labels.end(), label) != parts[i].labels.end()) return true;
      }
      return false;
    };
  };
  detail::Labelled result = detail::simplified(parts[0], needed(1));
  for (size_t i = 1; i < parts.size(); ++i) {
    const auto here = [&](int label) {
      return needed(i + 1)(label) ||
             std::find(result.labels.begin(), result.labels.end(), label) != result.labels.end();
    };
    result = detail::contracted(result, detail::simplified(parts[i], here), needed(i + 1));
  }
  std::vector<int64_t> order;
  for (int l : output)
    order.push_back(std::find(result.labels.begin(), result.labels.end(), l) - result.labels.begin());
  return order.empty() ? result.tensor : result.tensor.permute(order);
}

inline std::vector<Tensor> broadcast_tensors(TensorList tensors) {
  vesta::Dims sizes;
  for (const Tensor& t : tensors) sizes = vesta::broadcast_shapes(sizes, t.sizes(), "broadcast_tensors");
  std::vector<Tensor> all;
  for (const Tensor& t : tensors) all.push_back(t.expand(sizes));
  return all;
}
/// Returns the coordinates of a grid: "ij" has the first list along the first dimension, "xy" along the second.
inline std::vector<Tensor> meshgrid(TensorList tensors, std::string_view indexing = "ij") {
  TORCH_CHECK(indexing == "ij" || indexing == "xy", "meshgrid: expected indexing \"ij\" or \"xy\", got \"", indexing,
              '"');
  const bool swap = indexing == "xy" && tensors.size() >= 2;
  std::vector<int64_t> sizes;
  for (const Tensor& t : tensors) {
    TORCH_CHECK(t.dim() <= 1, "meshgrid: expected 0-d or 1-d tensors, got ", t.dim(), " dims");
    sizes.push_back(t.numel());
  }
  if (swap) std::swap(sizes[0], sizes[1]);
  std::vector<Tensor> all;
  for (size_t i = 0; i < tensors.size(); ++i) {
    std::vector<int64_t> shape(tensors.size(), 1);
    shape[swap && i < 2 ? 1 - i : i] = -1;
    all.push_back(tensors[i].reshape(shape).expand(sizes));
  }
  return all;
}
/// Sums products over pairs of dimensions.
inline Tensor tensordot(const Tensor& a, const Tensor& b, IntArrayRef dims_a, IntArrayRef dims_b) {
  TORCH_CHECK(dims_a.size() == dims_b.size(), "tensordot: both dimension lists should have same length");
  detail::Labelled x{a, {}}, y{b, {}};
  for (int64_t d = 0; d < a.dim(); ++d) x.labels.push_back(int(d));
  for (int64_t d = 0; d < b.dim(); ++d) y.labels.push_back(int(a.dim() + d));
  for (size_t i = 0; i < dims_a.size(); ++i) {
    const int64_t da = dims_a[i] < 0 ? dims_a[i] + a.dim() : dims_a[i],
                  db = dims_b[i] < 0 ? dims_b[i] + b.dim() : dims_b[i];
    TORCH_CHECK_INDEX(da >= 0 && da < a.dim() && db >= 0 && db < b.dim(), "tensordot: a dimension is out of range");
    y.labels[size_t(db)] = int(da);
  }
  return detail::contracted(x, y, [](int) { return false; }).tensor;
}
inline Tensor chain_matmul(TensorList matrices) {
  TORCH_CHECK(!matrices.empty(), "chain_matmul: Expected one or more matrices");
  Tensor r = matrices[0];
  for (size_t i = 1; i < matrices.size(); ++i) r = r.matmul(matrices[i]);
  return r;
}

inline Tensor atleast_1d(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }
inline Tensor atleast_2d(const Tensor& t) { return t.dim() < 2 ? atleast_1d(t).unsqueeze(0) : t; }
inline Tensor atleast_3d(const Tensor& t) { return t.dim() < 3 ? atleast_2d(t).unsqueeze(-1) : t; }
inline Tensor block_diag(TensorList tensors) {
  int64_t columns = 0;
  for (const Tensor& t : tensors) columns += atleast_2d(t).size(1);
  std::vector<Tensor> bands;
  int64_t left = 0;
  for (const Tensor& each : tensors) {
    const Tensor t = atleast_2d(each);
    bands.push_back(vesta::constant_pad_nd(t, {left, columns - left - t.size(1)}));
    left += t.size(1);
  }
  return bands.empty() ? torch::empty({1, 0}) : vesta::cat(bands);
}
inline Tensor cartesian_prod(TensorList tensors) {
  std::vector<Tensor> columns;
  for (const Tensor& t : meshgrid(tensors)) columns.push_back(t.flatten());
  return columns.size() == 1 ? columns[0] : vesta::stack(columns, 1);
}

// ---- Windows (each of N values; a periodic one is that of N + 1 without its last) ----------------------------------
namespace detail {
/// Calls f with 2 pi n / N for each n, of the dtype that the options state.
template <class F>
Tensor window(int64_t length, bool periodic, const TensorOptions& o, F f) {
  TORCH_CHECK(length >= 0, "window: expected a length of 0 or more, got ", length);
  if (length <= 1) return torch::ones({length}, o);
  const double step = 2 * std::numbers::pi / double(periodic ? length : length - 1);
  const TensorOptions plain = TensorOptions(o.dtype()).device(optional<Device>(o.device()));
  return o.finish(f(torch::arange(length, plain).mul_(step)));
}
}  // namespace detail
inline Tensor hamming_window(int64_t length, bool periodic = true, double alpha = 0.54, double beta = 0.46,
                             const TensorOptions& o = {}) {
  return detail::window(length, periodic, o, [=](const Tensor& w) { return w.cos().mul_(-beta).add_(alpha); });
}
inline Tensor hann_window(int64_t length, bool periodic = true, const TensorOptions& o = {}) {
  return hamming_window(length, periodic, 0.5, 0.5, o);
}
inline Tensor hann_window(int64_t length, const TensorOptions& o) { return hann_window(length, true, o); }
inline Tensor bartlett_window(int64_t length, bool periodic = true, const TensorOptions& o = {}) {
  return detail::window(length, periodic, o, [](const Tensor& w) { return 1 - (w / std::numbers::pi - 1).abs(); });
}
inline Tensor blackman_window(int64_t length, bool periodic = true, const TensorOptions& o = {}) {
  return detail::window(length, periodic, o,
                        [](const Tensor& w) { return (w * 2).cos() * 0.08 - w.cos() * 0.5 + 0.42; });
}

// ---- Other names ---------------------------------------------------------------------------------------------------
inline Tensor relu6(const Tensor& t) { return vesta::hardtanh(t, 0, 6); }
inline Tensor log_sigmoid(const Tensor& t) { return vesta::logsigmoid(t); }
inline Tensor reflection_pad1d(const Tensor& t, IntArrayRef p) { return vesta::pad(t, p, "reflect"); }
inline Tensor reflection_pad2d(const Tensor& t, IntArrayRef p) { return vesta::pad(t, p, "reflect"); }
inline Tensor reflection_pad3d(const Tensor& t, IntArrayRef p) { return vesta::pad(t, p, "reflect"); }
inline Tensor replication_pad1d(const Tensor& t, IntArrayRef p) { return vesta::pad(t, p, "replicate"); }
inline Tensor replication_pad2d(const Tensor& t, IntArrayRef p) { return vesta::pad(t, p, "replicate"); }
inline Tensor replication_pad3d(const Tensor& t, IntArrayRef p) { return vesta::pad(t, p, "replicate"); }
inline bool is_tensor(const Tensor&) { return true; }
inline bool is_same_size(const Tensor& a, const Tensor& b) { return a.is_same_size(b); }
inline Tensor detach(const Tensor& t) { return t.detach(); }
inline Tensor alias(const Tensor& t) { return t.alias(); }
inline Tensor index(const Tensor& t, const std::vector<vesta::Index>& at) { return t.index(at); }
inline bool is_nonzero(const Tensor& t) { return t.is_nonzero(); }
inline Dtype result_type(const Tensor& a, const Tensor& b) { return a.mul(b).dtype(); }

inline Tensor frobenius_norm(const Tensor& t, IntArrayRef dim, bool keepdim = false) {
  return vesta::linalg_vector_norm(t, 2, vesta::MaybeDims(dim), keepdim);
}

namespace linalg {

/// The norm of vectors along one dimension or of matrices along two; of all elements without `dim`.
inline Tensor norm(const Tensor& t, const optional<Scalar>& ord = {}, OptionalIntArrayRef dim = {},
                   bool keepdim = false);
inline Tensor matrix_norm(const Tensor& t, std::string_view ord = "fro", IntArrayRef dim = {-2, -1},
                          bool keepdim = false) {
  if (ord == "fro") return frobenius_norm(t, dim, keepdim);
  TORCH_CHECK(ord == "nuc", "linalg.matrix_norm: expected the order \"fro\" or \"nuc\", got \"", ord, '"');
  Tensor r = vesta::linalg_svdvals(t.movedim(dim, IntArrayRef({-2, -1}))).sum(-1);
  if (keepdim) r = r.unsqueeze(-1).unsqueeze(-1).movedim(IntArrayRef({-2, -1}), dim);
  return r;
}
/// Orders 1 and infinity are the largest sums of columns and rows, 2 the largest singular value; negative ones the
/// smallest.
inline Tensor matrix_norm(const Tensor& t, Scalar ord, IntArrayRef dim = {-2, -1}, bool keepdim = false) {
  const double p = ord.real(), size = std::abs(p);
  TORCH_CHECK(size == 1 || size == 2 || std::isinf(size), "linalg.matrix_norm: Order ", p, " not supported.");
  const Tensor m = t.movedim(dim, IntArrayRef({-2, -1}));
  const Tensor sums = size == 2 ? vesta::linalg_svdvals(m) : m.abs().sum(size == 1 ? -2 : -1);
  Tensor r = p > 0 ? sums.amax(-1) : sums.amin(-1);
  if (keepdim) r = r.unsqueeze(-1).unsqueeze(-1).movedim(IntArrayRef({-2, -1}), dim);
  return r;
}
inline Tensor norm(const Tensor& t, const optional<Scalar>& ord, OptionalIntArrayRef dim, bool keepdim) {
  const bool matrices = dim ? (*dim).size() == 2 : ord && t.dim() == 2;
  if (matrices && ord) return matrix_norm(t, *ord, dim ? IntArrayRef(*dim) : IntArrayRef({-2, -1}), keepdim);
  TORCH_CHECK(dim || !ord || t.dim() == 1,
              "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D.");
  return vesta::linalg_vector_norm(t, ord ? ord->real() : 2, dim, keepdim);
}
inline Tensor norm(const Tensor& t, std::string_view ord, OptionalIntArrayRef dim = {}, bool keepdim = false) {
  const IntArrayRef dims = dim ? IntArrayRef(*dim) : IntArrayRef({-2, -1});
  return matrix_norm(t, ord, dims, keepdim);
}
inline Tensor matrix_norm(const Tensor& t, const char* ord, IntArrayRef dim = {-2, -1}, bool keepdim = false) {
  return matrix_norm(t, std::string_view(ord), dim, keepdim);
}
inline Tensor norm(const Tensor& t, const char* ord, OptionalIntArrayRef dim = {}, bool keepdim = false) {
  return norm(t, std::string_view(ord), dim, keepdim);
}
/// The pseudoinverse, by singular values above rcond times the largest.
inline Tensor pinv(const Tensor& t, optional<double> rcond = {}, bool hermitian = false) {
  (void)hermitian;  // the same values, by the general way
  const auto [u, s, vh] = vesta::linalg_svd(t, false);
  const double eps =
      t.dtype() == kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const double limit = rcond.value_or(eps * double(std::max(t.size(-1), t.size(-2))));
  const Tensor inverse = vesta::where(s > s.amax(-1, true) * limit, s.reciprocal(), 0.0);
  return (vh.mT().conj() * inverse.unsqueeze(-2)).matmul(u.mT().conj());
}
inline Tensor matrix_rank(const Tensor& t, optional<double> tol = {}) {
  const Tensor s = vesta::linalg_svdvals(t);
  const double eps =
      t.dtype() == kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const Tensor limit =
      tol ? torch::full({1}, *tol, s.options()) : s.amax(-1, true) * (eps * double(std::max(t.size(-1), t.size(-2))));
  return (s > limit).sum(-1);
}
inline Tensor multi_dot(TensorList tensors) { return chain_matmul(tensors); }

}  // namespace linalg

inline Tensor linalg_norm(const Tensor& t, const optional<Scalar>& ord = {}, OptionalIntArrayRef dim = {},
                          bool keepdim = false) {
  return linalg::norm(t, ord, dim, keepdim);
}
inline Tensor linalg_norm(const Tensor& t, const char* ord, OptionalIntArrayRef dim = {}, bool keepdim = false) {
  return linalg::norm(t, std::string_view(ord), dim, keepdim);
}
inline Tensor linalg_matrix_norm(const Tensor& t, Scalar ord, IntArrayRef dim = {-2, -1}, bool keepdim = false) {
  return linalg::matrix_norm(t, ord, dim, keepdim);
}
inline Tensor linalg_matrix_norm(const Tensor& t, const char* ord = "fro", IntArrayRef dim = {-2, -1},
                                 bool keepdim = false) {
  return linalg::matrix_norm(t, std::string_view(ord), dim, keepdim);
}
inline Tensor linalg_pinv(const Tensor& t, double rcond = 1e-15, bool hermitian = false) {
  return linalg::pinv(t, rcond, hermitian);
}
inline Tensor linalg_matrix_rank(const Tensor& t, optional<double> tol = {}) { return linalg::matrix_rank(t, tol); }
inline Tensor linalg_matmul(const Tensor& a, const Tensor& b) { return a.matmul(b); }
inline Tensor linalg_diagonal(const Tensor& t, int64_t offset = 0, int64_t dim1 = -2, int64_t dim2 = -1) {
  return t.diagonal(offset, dim1, dim2);
}
inline Tensor linalg_vecdot(const Tensor& a, const Tensor& b, int64_t dim = -1) { return (a.conj() * b).sum(dim); }
inline Tensor nuclear_norm(const Tensor& t, bool keepdim = false) {
  return linalg::matrix_norm(t, "nuc", {-2, -1}, keepdim);
}
inline Tensor linalg_multi_dot(TensorList tensors) { return chain_matmul(tensors); }

// Functions whose namespace has one of its own, under both names.
namespace special {
using vesta::digamma;
using vesta::erf;
using vesta::erfc;
using vesta::erfinv;
using vesta::exp2;
using vesta::expm1;
using vesta::log1p;
using vesta::log_softmax;
using vesta::logit;
using vesta::logsumexp;
using vesta::polygamma;
using vesta::round;
using vesta::sinc;
using vesta::softmax;
using vesta::xlogy;
inline Tensor expit(const Tensor& t) { return vesta::sigmoid(t); }
inline Tensor gammaln(const Tensor& t) { return vesta::lgamma(t); }
inline Tensor psi(const Tensor& t) { return vesta::digamma(t); }
inline Tensor multigammaln(const Tensor& t, int64_t p) { return vesta::mvlgamma(t, p); }
}  // namespace special

}  // namespace torch
