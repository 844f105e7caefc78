// Products that are made of others: their gradients come from matmul's.
#include <algorithm>
#include <cmath>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

void check_vector(const Tensor& t, const char* op, const char* argument) {
  VESTA_CHECK(t.dim() == 1, runtime, op, ": expected a 1-d tensor, got shape ", t.sizes(), " (", argument, ").");
}

void check_number(const Tensor& t, const char* op) {
  VESTA_CHECK(t.dtype() != DType::bool_, not_implemented, op, ": expected a number dtype, got bool.");
}

void check_matrices(const Tensor& a, const Tensor& b, const char* op) {
  VESTA_CHECK(a.dim() == 2 && b.dim() == 2, value, op, ": expected two matrices, got ", a.sizes(), " and ", b.sizes(),
              ".");
  VESTA_CHECK(a.sizes()[1] == b.sizes()[0], value, op, ": inner sizes must agree, got a ", a.sizes(), " and b ",
              b.sizes(), " (", a.sizes()[1], " vs ", b.sizes()[0], ").");
  check_number(a, op);
}

void check_dot(const Tensor& a, const Tensor& b, const char* op, const char* second) {
  VESTA_CHECK(a.dim() == 1 && b.dim() == 1, runtime, op, ": 1D tensors expected, but got ", a.dim(), "D and ", b.dim(),
              "D tensors.");
  VESTA_CHECK(a.numel() == b.numel(), runtime, op, ": inconsistent tensor size, expected tensor ", a.sizes(),
              " and src ", b.sizes(), " to have the same number of elements.");
  VESTA_CHECK(a.dtype() == b.dtype(), runtime, op, ": expected both vectors to have same dtype, but found ", a.dtype(),
              " (input) and ", b.dtype(), " (", second, ").");
  check_number(a, op);
}

/// Returns a tensor [*, n] as a matrix of rows.
Tensor as_rows(const Tensor& t) {
  if (t.dim() == 2) return t;
  int64_t n = 1;  // counted, not numel / size(-1): rows may have no elements
  for (int64_t d = 0; d + 1 < t.dim(); ++d) n *= t.size(d);
  return reshape(t, {n, t.size(-1)});
}

}  // namespace

Tensor with_factors(Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, double, double), const Tensor& input,
                    const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  const auto is_real = [](Scalar factor) { return factor.imag() == 0; };
  const bool complex = input.is_complex() || a.is_complex() || b.is_complex();
  const auto scaled = [&](const Tensor& t, Scalar factor, const char* name) {
    VESTA_CHECK(is_real(factor) || complex, runtime, "sum of a product: expected a real ", name, " for operands of ",
                t.dtype(), ", got a complex number.");
    return is_real(factor) ? t : mul(t, wrapped(factor));
  };
  return op(scaled(input, beta, "beta"), scaled(a, alpha, "alpha"), b, is_real(beta) ? beta.real() : 1,
            is_real(alpha) ? alpha.real() : 1);
}

Tensor with_factors_inplace(Tensor (*op)(const Tensor&, const Tensor&, const Tensor&, double, double),
                            Tensor (*inplace)(const Tensor&, const Tensor&, const Tensor&, double, double),
                            const Tensor& input, const Tensor& a, const Tensor& b, Scalar beta, Scalar alpha) {
  if (beta.imag() == 0 && alpha.imag() == 0) return inplace(input, a, b, beta.real(), alpha.real());
  return copy_(input, with_factors(op, input, a, b, beta, alpha));
}

TensorPair _linear_backward_weight_composite(const Tensor& grad, const Tensor& input) {
  Dims lead;
  for (int64_t d = 0; d + 1 < grad.dim(); ++d) lead.push_back(d);
  return {matmul(transpose(as_rows(grad), 0, 1), conj(as_rows(input))),
          lead.empty() ? grad : sum(grad, MaybeDims(lead))};
}

