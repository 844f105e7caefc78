// Linear algebra made of decompositions: solutions, inverses, determinants, functions of matrices. Their gradients come
// from those of the decompositions.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

void check_square(const Tensor& t, const char* op, const char* argument = "A") {
  check_matrices(t, op, argument);
  VESTA_CHECK(t.size(-1) == t.size(-2), runtime, op, ": ", argument,
              " must be batches of square matrices, but they are ", t.size(-2), " by ", t.size(-1), " matrices.");
}

Tensor identity_like(const Tensor& t) { return eye(t.size(-1), t.size(-1), t.dtype(), t.device()); }

/// Raises where an element of LAPACK's info is not 0; `what` follows the number.
void check_info(const Tensor& info, const char* op, const char* before, const char* after) {
  if (info.numel() == 0 || !has_values(info)) return;
  const int64_t worst = amax(info).item<int64_t>();
  if (worst == 0) return;
  const Tensor flat = reshape(info, -1);
  const int64_t first = argmax(ne(flat, 0).to(DType::int32)).item<int64_t>();
  const int64_t code = select(flat, 0, first).item<int64_t>();
  const std::string where = info.dim() ? "(Batch element " + std::to_string(first) + "): " : "";
  fail(Cause::linalg, op, ": ", where, before, code, after);
}

Dims batch_sizes(const Tensor& t) { return Dims(t.sizes().first(size_t(t.dim() - 2))); }

}  // namespace

// ---- Cholesky ----

Tensor linalg_cholesky_composite(const Tensor& input, bool upper) {
  const auto [factor, info] = linalg_cholesky_ex(input, upper, false);
  check_info(info, "linalg.cholesky",
             "The factorization could not be completed because the input is not positive-definite (the leading minor "
             "of order ",
             " is not positive-definite).");
  return factor;
}

Tensor cholesky_solve_composite(const Tensor& b, const Tensor& factor, bool upper) {
  VESTA_CHECK(b.dim() >= 2, runtime, "cholesky_solve: b should have at least 2 dimensions, but has ", b.dim(),
              " dimensions instead.");
  check_square(factor, "cholesky_solve", "input2");
  if (upper) {
    return linalg_solve_triangular(factor, linalg_solve_triangular(adjoint(factor), b, false), true);
  }
  return linalg_solve_triangular(adjoint(factor), linalg_solve_triangular(factor, b, false), true);
}

Tensor cholesky_inverse_composite(const Tensor& factor, bool upper) {
  check_square(factor, "cholesky_inverse", "input");
  const Tensor inverse = linalg_solve_triangular(factor, expand(identity_like(factor), factor.sizes()), upper);
  return upper ? matmul(inverse, adjoint(inverse)) : matmul(adjoint(inverse), inverse);
}

// ---- LU ----

TensorPair linalg_lu_factor_composite(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, pivot, true);
  return {LU, pivots};
}

namespace {

/// Returns the unit lower triangle and the upper triangle of a decomposition in one matrix [*, m, n].
TensorPair triangles(const Tensor& LU) {
  const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
  const Tensor lower = tril(narrow(LU, -1, 0, k), -1);
  return {add(lower, eye(m, k, LU.dtype(), LU.device())), triu(narrow(LU, -2, 0, k))};
}

/// Moves the rows of B [*, m, k] by a permutation [*, m].
Tensor permuted(const Tensor& B, const Tensor& order) {
  const Tensor places = unsqueeze(order, -1);
  Dims batch = broadcast_shapes(batch_sizes(B), batch_sizes(places), "lu_solve"), shape(batch);
  shape.push_back(B.size(-2)), shape.push_back(B.size(-1));
  return gather(expand(B, shape), -2, expand(places, shape));
}

/// Returns the permutation that undoes another one [*, m].
Tensor inverse_permutation(const Tensor& order) {
  const Tensor places = expand(arange(0, order.size(-1), 1, DType::int64, order.device()), order.sizes());
  return scatter(zeros_like(order), -1, order, places);
}

}  // namespace

namespace {

/// Returns P [*, m, m] with P L U = A, of the pivots of A's decomposition.
Tensor permutation_matrix(const Tensor& pivots, int64_t m, DType dtype) {
  const Tensor order = _pivots_to_permutation(pivots, m);  // row i of P^T A is row order[i] of A
  Dims shape(order.sizes());
  shape.push_back(m);
  return mT(reshape(index_select(eye(m, m, dtype, pivots.device()), 0, reshape(order, -1)), shape));
}

}  // namespace

