// Functions that libtorch has and Vesta's C++ library has not, written with its ops: einsum, meshgrid, other names.
#pragma once
#include <torch/exceptions.h>
#include <torch/functions.h>

#include <array>
#include <cctype>
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
/// Operands are multiplied from left to right: a path is not followed.
inline Tensor einsum(std::string_view equation, TensorList operands, const OptionalIntArrayRef& /*path*/ = {}) {
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
inline Tensor atleast_1d(const Tensor& t) { return t.dim() == 0 ? t.reshape({1}) : t; }
inline Tensor atleast_2d(const Tensor& t) { return t.dim() < 2 ? atleast_1d(t).unsqueeze(0) : t; }
inline Tensor atleast_3d(const Tensor& t) { return t.dim() < 3 ? atleast_2d(t).unsqueeze(-1) : t; }
#define VESTA_OF_EACH(name)                                     \
  inline std::vector<Tensor> name(TensorList tensors) {         \
    std::vector<Tensor> all;                                    \
    for (const Tensor& t : tensors) all.push_back(name(t));     \
    return all;                                                 \
  }
VESTA_OF_EACH(atleast_1d)
VESTA_OF_EACH(atleast_2d)
VESTA_OF_EACH(atleast_3d)
#undef VESTA_OF_EACH
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

/// Returns the choices of r of a list's elements, as rows.
inline Tensor combinations(const Tensor& t, int64_t r = 2, bool with_replacement = false) {
  TORCH_CHECK(t.defined() && t.dim() == 1, "combinations: expected a 1-D tensor");
  TORCH_CHECK(r >= 0, "combinations: expected r >= 0, got ", r);
  if (r == 0) return torch::empty({0}, t.options());
  std::vector<int64_t> rows, at(size_t(r), 0);
  const int64_t n = t.numel(), step = with_replacement ? 0 : 1;
  for (int64_t i = 0; i < r; ++i) at[size_t(i)] = i * step;
  while (n > 0 && at.back() < n) {
    rows.insert(rows.end(), at.begin(), at.end());
    int64_t i = r - 1;
    while (i > 0 && at[size_t(i)] == n - 1 - (r - 1 - i) * step) --i;
    ++at[size_t(i)];
    for (int64_t k = i + 1; k < r; ++k) at[size_t(k)] = at[size_t(k - 1)] + step;
    if (at.front() > n - 1 - (r - 1) * step) break;
  }
  const Tensor order = torch::tensor(rows, kLong).to(t.device());
  return t.index_select(0, order).reshape({-1, r});
}
inline Tensor count_nonzero(const Tensor& t, optional<int64_t> dim = {}) {
  return vesta::count_nonzero(t, dim ? IntArrayRef(*dim) : IntArrayRef());
}
/// Returns the norms of the slices along `dim`, of sizes that broadcast.
inline Tensor norm_except_dim(const Tensor& v, int64_t pow = 2, int64_t dim = 0) {
  TORCH_CHECK(v.defined(), "norm_except_dim: expected a defined tensor.");
  if (dim == -1) return v.norm(double(pow));
  std::vector<int64_t> others;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (d != dim) others.push_back(d);
  }
  return v.norm(double(pow), others, true);
}
inline Tensor nll_loss_nd(const Tensor& input, const Tensor& target, vesta::MaybeTensor weight = {},
                          int64_t reduction = Reduction::Mean, int64_t ignore_index = -100) {
  return nll_loss(input, target, weight, reduction, ignore_index);
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
/// Returns the dtype of the sum of operands, numbers among them.
inline Dtype result_type(const vesta::Operand& a, const vesta::Operand& b) { return vesta::mul(a, b).dtype(); }
/// Returns whether values of one element type may be written to another: not complex to real, real to integer, or a
/// number to bool.
inline bool can_cast(Dtype from, Dtype to) {
  const auto rank = [](Dtype d) { return d == kBool ? 0 : vesta::is_complex(d) ? 3 : vesta::is_float(d) ? 2 : 1; };
  return rank(from) <= rank(to);
}

}  // namespace torch