Tensor _linear_backward_activation_composite(const Tensor& grad, const Tensor& weight, const Tensor& used,
                                             bool use_gelu, MaybeTensor) {
  const PointwiseInfo& info = use_gelu ? ops::_gelu_tanh.info : ops::relu.info;
  const Tensor of_result = matmul(grad, conj(weight));
  VESTA_CHECK(std::ranges::equal(used.sizes(), of_result.sizes()) && used.dtype() == of_result.dtype(), value,
              "_linear_backward_activation: expected ", of_result.dtype(), " of shape ", of_result.sizes(), ", got ",
              used.dtype(), " of shape ", used.sizes(), " (used).");
  const Tensor* operands[] = {&of_result, &used};
  constexpr double kNone[kMaxParams] = {};
  Tensor r = pointwise_backward(info, 0, operands, 2, kNone);
  VESTA_CHECK(r.defined(), not_implemented, "_linear_backward_activation: expected floats on the CPU or on CUDA, got ",
              of_result.dtype(), " on ", of_result.device(), ".");
  return r;
}

Tensor _wide_matmul_composite(const Tensor& a, const Tensor& b) {
  const Tensor x = a.to(DType::float32);
  return matmul(x, b.is_same(a) ? x : b.to(DType::float32));
}

Tensor mm_composite(const Tensor& a, const Tensor& b) {
  check_matrices(a, b, "mm");
  return matmul(a, b);
}

Tensor bmm_composite(const Tensor& a, const Tensor& b) {
  VESTA_CHECK(a.dim() == 3 && b.dim() == 3 && a.sizes()[0] == b.sizes()[0], value,
              "bmm: expected two batches of as many matrices, got ", a.sizes(), " and ", b.sizes(), ".");
  check_number(a, "bmm");
  return named_step(matmul(a, b), "BmmBackward0");
}