TensorTriple linalg_lu_composite(const Tensor& A, bool pivot) {
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, pivot, false);
  const auto [L, U] = triangles(LU);
  return {permutation_matrix(pivots, A.size(-2), A.dtype()), L, U};
}

TensorTriple lu_unpack_composite(const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data, bool unpack_pivots) {
  check_matrices(LU_data, "lu_unpack", "LU_data");
  const int64_t m = LU_data.size(-2), n = LU_data.size(-1);
  const Tensor none = empty({0}, LU_data.dtype(), LU_data.device());
  Tensor P = none, L = none, U = none;
  if (unpack_pivots) {
    VESTA_CHECK(LU_pivots.dtype() == DType::int32, runtime, "lu_unpack: LU_pivots is expected to be a contiguous ",
                "tensor of torch.int32 dtype, got ", LU_pivots.dtype(), ".");
    Dims shape = batch_sizes(LU_data);
    shape.push_back(std::min(m, n));
    VESTA_CHECK(std::ranges::equal(LU_pivots.sizes(), shape), runtime, "lu_unpack: expected LU_pivots of shape ",
                IntSpan(shape), " for LU_data ", LU_data.sizes(), ", got ", LU_pivots.sizes(), ".");
    P = permutation_matrix(LU_pivots, m, LU_data.dtype());
  }
  if (unpack_data) std::tie(L, U) = triangles(LU_data);
  return {P, L, U};
}

Tensor linalg_householder_product_composite(const Tensor& input, const Tensor& tau) {
  constexpr const char* op = "linalg.householder_product";
  check_matrices(input, op, "input");
  check_floating_or_complex(input, op);
  const int64_t m = input.size(-2), n = input.size(-1);
  VESTA_CHECK(m >= n, runtime, op, ": input.shape[-2] must be greater than or equal to input.shape[-1], got ",
              input.sizes(), ".");
  VESTA_CHECK(tau.dim() == input.dim() - 1 && tau.size(-1) <= n, runtime, op,
              ": input.shape[-1] must be greater than or equal to tau.shape[-1], and tau have one dimension less, got ",
              tau.sizes(), " (tau) and ", input.sizes(), " (input).");
  VESTA_CHECK(std::ranges::equal(tau.sizes().first(size_t(tau.dim() - 1)), IntSpan(batch_sizes(input))), runtime, op,
              ": Expected batch dimensions of tau to be equal to input.shape[:-2], got ", tau.sizes(), " (tau) and ",
              input.sizes(), " (input).");
  VESTA_CHECK(tau.dtype() == input.dtype(), runtime, op, ": tau dtype ", tau.dtype(), " does not match input dtype ",
              input.dtype(), ".");
  const Tensor v = add(tril(input, -1), eye(m, n, input.dtype(), input.device()));
  Tensor q = expand(eye(m, n, input.dtype(), input.device()), input.sizes());
  if (tau.numel() == 0) return where(ones(IntList(), DType::bool_, input.device()), q, input);  // of the graph
  for (int64_t i = tau.size(-1) - 1; i >= 0; --i) {  // Q = H_1 ... H_k, H_i = 1 - tau_i v_i v_i^H
    const Tensor column = narrow(v, -1, i, 1);
    const Tensor scaled = mul(column, unsqueeze(narrow(tau, -1, i, 1), -1));
    q = sub(q, matmul(scaled, matmul(adjoint(column), q)));
  }
  return q.is_contiguous() ? q : contiguous(q);
}
Tensor orgqr_composite(const Tensor& input, const Tensor& input2) {
  check_floating_or_complex(input, "orgqr");
  return linalg_householder_product(input, input2);
}

