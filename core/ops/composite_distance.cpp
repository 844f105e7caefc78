// Distances, products of vectors and covariances. What has no gradient rule of its own gets its gradient from the ops
// that it is made of.
#include <algorithm>
#include <limits>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/distance.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

Tensor dist_composite(const Tensor& input, const Tensor& other, double p) {
  check_floating_or_complex(is_differentiable(other.dtype()) ? other : input, "dist");
  return named_step(norm(sub(input, other), p), "DistBackward0");
}

Tensor pairwise_distance_composite(const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  const int64_t last = std::max(x1.dim(), x2.dim()) - 1;
  return norm(add(sub(x1, x2), wrapped(eps)), p, MaybeDims(last), keepdim);
}

Tensor cosine_similarity_composite(const Tensor& x1, const Tensor& x2, int64_t dim, double eps) {
  const DType joint = promote(x1.dtype(), x2.dtype());
  VESTA_CHECK(is_float(joint), runtime,
              "cosine_similarity: expected common dtype to be floating point, yet common "
              "dtype is ",
              joint, ".");
  const Dims shape = broadcast_shapes(x1.sizes(), x2.sizes(), "cosine_similarity");
  const int64_t d = wrap_dim(dim, int64_t(shape.size()), "cosine_similarity");
  const auto unit = [&](const Tensor& x) {
    const int64_t at = d - (int64_t(shape.size()) - x.dim());  // in x, which broadcasts
    const bool whole = shape.empty() || (at >= 0 && x.size(at) == shape[size_t(d)]);
    const Tensor vectors = (whole ? x : expand(x, shape)).to(joint);
    // a size below eps is raised to it, and keeps its gradient, as PyTorch has it
    return std::get<0>(_unit_vectors(vectors, whole && !shape.empty() ? at : d, eps, true));
  };
  return sum(mul(unit(x1), unit(x2)), MaybeDims(dim));
}

namespace {

/// Returns sqrt(|a|^2 + |b|^2 - 2 a b) for the rows of a [*, P, M] and b [*, R, M]: one product. The gradient at 0 is
/// 0.
Tensor euclidean_by_product(const Tensor& a, const Tensor& b) {
  const Tensor squares = sub(add(sum(square(a), MaybeDims(-1), true), mT(sum(square(b), MaybeDims(-1), true))),
                             mul(matmul(a, mT(b)), wrapped(2.0)));
  const Tensor none = le(squares, 0);
  return where(none, wrapped(0.0), sqrt(where(none, wrapped(1.0), squares)));
}

/// Returns the differences of the rows of a [*, P, M] and b [*, R, M], as [*, P, R, M].
Tensor differences(const Tensor& a, const Tensor& b) { return sub(unsqueeze(a, -2), unsqueeze(b, -3)); }

}  // namespace

Tensor cdist_composite(const Tensor& x1, const Tensor& x2, double p, Text compute_mode) {
  check_floating(x1, "cdist", "x1");
  check_floating(x2, "cdist", "x2");
  VESTA_CHECK(x1.dim() >= 2 && x2.dim() >= 2, runtime, "cdist: expected tensors of at least 2 dimensions, got ",
              x1.sizes(), " (x1) and ", x2.sizes(), " (x2).");
  VESTA_CHECK(x1.size(-1) == x2.size(-1), runtime,
              "cdist: X1 and X2 must have the same number of columns. X1: ", x1.size(-1), " X2: ", x2.size(-1), ".");
  VESTA_CHECK(p >= 0, runtime, "cdist: only supports non-negative p values, got ", p, " (p).");
  const bool always = compute_mode == "use_mm_for_euclid_dist", never = compute_mode == "donot_use_mm_for_euclid_dist";
  VESTA_CHECK(always || never || compute_mode == "use_mm_for_euclid_dist_if_necessary", value, "cdist: ", compute_mode,
              " is not a valid value for compute_mode.");
  const int64_t rows = x1.size(-2), columns = x2.size(-2);
  if (x1.size(-1) == 0 || rows == 0 || columns == 0) {  // zeros that belong to the graph
    return sum(differences(x1, x2), MaybeDims(-1));
  }
  if (p == 2 && !never && (always || rows > 25 || columns > 25)) {
    return named_step(euclidean_by_product(x1, x2), "CdistBackward0");
  }
  constexpr int64_t kFew = 4;  // points with which the vectors of a kernel would be mostly empty
  // A norm adds up along the vectors, four times as fast then, in another order. It counts NaN as 1 where p = 0, and
  // shares the gradient of a maximum among equals.
  const bool as_norm = std::max(rows, columns) < kFew && p > 0 && p < std::numeric_limits<double>::infinity();
  const Tensor r = as_norm ? norm(differences(x1, x2), p, MaybeDims(-1)) : _distances(x1, x2, p);
  return named_step(r, "CdistBackward0");
}