namespace {

/// Raises for a factor that is infinite as an element.
void check_factors(DType d, double beta, double alpha, const char* op) {
  for (const double factor : {beta, alpha}) check_range(factor, d, op);
}

/// Asks an op to write onto its first operand, which nobody else has, where that is as good as a new result.
Out onto(const Tensor& t, const Tensor& other) {
  const bool recorded = layer_state.grad_enabled && (t.requires_grad() || other.requires_grad());
  const bool same = promote(t.dtype(), other.dtype()) == t.dtype() && !t.impl()->is_sparse();
  return recorded || !same ? Out{} : Out{&t, Out::inplace};
}

/// The product of matrices, or batches of them.
struct ProductOf {
  Tensor operator()(const Tensor& a, const Tensor& b) const { return matmul(a, b); }
  Tensor wide(const Tensor& a, const Tensor& b) const { return _wide_matmul(a, b); }
};
constexpr ProductOf product_of;

/// Computes multiply(a, b) of 16-bit floats in float32.
template <class Multiply>
Tensor wide_product(const Tensor& a, const Tensor& b, Multiply multiply) {
  if constexpr (requires { multiply.wide(a, b); }) {
    if (a.dtype() == b.dtype()) return multiply.wide(a, b);
  }
  return multiply(a.to(DType::float32), b.to(DType::float32));
}

/// Computes beta * input + alpha * multiply(a, b), whose sizes are `sizes`; the last step writes where `out` says.
/// `mixes`: input may have another dtype.
template <class Multiply>
Tensor added(const Tensor& input, const Tensor& a, const Tensor& b, IntSpan sizes, double beta, double alpha,
             const char* op, Multiply multiply, Out out = {}, bool mixes = false) {
  const bool whole = !is_differentiable(a.dtype());
  VESTA_CHECK(mixes || input.dtype() == a.dtype(), type, op, ": expected operands of the same dtype, got ",
              input.dtype(), " (input) and ", a.dtype(), " (the first factor). Convert one with .to().");
  VESTA_CHECK(std::ranges::equal(IntSpan(broadcast_shapes(sizes, input.sizes(), op)), sizes), value, op,
              ": expected an input that broadcasts to ", sizes, ", got ", input.sizes(), ".");
  VESTA_CHECK(out.kind != Out::inplace || std::ranges::equal(input.sizes(), sizes), value, op, ": output with shape ",
              input.sizes(), " doesn't match the broadcast shape ", sizes, " (an in-place op keeps its shape).");
  check_factors(compute_type(a.dtype()), beta, alpha, op);
  // A product of 16-bit floats may be beyond their range before alpha brings it back, and so may be beta.
  const bool held = std::abs(beta) <= 65504;  // by float16
  const bool wide = (alpha != 1 || !held) && compute_type(a.dtype()) != a.dtype();
  Tensor product = wide ? wide_product(a, b, multiply) : multiply(a, b);
  // As BLAS has it: what a factor of 0 ignores may be NaN.
  if (alpha == 0) product = masked_fill(product, ones(product.sizes(), DType::bool_, product.device()), 0);
  else if (alpha != 1)
    product = ops::mul(product, wrapped(whole ? Scalar(int64_t(alpha)) : Scalar(alpha)), onto(product, product));
  if (beta != 0) {
    const double factor[kMaxParams] = {beta};
    if (out.kind == Out::inplace) return pointwise_as(op, ops::add.info, factor, out, product, input);
    product = ops::add(product, input, beta, out.kind == Out::given ? out : onto(product, input));
    if (out.kind == Out::given) return product;
  } else if (layer_state.grad_enabled && input.requires_grad()) {  // its gradient is 0, not missing
    product = where(ones(IntList(), DType::bool_, product.device()), product, input);
  }
  if (wide) product = product.to(promote(a.dtype(), input.dtype()));
  return write_result(out, product, op);
}

/// Runs a sum of a product in place, in the dtypes given, as PyTorch does under autocast: by `body`, which takes an
/// Out, or by the op where that is recorded, which needs the value before.
template <class Op, class Body>
Tensor in_place(const Op& op, const char* name, Body body, const Tensor& input, const Tensor& a, const Tensor& b,
                double beta, double alpha) {
  const autocast::Pause as_given;
  const bool recorded = layer_state.grad_enabled && (input.requires_grad() || a.requires_grad() || b.requires_grad());
  const bool sparse = a.is_sparse() || b.is_sparse();
  if (!sparse && may_overwrite(input, recorded, name)) {
    return body(input, a, b, beta, alpha, name, Out{&input, Out::inplace});
  }
  return copy_(input, op(recorded ? clone(input) : input, a, b, beta, alpha));
}

/// Cuts off the fractions of an integer product's factors, as PyTorch does for these ops.
void whole_factors(DType d, double* beta, double* alpha, const char* op) {
  if (is_differentiable(d)) return;
  for (double* factor : {beta, alpha}) {
    VESTA_CHECK(std::abs(*factor) <= 0x1p53, runtime, op, ": value ", *factor, " cannot be converted to type ", d,
                " without overflow (", factor == beta ? "beta" : "alpha", ").");
    *factor = std::trunc(*factor);
  }
}

void check_batches(const Tensor& a, const Tensor& b, const char* op) {
  VESTA_CHECK(a.dim() == 3 && b.dim() == 3 && a.size(0) == b.size(0) && a.size(2) == b.size(1), runtime, op,
              ": expected batches [b, n, m] and [b, m, p], got ", a.sizes(), " (batch1) and ", b.sizes(), " (batch2).");
  check_number(a, op);
}

/// Returns whether mat1 @ mat2 + input is what `linear` computes, which adds the bias without a pass of its own.
bool is_linear_layer(const Tensor& input, const Tensor& mat1, const Tensor& mat2) {
  const DType dtype = mat1.dtype();
  const bool sparse = input.impl()->is_sparse() || mat1.impl()->is_sparse() || mat2.impl()->is_sparse();
  return input.dim() == 1 && input.size(0) == mat2.size(1) && is_differentiable(dtype) && input.dtype() == dtype &&
         mat2.dtype() == dtype && !sparse;
}

Tensor addmm_to(const Tensor& input, const Tensor& mat1, const Tensor& mat2, double beta, double alpha, const char* op,
                Out out = {}) {
  check_matrices(mat1, mat2, op);
  whole_factors(mat1.dtype(), &beta, &alpha, op);
  return added(input, mat1, mat2, Dims{mat1.size(0), mat2.size(1)}, beta, alpha, op, product_of, out);
}
Tensor baddbmm_to(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha, const char* op,
                  Out out = {}) {
  check_batches(a, b, op);
  whole_factors(a.dtype(), &beta, &alpha, op);
  return added(input, a, b, Dims{a.size(0), a.size(1), b.size(2)}, beta, alpha, op, product_of, out);
}
Tensor addbmm_to(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha, const char* op,
                 Out out = {}) {
  check_batches(a, b, op);
  whole_factors(a.dtype(), &beta, &alpha, op);
  const auto multiply = [](const Tensor& x, const Tensor& y) {
    return sum(matmul(x, y), MaybeDims(0), false, x.dtype());
  };
  return added(input, a, b, Dims{a.size(1), b.size(2)}, beta, alpha, op, multiply, out);
}
Tensor addr_to(const Tensor& input, const Tensor& vec1, const Tensor& vec2, double beta, double alpha, const char* op,
               Out out = {}) {
  check_vector(vec1, op, "vec1");
  check_vector(vec2, op, "vec2");
  const DType result = promote(input.dtype(), promote(vec1.dtype(), vec2.dtype()));
  const auto check_whole = [&](double factor, const char* name) {
    VESTA_CHECK(is_differentiable(result) || factor == std::trunc(factor), type, op,
                ": For integral input tensors, argument ", name, " must not be a floating point number, got ", factor,
                " for operands of ", result, " (", name, ").");
  };
  check_whole(beta, "beta");
  check_whole(alpha, "alpha");
  whole_factors(result, &beta, &alpha, op);
  check_factors(result, beta, alpha, op);
  if (is_bool(input.dtype()) && is_bool(vec1.dtype()) && is_bool(vec2.dtype())) {  // "and" and "or"
    const Tensor product = logical_and(logical_and(unsqueeze(vec1, 1), vec2), wrapped(alpha != 0));
    return ops::logical_or(product, logical_and(input, wrapped(beta != 0)), out);
  }
  const bool mixed = is_differentiable(result) && !is_differentiable(vec1.dtype());  // an integer has no fractions
  const Tensor a = mixed ? vec1.to(result) : vec1;
  return added(input, a, vec2, Dims{vec1.size(0), vec2.size(0)}, beta, alpha, op, outer, out, true);
}
Tensor addmv_to(const Tensor& input, const Tensor& mat, const Tensor& vec, double beta, double alpha, const char* op,
                Out out = {}) {
  VESTA_CHECK(mat.dim() == 2 && vec.dim() == 1 && mat.size(1) == vec.size(0), runtime, op,
              ": expected a matrix [n, m] and a vector [m], got ", mat.sizes(), " (mat) and ", vec.sizes(), " (vec).");
  check_number(mat, op);
  whole_factors(mat.dtype(), &beta, &alpha, op);
  check_factors(mat.dtype(), beta, alpha, op);
  const auto multiply = [](const Tensor& x, const Tensor& y) { return squeeze(matmul(x, unsqueeze(y, 1)), 1); };
  return added(input, mat, vec, Dims{mat.size(0)}, beta, alpha, op, multiply, out);
}

}  // namespace