Tensor ormqr_composite(const Tensor& input, const Tensor& input2, const Tensor& input3, bool left, bool transpose_) {
  constexpr const char* op = "ormqr";
  check_matrices(input, op, "input");
  check_matrices(input3, op, "input3");
  check_floating_or_complex(input, op);
  const int64_t m = input.size(-2), k = input.size(-1);
  VESTA_CHECK(input3.size(left ? -2 : -1) == m, runtime, op, ": other.shape[", left ? -2 : -1,
              "] must be equal to input.shape[-2], got ", input3.sizes(), " (input3) and ", input.sizes(), " (input).");
  const int64_t count = std::min(m, k);  // of reflections; columns beyond are R's
  VESTA_CHECK(input2.dim() == input.dim() - 1 && input2.size(-1) == count, runtime, op,
              ": expected reflections [*, m, k] (input) and their factors [*, min(m, k)] (input2), got ", input.sizes(),
              " and ", input2.sizes(), ".");
  VESTA_CHECK(input3.dtype() == input.dtype(), runtime, op, ": Expected input and other to have the same dtype, but ",
              "input has ", input.dtype(), " and other has ", input3.dtype(), ".");
  Dims missing(batch_sizes(input));
  missing.push_back(m), missing.push_back(m - count);
  const Tensor columns = narrow(input, -1, 0, count);
  const Tensor square = count == m ? columns : cat({columns, zeros(missing, input.dtype(), input.device())}, -1);
  Tensor q = linalg_householder_product(square, input2);
  if (transpose_) q = adjoint(q);
  return left ? matmul(q, input3) : matmul(input3, q);
}

TensorPair linalg_ldl_factor_composite(const Tensor& input, bool hermitian) {
  const auto [LD, pivots, info] = linalg_ldl_factor_ex(input, hermitian, true);
  return {LD, pivots};
}

Tensor linalg_lu_solve_composite(const Tensor& LU, const Tensor& pivots, const Tensor& B, bool left, bool adjoint_) {
  check_square(LU, "linalg.lu_solve", "LU");
  VESTA_CHECK(B.dim() >= 2 && B.size(left ? -2 : -1) == LU.size(-1), runtime,
              "linalg.lu_solve: Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (",
              LU.sizes(), " and ", B.sizes(), ").");
  VESTA_CHECK(pivots.dtype() == DType::int32, runtime, "linalg.lu_solve: pivots should be a Tensor of int32, got ",
              pivots.dtype(), ".");
  if (!left) return adjoint(linalg_lu_solve(LU, pivots, adjoint(B), true, !adjoint_));
  const Tensor order = _pivots_to_permutation(pivots, LU.size(-2));
  if (!adjoint_) {
    const Tensor y = linalg_solve_triangular(LU, permuted(B, order), false, true, true);
    return linalg_solve_triangular(LU, y, true);
  }
  const Tensor y = linalg_solve_triangular(adjoint(LU), B, false);
  return permuted(linalg_solve_triangular(adjoint(LU), y, true, true, true), inverse_permutation(order));
}

Tensor lu_solve_composite(const Tensor& B, const Tensor& LU_data, const Tensor& LU_pivots) {
  return linalg_lu_solve(LU_data, LU_pivots, B);
}

// ---- solutions, inverses ----

Tensor linalg_solve_composite(const Tensor& A, const Tensor& B, bool left) {
  constexpr const char* op = "linalg.solve";
  check_square(A, op);
  VESTA_CHECK(A.dtype() == B.dtype(), runtime, op, ": Expected A and B to have the same dtype, but found A of type ",
              A.dtype(), " and B of type ", B.dtype(), " instead.");
  // vectors: of one dimension, or with all of A's but one
  const bool vector =
      B.dim() == 1 || (A.dim() - 1 == B.dim() && std::ranges::equal(B.sizes(), A.sizes().first(size_t(A.dim() - 1))));
  VESTA_CHECK(B.dim() > 0, runtime, op, ": expected B of at least 1 dimension, got a 0-d tensor.");
  VESTA_CHECK(left || !vector, runtime, op,
              ": Vector broadcasting of the left hand side is not supported for "
              "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1).");
  const Tensor right = vector ? unsqueeze(B, -1) : B;
  VESTA_CHECK(right.size(left ? -2 : -1) == A.size(-1), runtime, op,
              ": Incompatible shapes of A and B for the equation ", left ? "AX = B" : "XA = B", " (", A.sizes(),
              " and ", B.sizes(), ").");
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, true, false);
  check_info(info, op, "The solver failed because the input matrix is singular (U", " is zero).");
  const Tensor x = linalg_lu_solve(LU, pivots, right, left);
  return named_step(vector ? squeeze(x, -1) : x, "LinalgSolveExBackward0");
}