Tensor pdist_composite(const Tensor& input, double p) {
  check_floating(input, "pdist");
  VESTA_CHECK(input.dim() == 2, runtime, "pdist: only supports 2D tensors, got: ", input.dim(), "D.");
  VESTA_CHECK(p >= 0, runtime, "pdist: only supports non-negative p values, got ", p, " (p).");
  const double norm = input.size(1) == 0 ? 1 : p;  // points without coordinates: distances of 0, in any norm
  return named_step(_distances(input, {}, norm), "PdistBackward0");
}

Dims check_distances(const Tensor& x1, const Tensor& x2, double p) {
  constexpr const char* op = "_distances";
  const bool pairs = !x2.defined();
  check_floating(x1, op, "x1");
  if (!pairs) check_floating(x2, op, "x2");
  VESTA_CHECK(!pairs || x1.dim() == 2, value, op, ": expected x1 [N, M], got ", x1.sizes(), ".");
  VESTA_CHECK(pairs || (x1.dim() >= 2 && x2.dim() >= 2 && x1.size(-1) == x2.size(-1)), value, op,
              ": expected x1 [*, P, M] and x2 [*, R, M], got ", x1.sizes(), " and ", x2.sizes(), ".");
  VESTA_CHECK(p >= 0, value, op, ": expected p >= 0, got ", p, ".");
  const int64_t n = x1.size(-2);
  if (pairs) return {n * std::max<int64_t>(0, n - 1) / 2};
  const auto batches = [](const Tensor& x) { return x.sizes().subspan(0, size_t(x.dim()) - 2); };
  Dims shape = broadcast_shapes(batches(x1), batches(x2), "cdist");
  shape.push_back(n), shape.push_back(x2.size(-2));
  return shape;
}

void check_distances_backward(const Tensor& grad, const Tensor& x1, const Tensor& x2, double p,
                              const Tensor& distances) {
  const Dims shape = check_distances(x1, x2, p);
  VESTA_CHECK(std::ranges::equal(grad.sizes(), shape) && std::ranges::equal(distances.sizes(), shape), value,
              "_distances_backward: expected shape ", IntSpan(shape), ", got ", grad.sizes(), " (grad) and ",
              distances.sizes(), " (distances).");
}

Tensor _distances_composite(const Tensor& x1, MaybeTensor x2, double p) {
  check_distances(x1, x2, p);
  const auto size = [&](const Tensor& d) {
    if (p > 0) return norm(d, p, MaybeDims(-1));
    return sum(where(isnan(d), d, ne(d, 0).to(d.dtype())), MaybeDims(-1));  // a norm would count NaN as 1
  };
  if (x2.defined()) return size(differences(x1, *x2));
  const Tensor pairs = triu_indices(x1.size(0), x1.size(0), 1, DType::int64, x1.device());
  const Tensor from = index_select(x1, 0, select(pairs, 0, 0)), to = index_select(x1, 0, select(pairs, 0, 1));
  return size(sub(from, to));
}

/// With d = x1 - x2 and D = |d|_p, the slope of D is sign(d) (|d| / D)^(p - 1).
Tensor _distances_backward_composite(const Tensor& grad, const Tensor& x1, MaybeTensor x2, double p,
                                     const Tensor& distances) {
  check_distances_backward(grad, x1, x2, p, distances);
  if (!x2.defined()) {  // each pair stands twice in a matrix: x1 is its first point, and its second one
    const int64_t n = x1.size(0);
    const Tensor pairs = triu_indices(n, n, 1, DType::int64, x1.device());
    const Tensor place = add(mul(select(pairs, 0, 0), n), select(pairs, 0, 1));
    const auto matrix = [&](const Tensor& t) {
      const Tensor upper = reshape(index_copy(zeros({n * n}, t.dtype(), t.device()), 0, place, t), {n, n});
      return add(upper, mT(upper));
    };
    return _distances_backward(matrix(grad), x1, x1, p, matrix(distances));
  }
  const Tensor d = differences(x1, *x2), g = unsqueeze(grad, -1), size = unsqueeze(distances, -1);
  const Tensor none = eq(size, 0);
  Tensor slope;
  if (p == 0) slope = mul(sign(d), wrapped(0.0));
  else if (p == 1) slope = sign(d);
  else if (p == std::numeric_limits<double>::infinity())
    slope = where(eq(abs(d), size), sign(d), where(isnan(size), size, wrapped(0.0)));
  else if (p == 2) slope = where(none, wrapped(0.0), div(d, where(none, wrapped(1.0), size)));
  else {
    const Tensor flat = logical_or(none, eq(d, 0));
    const Tensor part = div(where(flat, wrapped(1.0), abs(d)), where(flat, wrapped(1.0), size));
    slope = where(flat, wrapped(0.0), mul(sign(d), pow(part, wrapped(p - 1))));
  }
  return sum(mul(g, slope), MaybeDims(-2));
}