Tensor addmm_composite(const Tensor& input, const Tensor& mat1, const Tensor& mat2, double beta, double alpha) {
  check_matrices(mat1, mat2, "addmm");
  if (beta == 1 && alpha == 1 && is_linear_layer(input, mat1, mat2)) return linear(mat1, transpose(mat2, 0, 1), input);
  return addmm_to(input, mat1, mat2, beta, alpha, "addmm");
}

namespace {

Tensor activation_of(const Tensor& x, bool use_gelu) { return use_gelu ? gelu(x, "tanh") : relu(x); }

}  // namespace

TensorPair _fused_linear_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, bool use_gelu,
                                   bool keep) {
  const Tensor x = linear(input, weight, bias);
  return {activation_of(x, use_gelu), use_gelu && keep ? x : Tensor()};
}
Tensor _linear_activation_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, bool use_gelu) {
  const bool keep = GradMode::enabled() &&
                    (input.requires_grad() || weight.requires_grad() || (bias.defined() && bias->requires_grad()));
  return std::get<0>(_fused_linear(input, weight, bias, use_gelu, keep));
}
Tensor _addmm_activation_composite(const Tensor& input, const Tensor& mat1, const Tensor& mat2, double beta,
                                   double alpha, bool use_gelu) {
  check_matrices(mat1, mat2, "_addmm_activation");
  if (beta == 1 && alpha == 1 && is_linear_layer(input, mat1, mat2))
    return _linear_activation(mat1, transpose(mat2, 0, 1), input, use_gelu);
  return activation_of(addmm(input, mat1, mat2, beta, alpha), use_gelu);
}
Tensor baddbmm_composite(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return named_step(baddbmm_to(input, a, b, beta, alpha, "baddbmm"), "BaddbmmBackward0");
}
Tensor addbmm_composite(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return addbmm_to(input, a, b, beta, alpha, "addbmm");
}
Tensor addr_composite(const Tensor& input, const Tensor& vec1, const Tensor& vec2, double beta, double alpha, Out out) {
  return addr_to(input, vec1, vec2, beta, alpha, "addr", out);
}
Tensor addmv_composite(const Tensor& input, const Tensor& mat, const Tensor& vec, double beta, double alpha) {
  const autocast::Pause as_given;
  return named_step(addmv_to(input, mat, vec, beta, alpha, "addmv"), "AddmvBackward0");
}