Tensor linalg_inv_composite(const Tensor& A) {
  constexpr const char* op = "linalg.inv";
  check_square(A, op);
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, true, false);
  check_info(info, op, "The diagonal element ",
             " is zero, the inversion could not be completed because the input "
             "matrix is singular.");
  return named_step(linalg_lu_solve(LU, pivots, expand(identity_like(A), A.sizes())), "LinalgInvExBackward0");
}
Tensor inverse_composite(const Tensor& input) {
  check_square(input, "inverse", "input");
  return linalg_inv(input);
}

TensorPair triangular_solve_composite(const Tensor& b, const Tensor& A, bool upper, bool transposed,
                                      bool unitriangular) {
  check_square(A, "triangular_solve");
  VESTA_CHECK(b.dim() >= 2, runtime, "triangular_solve: b should have at least 2 dimensions, but has ", b.dim(),
              " dimensions instead.");
  const Tensor x = transposed ? linalg_solve_triangular(mT(A), b, !upper, true, unitriangular)
                              : linalg_solve_triangular(A, b, upper, true, unitriangular);
  Dims shape = broadcast_shapes(batch_sizes(A), batch_sizes(b), "triangular_solve");
  shape.push_back(A.size(-2)), shape.push_back(A.size(-1));
  return {x, clone(expand(A, shape))};
}

// ---- determinants ----

namespace {

/// Returns the sign of a permutation of rows by LAPACK's pivots [*, n], in the real dtype of `like`.
Tensor exchanges_sign(const Tensor& pivots, const Tensor& like) {
  const Tensor rows = arange(1, pivots.size(-1) + 1, 1, DType::int32, pivots.device());
  const Tensor odd = remainder(sum(ne(pivots, rows), MaybeDims(-1)), 2);
  return sub(wrapped(1.0), mul(odd.to(real_type(like.dtype())), wrapped(2.0)));
}

/// Returns determinants whose gradient, the matrix of cofactors, holds for singular matrices, too: with A = U S V^H
/// around the point, det A = det U det V^H det(U^H A V), and there a change beside the diagonal has no effect of first
/// order. Gradients of the gradient are those of the diagonal alone.
Tensor det_around_singular(const Tensor& A) {
  const auto [U, S, Vh] = linalg_svd(A.detach(), true);
  const Tensor core = matmul(matmul(adjoint(U), A), adjoint(Vh));
  return mul(prod(diagonal(core, 0, -2, -1), -1), linalg_det(matmul(U, Vh)));
}

}  // namespace

Tensor linalg_det_composite(const Tensor& A) {
  check_square(A, "linalg.det");
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, true, false);
  const Tensor d = diagonal(LU, 0, -2, -1);
  if (d.requires_grad() && has_values(A)) {
    const Tensor singular = any(eq(d.detach(), 0), MaybeDims(-1));
    if (any(singular).item<bool>()) {  // a pivot of zero makes NaN of LU's own steps backward
      const Tensor chosen = unsqueeze(unsqueeze(singular, -1), -1);
      const Tensor regular = linalg_det(where(chosen, eye(A.size(-1), A.dtype(), A.device()), A));
      const Tensor around = det_around_singular(A);
      return named_step(where(singular, sub(around, around.detach()), regular), "LinalgDetBackward0");
    }
  }
  return named_step(mul(prod(d, -1), exchanges_sign(pivots, A)), "LinalgDetBackward0");
}
Tensor det_composite(const Tensor& input) { return linalg_det(input); }

TensorPair linalg_slogdet_composite(const Tensor& A) {
  check_square(A, "linalg.slogdet");
  const auto [LU, pivots, info] = linalg_lu_factor_ex(A, true, false);
  const Tensor d = diagonal(LU, 0, -2, -1);
  return named_step(TensorPair(mul(prod(sgn(d), -1), exchanges_sign(pivots, A)), sum(log(abs(d)), MaybeDims(-1))),
                    "LinalgSlogdetBackward0");
}
TensorPair slogdet_composite(const Tensor& input) { return linalg_slogdet(input); }

Tensor logdet_composite(const Tensor& input) {
  const auto [sign, size] = linalg_slogdet(input);
  return input.is_complex() ? add(log(sign), size)
                            : where(eq(sign, -1), wrapped(std::numeric_limits<double>::quiet_NaN()), size);
}