Tensor renorm_composite(const Tensor& input, double p, int64_t dim, double maxnorm, Out out) {
  check_floating_or_complex(input, "renorm");
  VESTA_CHECK(p > 0, runtime, "renorm: non-positive-norm not supported, got ", p, " (p).");
  VESTA_CHECK(maxnorm >= 0, runtime, "renorm: expected maxnorm to be >= 0 but got ", maxnorm, ".");
  VESTA_CHECK(input.dim() > 1, runtime, "renorm: input needs at least 2 dimensions, got ", input.dim(), " dimensions.");
  const int64_t d = wrap_dim(dim, input.dim(), "renorm");
  Dims others;
  for (int64_t k = 0; k < input.dim(); ++k) {
    if (k != d) others.push_back(k);
  }
  const bool recorded = layer_state.grad_enabled && input.requires_grad();
  const Tensor x = recorded && out.kind == Out::inplace ? clone(input) : input;  // what the gradient saves
  const Tensor size = norm(x, p, MaybeDims(others), true);
  const Tensor factor =
      where(gt(size, wrapped(maxnorm)), div(wrapped(maxnorm), add(size, wrapped(1e-7))), wrapped(1.0));
  const Tensor scale = factor.to(size.dtype());
  if (out.kind == Out::inplace && may_overwrite(input, recorded, "renorm_")) {
    constexpr double params[kMaxParams] = {};
    return pointwise_as("renorm_", ops::mul.info, params, out, input, scale);
  }
  if (out.kind == Out::given && input.dtype() == out.tensor->dtype()) return ops::mul(input, scale, out);
  const Tensor scaled = named_step(contiguous(mul(x, scale)), "RenormBackward0");  // as PyTorch has it
  if (out.kind != Out::given) return write_result(out, scaled, "renorm_");
  write_out(*out.tensor, scaled, "renorm", true);
  return *out.tensor;
}

// ---- products ----

int64_t check_cross(const Tensor& input, const Tensor& other, int64_t dim) {
  VESTA_CHECK(input.dtype() == other.dtype(), type, "linalg.cross: expected operands of one dtype, got ", input.dtype(),
              " (input) and ", other.dtype(), " (other). Convert one with .to().");
  VESTA_CHECK(input.dim() == other.dim(), runtime, "linalg.cross: inputs must have the same number of dimensions, got ",
              input.sizes(), " (input) and ", other.sizes(), " (other).");
  const int64_t d = wrap_dim(dim, input.dim(), "linalg.cross");
  VESTA_CHECK(input.dim() > 0 && input.size(d) == 3 && other.size(d) == 3, runtime, "linalg.cross: inputs dimension ",
              dim, " must have length 3. Got ", input.sizes(), " (input) and ", other.sizes(), " (other).");
  VESTA_CHECK(input.dtype() != DType::bool_ || other.dtype() != DType::bool_, not_implemented,
              "linalg.cross: expected a number dtype, got bool.");
  return d;
}

Tensor linalg_cross_composite(const Tensor& input, const Tensor& other, int64_t dim) {
  const int64_t d = check_cross(input, other, dim);
  const auto shifted = [&](const Tensor& x, int64_t by) { return roll(x, IntList(-by), IntList(d)); };
  return sub(mul(shifted(input, 1), shifted(other, 2)), mul(shifted(input, 2), shifted(other, 1)));
}

Tensor cross_composite(const Tensor& input, const Tensor& other, MaybeInt dim) {
  if (dim) return linalg_cross(input, other, *dim);
  for (int64_t d = 0; d < input.dim(); ++d) {
    if (input.size(d) == 3) return linalg_cross(input, other, d);
  }
  VESTA_CHECK(false, runtime, "cross: no dimension of size 3 in input, got shape ", input.sizes(), ".");
}

namespace {
/// Returns x**0 to x**(n - 1) in a new last dimension. Few are an op each, whose second derivatives have no differences
/// in them, as those of cumprod have.
Tensor powers_of(const Tensor& x, int64_t n) {
  if (n <= 1024) {
    TensorVector powers = {ones_like(x)};
    while (int64_t(powers.size()) < n) powers.push_back(mul(powers.back(), x));
    return stack(powers, -1);
  }
  const Tensor column = unsqueeze(x, -1);
  Dims sizes(column.sizes());
  sizes.back() = n - 1;
  return cat({ones_like(column), cumprod(expand(column, sizes), -1)}, -1);
}
}  // namespace