Tensor addmm__composite(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return in_place(ops::addmm, "addmm_", addmm_to, input, a, b, beta, alpha);
}
Tensor baddbmm__composite(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return in_place(ops::baddbmm, "baddbmm_", baddbmm_to, input, a, b, beta, alpha);
}
Tensor addbmm__composite(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  return in_place(ops::addbmm, "addbmm_", addbmm_to, input, a, b, beta, alpha);
}
Tensor addr__composite(const Tensor& input, const Tensor& a, const Tensor& b, double beta, double alpha) {
  const auto addr = [](const Tensor& t, const Tensor& x, const Tensor& y, double of_t, double of_xy) {
    return ops::addr(t, x, y, of_t, of_xy, Out{});
  };
  return in_place(addr, "addr_", addr_to, input, a, b, beta, alpha);
}
Tensor addmv__composite(const Tensor& input, const Tensor& mat, const Tensor& vec, double beta, double alpha) {
  check_number(input, "addmv_");
  return in_place(ops::addmv, "addmv_", addmv_to, input, mat, vec, beta, alpha);
}

Tensor mv_composite(const Tensor& input, const Tensor& vec) {
  VESTA_CHECK(input.dim() == 2 && vec.dim() == 1, runtime, "mv: expected a matrix and a vector, got ", input.sizes(),
              " (input) and ", vec.sizes(), " (vec).");
  VESTA_CHECK(input.size(1) == vec.size(0), runtime, "mv: size mismatch, got input ", input.sizes(), ", vec ",
              vec.sizes(), ".");
  check_number(input, "mv");
  return named_step(matmul(input, vec), "MvBackward0");
}

Tensor dot_composite(const Tensor& input, const Tensor& tensor) {
  check_dot(input, tensor, "dot", "tensor");
  return named_step(matmul(input, tensor), "DotBackward0");
}

Tensor vdot_composite(const Tensor& input, const Tensor& other) {
  check_dot(input, other, "vdot", "other");
  return named_step(matmul(input.is_complex() ? conj_physical(input) : input, other), "VdotBackward0");
}

namespace {

/// Returns whether out= is a tensor that a result may be computed in under another shape.
bool is_dense_out(Out out, IntSpan sizes, const Tensor& a, const Tensor& b) {
  return out.kind == Out::given && out.tensor->is_contiguous() && std::ranges::equal(out.tensor->sizes(), sizes) &&
         out.tensor->device() == a.device() && can_cast(promote(a.dtype(), b.dtype()), out.tensor->dtype());
}

}  // namespace