// ---- eigenvalues and singular values ----

Tensor linalg_eigvalsh_composite(const Tensor& input, Text UPLO) { return std::get<0>(linalg_eigh(input, UPLO)); }
Tensor linalg_eigvals_composite(const Tensor& input) { return std::get<0>(linalg_eig(input)); }

TensorTriple linalg_svd_composite(const Tensor& A, bool full_matrices, MaybeText driver) {
  check_no_driver(driver);
  return _linalg_svd(A, full_matrices);
}
TensorPair linalg_polar_composite(const Tensor& A) {
  VESTA_CHECK(A.dim() >= 2, runtime, "linalg.polar: expected at least 2 dimensions, got ", A.sizes(), " (A).");
  VESTA_CHECK(A.size(-2) >= A.size(-1), runtime, "linalg.polar: expected at least as many rows as columns, got ",
              A.sizes(), " (A).");
  const auto [U, S, Vh] = linalg_svd(A, false);
  const Tensor V = adjoint(Vh);
  return {matmul(U, Vh), matmul(mul(V, unsqueeze(S.to(A.dtype()), -2)), Vh)};
}

Tensor linalg_matrix_sqrth_composite(const Tensor& A) {
  const auto [values, V] = linalg_eigh(A);
  const Tensor roots = sqrt(clamp_min(values, wrapped(0.0))).to(A.dtype());
  return matmul(mul(V, unsqueeze(roots, -2)), adjoint(V));
}

Tensor linalg_svdvals_composite(const Tensor& A, MaybeText driver) { return std::get<1>(linalg_svd(A, false, driver)); }

TensorTriple svd_composite(const Tensor& input, bool some, bool compute_uv) {
  const auto [U, S, Vh] = linalg_svd(input, !some);
  if (compute_uv) return {U, S, adjoint(Vh)};
  Dims u = batch_sizes(input), v = u;
  u.push_back(input.size(-2)), u.push_back(input.size(-2));
  v.push_back(input.size(-1)), v.push_back(input.size(-1));
  return {zeros(u, input.dtype(), input.device()), S, zeros(v, input.dtype(), input.device())};
}

namespace {

/// Returns the limit below which singular values [*, k] count as 0: the larger of atol and rtol times the largest one.
Tensor zero_limit(const Tensor& input, const Tensor& values, MaybeTensor atol, MaybeTensor rtol) {
  const double epsilon = real_type(input.dtype()) == DType::float32 ? 0x1p-23 : 0x1p-52;
  const double factor = double(std::max(input.size(-1), input.size(-2))) * epsilon;
  const Tensor largest = amax(values, MaybeDims(-1), true);
  const auto shaped = [](const Tensor& t) { return t.dim() ? unsqueeze(t, -1) : t; };
  Tensor relative;
  if (rtol.defined()) relative = mul(shaped(*rtol), largest);
  else if (!atol.defined()) relative = mul(largest, wrapped(factor));
  else relative = mul(largest, where(gt(shaped(*atol), 0), wrapped(0.0), wrapped(factor)));
  return atol.defined() ? maximum(relative, shaped(*atol).to(relative.dtype())) : relative;
}

}  // namespace

Tensor _linalg_pinv_composite(const Tensor& input, MaybeTensor atol, MaybeTensor rtol, bool hermitian) {
  check_matrices(input, "linalg.pinv", "input");
  if (hermitian) check_square(input, "linalg.pinv", "input");
  if (input.numel() == 0) return clone(adjoint(input));
  Tensor left, values, right;  // input = right^H-like factors: left diag(values) right
  if (hermitian) {
    const auto [w, v] = linalg_eigh(input);
    left = v, values = w, right = adjoint(v);
  } else {
    std::tie(left, values, right) = linalg_svd(input, false);
  }
  const Tensor sizes = abs(values);
  const Tensor kept = gt(sizes, zero_limit(input, sizes, atol, rtol));
  const Tensor inverse = where(kept, reciprocal(where(kept, values, wrapped(1.0))), wrapped(0.0));
  return matmul(mul(adjoint(right), unsqueeze(inverse, -2)), adjoint(left));
}

