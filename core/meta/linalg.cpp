// Linear algebra: shapes. Matrices lie by columns, as LAPACK leaves them.
#include <vesta/core/ops/linalg.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>
#include <vesta/core/ops/kernel_checks.h>

namespace vesta::meta {
namespace {

Tensor with_last(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n);
  return result(sizes, dtype);
}

TensorPair qr(const Tensor& A, Text mode) {
  const QrShape s = qr_shape(A, mode);
  return {s.mode == QrMode::r ? result({0}, A.dtype()) : empty_by_columns(s.batch, s.rows, s.q_columns, A),
          empty_by_columns(s.batch, s.r_rows, s.columns, A)};
}

Tensor solve_triangular(const Tensor& A, const Tensor& B, bool, bool left, bool) {
  const TriangularShape s = triangular_shape(A, B, left);
  return empty_by_columns(s.batch, s.rows, s.columns, B);
}

TensorPair cholesky(const Tensor& A, bool, bool) {
  const MatrixShape s = matrix_shape(A, "linalg.cholesky_ex", "A", true);
  return {empty_by_columns(s.batch, s.rows, s.columns, A), result(s.batch, DType::int32)};
}

TensorTriple lu_factor(const Tensor& A, bool, bool) {
  const MatrixShape s = matrix_shape(A, "linalg.lu_factor_ex", "A", false);
  return {empty_by_columns(s.batch, s.rows, s.columns, A), with_last(s.batch, s.rank, DType::int32),
          result(s.batch, DType::int32)};
}

TensorPair geqrf(const Tensor& A) {
  const MatrixShape s = matrix_shape(A, "geqrf", "input", false);
  return {empty_by_columns(s.batch, s.rows, s.columns, A), with_last(s.batch, s.rank, A.dtype())};
}

TensorTriple ldl_factor(const Tensor& A, bool, bool) {
  const MatrixShape s = matrix_shape(A, "linalg.ldl_factor_ex", "input", true);
  return {empty_by_columns(s.batch, s.rows, s.columns, A), with_last(s.batch, s.rows, DType::int32),
          result(s.batch, DType::int32)};
}

Tensor ldl_solve(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool) {
  const MatrixShape s = ldl_solution(LD, pivots, B);
  return empty_by_columns(s.batch, s.rows, s.columns, B);
}

Tensor permutation(const Tensor& pivots, int64_t rows) {
  return result(with_size(pivots, pivots.dim() - 1, rows), DType::int64);
}

TensorPair eigh(const Tensor& A, Text uplo) {
  check_uplo(uplo, "linalg.eigh");
  const MatrixShape s = matrix_shape(A, "linalg.eigh", "A", true);
  return {with_last(s.batch, s.rows, real_type(A.dtype())), empty_by_columns(s.batch, s.rows, s.columns, A)};
}

TensorTriple svd(const Tensor& A, bool full_matrices) {
  const MatrixShape s = matrix_shape(A, "linalg.svd", "A", false);
  const int64_t left = full_matrices ? s.rows : s.rank, right = full_matrices ? s.columns : s.rank;
  return {empty_by_columns(s.batch, s.rows, left, A), with_last(s.batch, s.rank, real_type(A.dtype())),
          empty_by_columns(s.batch, right, s.columns, A)};
}

TensorPair eig(const Tensor& A) {
  const MatrixShape s = matrix_shape(A, "linalg.eig", "A", true);
  const Tensor values = with_last(s.batch, s.rows, complex_type(real_type(A.dtype())));
  return {values, empty_by_columns(s.batch, s.rows, s.rows, values)};
}

}  // namespace

void register_linalg() {
  ops::linalg_cholesky_ex.set_kernel(DeviceType::meta, cholesky);
  ops::linalg_lu_factor_ex.set_kernel(DeviceType::meta, lu_factor);
  ops::geqrf.set_kernel(DeviceType::meta, geqrf);
  ops::linalg_ldl_factor_ex.set_kernel(DeviceType::meta, ldl_factor);
  ops::linalg_ldl_solve.set_kernel(DeviceType::meta, ldl_solve);
  ops::_pivots_to_permutation.set_kernel(DeviceType::meta, permutation);
  ops::linalg_eigh.set_kernel(DeviceType::meta, eigh);
  ops::linalg_eig.set_kernel(DeviceType::meta, eig);
  ops::_linalg_svd.set_kernel(DeviceType::meta, svd);
  ops::linalg_qr.set_kernel(DeviceType::meta, qr);
  ops::linalg_solve_triangular.set_kernel(DeviceType::meta, solve_triangular);
}

}  // namespace vesta::meta