Tensor linalg_vander_composite(const Tensor& x, MaybeInt N) {
  const Tensor line = x.dim() > 0 ? x : unsqueeze(x, 0);
  const int64_t n = N.value_or(line.size(-1));
  VESTA_CHECK(n > 1, runtime, "linalg.vander: expected N > 1, got ", n, N ? " (N)." : " elements (x).");
  const Tensor values = is_integral(x.dtype()) || x.dtype() == DType::bool_ ? line.to(DType::int64) : line;
  return powers_of(values, n);
}

Tensor vander_composite(const Tensor& x, MaybeInt N, bool increasing) {
  VESTA_CHECK(x.dim() == 1, runtime, "vander: x must be a one-dimensional tensor, got shape ", x.sizes(), ".");
  const int64_t n = N.value_or(x.size(0));
  VESTA_CHECK(n >= 0, runtime, "vander: N must be non-negative, got ", n, ".");
  const Tensor values = is_integral(x.dtype()) || x.dtype() == DType::bool_ ? x.to(DType::int64) : x;
  if (n == 0) return empty({x.size(0), 0}, values.dtype(), values.device());
  const Tensor powers = powers_of(values, n);
  return increasing ? powers : flip(powers, -1);
}

// ---- covariances ----

Tensor cov_composite(const Tensor& input, int64_t correction, MaybeTensor fweights, MaybeTensor aweights) {
  VESTA_CHECK(input.dim() <= 2, runtime, "cov: expected input to have two or fewer dimensions but got an input with ",
              input.dim(), " dimensions.");
  VESTA_CHECK(input.dtype() != DType::bool_, not_implemented, "cov: bool dtype is not supported for input.");
  const Tensor x = (input.dim() < 2 ? reshape(input, {1, -1}) : input)
                       .to(is_differentiable(input.dtype()) ? input.dtype() : default_dtype());
  const int64_t count = x.size(1);
  Tensor weights;
  const auto check = [&](const Tensor& w, const char* name, bool integral) {
    VESTA_CHECK(w.dim() <= 1 && w.numel() == count, runtime, "cov: expected ", name, " to have one element per ",
                "observation, ", count, ", got shape ", w.sizes(), ".");
    VESTA_CHECK(integral ? is_integral(w.dtype()) && w.dtype() != DType::bool_ : is_float(w.dtype()), runtime,
                "cov: expected ", name, " to have ", integral ? "integral" : "floating point", " dtype but got ", name,
                " with ", w.dtype(), " dtype.");
    if (w.device().type() == DeviceType::cpu && w.numel() > 0) {
      VESTA_CHECK(ge(amin(w), 0).item<bool>(), runtime, "cov: ", name, " cannot be negative.");
    }
    return reshape(w, -1);
  };
  if (fweights.defined()) weights = check(*fweights, "fweights", true);
  if (aweights.defined()) {
    const Tensor a = check(*aweights, "aweights", false);
    weights = weights.defined() ? mul(weights, a) : a;
  }
  Tensor total = weights.defined() ? sum(weights) : full({}, double(count), DType::float64, x.device());
  const Tensor average =
      weights.defined() ? div(sum(mul(x, weights), MaybeDims(1), true), total) : mean(x, MaybeDims(1), true);
  Tensor degrees = sub(total, wrapped(correction));
  if (weights.defined() && aweights.defined() && correction != 0) {
    degrees = sub(total, div(mul(sum(mul(weights, *aweights)), wrapped(correction)), total));
  }
  degrees = clamp_min(degrees, 0);
  const Tensor centered = sub(x, average);
  const Tensor weighted = weights.defined() ? mul(centered, weights) : centered;
  const Tensor products = matmul(centered, mT(weighted.is_complex() ? conj_physical(weighted) : weighted));
  const Tensor r =
      div(products, degrees.to(products.is_complex() ? DType::float64 : products.dtype())).to(products.dtype());
  return r.numel() == 1 ? reshape(r, IntList()) : r;
}

Tensor corrcoef_composite(const Tensor& input) {
  VESTA_CHECK(input.dim() <= 2, runtime,
              "corrcoef: expected input to have two or fewer dimensions but got an input with ", input.dim(),
              " dimensions.");
  const Tensor c = cov(input);
  if (c.dim() == 0) return div(c, c);
  const Tensor variance = diagonal(c);
  const Tensor deviation = sqrt(variance.is_complex() ? real(variance) : variance);
  const Tensor r = div(div(c, unsqueeze(deviation, -1)), unsqueeze(deviation, 0));
  if (!r.is_complex()) return clamp(r, wrapped(-1.0), wrapped(1.0));
  const Tensor parts = view_as_real(r);
  return view_as_complex(clamp(parts, wrapped(-1.0), wrapped(1.0)));
}

}  // namespace vesta