Tensor _linalg_matrix_rank_composite(const Tensor& input, MaybeTensor atol, MaybeTensor rtol, bool hermitian) {
  check_matrices(input, "linalg.matrix_rank", "input");
  NoGrad off;
  if (input.numel() == 0) return zeros(batch_sizes(input), DType::int64, input.device());
  if (hermitian) check_square(input, "linalg.matrix_rank", "input");
  const Tensor values = hermitian ? abs(linalg_eigvalsh(input)) : linalg_svdvals(input);
  return sum(gt(values, zero_limit(input, values, atol, rtol)), MaybeDims(-1));
}

Tensor pinverse_composite(const Tensor& input, double rcond) {
  check_matrices(input, "pinverse", "input");
  return _linalg_pinv(input, {}, full(IntList(), rcond, real_type(input.dtype()), input.device()), false);
}

// ---- functions of matrices ----

Tensor linalg_matrix_power_composite(const Tensor& input, int64_t n) {
  VESTA_CHECK(input.dim() >= 2 && input.size(-1) == input.size(-2), runtime,
              "linalg.matrix_power: A must be batches of square matrices, but they are ", input.sizes(), ".");
  check_matrices(input, "linalg.matrix_power", "A");
  if (n == 0) return where(ones(IntList(), DType::bool_, input.device()), identity_like(input), input);
  VESTA_CHECK(n != std::numeric_limits<int64_t>::min(), runtime, "linalg.matrix_power: n is out of range.");
  Tensor square = n < 0 ? linalg_inv(input) : input, r;
  for (uint64_t left = uint64_t(n < 0 ? -n : n); left != 0; left >>= 1) {
    if (left & 1) r = r.defined() ? matmul(r, square) : square;
    if (left > 1) square = matmul(square, square);
  }
  return n == 1 ? clone(r) : r;
}
Tensor matrix_power_composite(const Tensor& input, int64_t n) { return linalg_matrix_power(input, n); }

Tensor linalg_matrix_exp_composite(const Tensor& input) {
  check_square(input, "linalg.matrix_exp", "input");
  if (input.numel() == 0) return clone(input);
  int64_t squarings = 0;
  if (has_values(input)) {
    NoGrad off;  // scaled to a norm below 5.37, up to which the quotient is exact
    const double norm = amax(sum(abs(input), MaybeDims(-2))).item().to<double>("linalg.matrix_exp");
    if (std::isfinite(norm) && norm > 5.371920351148152) {
      squarings = std::max<int64_t>(0, int64_t(std::ceil(std::log2(norm / 5.371920351148152))));
    }
  }
  const Tensor a = mul(input, wrapped(std::ldexp(1.0, -int(squarings))));
  constexpr double b[] = {64764752532480000,
                          32382376266240000,
                          7771770303897600,
                          1187353796428800,
                          129060195264000,
                          10559470521600,
                          670442572800,
                          33522128640,
                          1323241920,
                          40840800,
                          960960,
                          16380,
                          182,
                          1};
  const Tensor a2 = matmul(a, a), a4 = matmul(a2, a2), a6 = matmul(a4, a2), one = identity_like(a);
  const auto times = [](const Tensor& t, double factor) { return mul(t, wrapped(factor)); };
  const auto outer = [&](int k) { return add(add(times(a6, b[k]), times(a4, b[k - 2])), times(a2, b[k - 4])); };
  const auto inner = [&](int k) {
    return add(add(times(a6, b[k]), times(a4, b[k - 2])), add(times(a2, b[k - 4]), times(one, b[k - 6])));
  };
  const Tensor odd = matmul(a, add(matmul(a6, outer(13)), inner(7)));
  const Tensor even = add(matmul(a6, outer(12)), inner(6));
  Tensor r = linalg_solve(sub(even, odd), add(even, odd));
  for (int64_t k = 0; k < squarings; ++k) r = matmul(r, r);
  return r;
}
Tensor matrix_exp_composite(const Tensor& input) { return linalg_matrix_exp(input); }

// ---- norms ----

Tensor linalg_vector_norm_composite(const Tensor& input, double ord, const MaybeDims& dim, bool keepdim,
                                    MaybeDType dtype) {
  check_floating_or_complex(input, "linalg.vector_norm");
  return norm(input, ord, dim && (*dim).empty() ? MaybeDims() : dim, keepdim, dtype);
}

}  // namespace vesta