Tensor inner_composite(const Tensor& input, const Tensor& other, Out out) {
  if (input.dim() == 0 || other.dim() == 0) return ops::mul(input, other, out);
  VESTA_CHECK(input.size(-1) == other.size(-1), runtime, "inner: the last dimension must match on both input tensors ",
              "but got shapes ", input.sizes(), " and ", other.sizes(), ".");
  const int64_t n = input.size(-1);
  Dims shape(input.sizes());
  shape.pop_back();
  for (int64_t d = 0; d + 1 < other.dim(); ++d) shape.push_back(other.size(d));
  int64_t rows = 1, columns = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) rows *= input.size(d);
  for (int64_t d = 0; d + 1 < other.dim(); ++d) columns *= other.size(d);
  Tensor flat;  // out as a matrix, where the product may be written there while the operands are read
  if (is_dense_out(out, shape, input, other) && overlap(*out.tensor, input) == Overlap::none &&
      overlap(*out.tensor, other) == Overlap::none) {
    check_out_not_recorded(layer_state.grad_enabled && (input.requires_grad() || other.requires_grad()), "inner");
    flat = view(*out.tensor, {rows, columns});
  }
  const Destination offered(flat.defined() ? std::span<const Tensor>(&flat, 1) : std::span<const Tensor>());
  const Tensor product = matmul(reshape(input, {rows, n}), transpose(reshape(other, {columns, n}), 0, 1));
  if (!flat.defined() || !product.is_same(flat)) return write_result(out, view(product, shape), "inner");
  out.tensor->impl()->bump("inner");
  return *out.tensor;
}

Tensor outer_composite(const Tensor& input, const Tensor& vec2, Out out) {
  check_vector(input, "outer", "input");
  check_vector(vec2, "outer", "vec2");
  return ops::mul(unsqueeze(input, 1), vec2, out);
}

namespace {

constexpr int64_t kShortRow = 64;  // elements, of rows that are worth being made longer first

/// Repeats a factor's elements (`each`) or its last dimension as a whole `count` times along that.
Tensor with_long_rows(const Tensor& x, int64_t count, bool each) {
  const int64_t at = x.dim() - (each ? 0 : 1);
  Dims sizes(x.sizes()), rows(x.sizes());
  sizes.insert(size_t(at), count);
  rows.back() *= count;
  return reshape(expand(unsqueeze(x, at), sizes), rows);
}

}  // namespace

Tensor kron_composite(const Tensor& input, const Tensor& other, Out out) {
  const int64_t ndim = std::max(input.dim(), other.dim());
  Dims a, b, joined;
  for (int64_t d = 0; d < ndim; ++d) {
    const int64_t of_a = d - (ndim - input.dim()), of_b = d - (ndim - other.dim());
    const int64_t n = of_a < 0 ? 1 : input.size(of_a), m = of_b < 0 ? 1 : other.size(of_b);
    a.push_back(n), a.push_back(1);
    b.push_back(1), b.push_back(m);
    joined.push_back(checked_mul(n, m, "kron"));
  }
  const Tensor left = reshape(input, a), right = reshape(other, b);
  const bool fits = is_dense_out(out, joined, input, other);
  const auto product = [&](const Tensor& x, const Tensor& y) {
    if (!fits) return write_result(out, reshape(mul(x, y), joined), "kron");
    const Tensor parts = view(*out.tensor, broadcast_shapes(x.sizes(), y.sizes(), "kron"));
    ops::mul(x, y, Out{&parts, Out::given});
    return *out.tensor;
  };
  if (ndim > 1) {  // the last dimensions first, in copies that are small beside the result
    const int64_t n = left.size(-2), m = right.size(-1), row = joined.back();
    const int64_t rows = input.numel() / std::max<int64_t>(1, n) + other.numel() / std::max<int64_t>(1, m);
    int64_t all = 1;
    for (int64_t size : joined) all = checked_mul(all, size, "kron");
    if (n > 1 && m > 1 && m < kShortRow && 8 * rows * row <= all) {
      return product(with_long_rows(squeeze(left, -1), m, true), with_long_rows(squeeze(right, -2), n, false));
    }
  }
  return product(left, right);
}

}  // namespace vesta
