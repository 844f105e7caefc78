#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/linalg_checks.h>

#include <algorithm>
#include <mutex>

#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/linalg.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_LINALG)

void check_matrices(const Tensor& t, const char* op, const char* argument) {
  VESTA_CHECK(is_differentiable(t.dtype()), not_implemented, op,
              ": Expected a floating point or complex tensor as input. Got ", t.dtype(), " (", argument, ").");
  VESTA_CHECK(itemsize(real_type(t.dtype())) >= 4, not_implemented, op, ": Low precision dtypes not supported. Got ",
              t.dtype(), " (", argument, "). Convert with .to().");
  VESTA_CHECK(t.dim() >= 2, runtime, op, ": The input tensor ", argument, " must have at least 2 dimensions, got ",
              t.sizes(), ".");
}

namespace {

Dims batch_of(const Tensor& t) { return Dims(t.sizes().first(size_t(t.dim() - 2))); }

/// The folder, and the lock of both functions below.
struct Folder {
  std::mutex lock;
  std::string path;
};
Folder& folder() {
  static auto* one = new Folder;  // lives as long as the process
  return *one;
}

}  // namespace

QrMode qr_mode(Text mode) {
  if (mode == "reduced") return QrMode::reduced;
  if (mode == "complete") return QrMode::complete;
  VESTA_CHECK(mode == "r", value, "linalg.qr: received unrecognized mode '", mode,
              "' but expected one of 'reduced' (default), 'r', or 'complete'.");
  return QrMode::r;
}

QrShape qr_shape(const Tensor& A, Text mode) {
  check_matrices(A, "linalg.qr", "A");
  QrShape s{qr_mode(mode), batch_of(A), 0, A.size(-2), A.size(-1), 0, 0, 0};
  const bool complete = s.mode == QrMode::complete;
  s.count = numel_of(s.batch, "linalg.qr");
  s.rank = std::min(s.rows, s.columns);
  s.q_columns = s.mode == QrMode::r ? 0 : complete ? s.rows : s.rank;
  s.r_rows = complete ? s.rows : s.rank;
  return s;
}

TriangularShape triangular_shape(const Tensor& A, const Tensor& B, bool left) {
  constexpr const char* op = "linalg.solve_triangular";
  check_matrices(A, op, "A");
  check_matrices(B, op, "B");
  VESTA_CHECK(A.dtype() == B.dtype(), type, op, ": expected A and B of the same dtype, got ", A.dtype(), " and ",
              B.dtype(), ". Convert one with .to().");
  TriangularShape s{broadcast_shapes(batch_of(A), batch_of(B), op), 0, A.size(-1), B.size(-2), B.size(-1)};
  VESTA_CHECK(A.size(-2) == s.order, runtime, op, ": A must be batches of square matrices, but they are ", A.size(-2),
              " by ", s.order, " matrices.");
  VESTA_CHECK((left ? s.rows : s.columns) == s.order, runtime, op, ": Incompatible shapes of A and B for the equation ",
              left ? "AX = B" : "XA = B", " (", s.order, "x", s.order, " and ", s.rows, "x", s.columns, ").");
  s.count = numel_of(s.batch, op);
  return s;
}

MatrixShape matrix_shape(const Tensor& A, const char* op, const char* argument, bool square) {
  check_matrices(A, op, argument);
  MatrixShape s{batch_of(A), 0, A.size(-2), A.size(-1), 0};
  VESTA_CHECK(!square || s.rows == s.columns, runtime, op, ": ", argument,
              " must be batches of square matrices, but they are ", s.rows, " by ", s.columns, " matrices.");
  s.count = numel_of(s.batch, op);
  s.rank = std::min(s.rows, s.columns);
  return s;
}

void check_cholesky(int status, const char* op) {
  if (status == 0) return;
  fail(Cause::linalg, op, ": The factorization could not be completed because the input is not positive-definite (the ",
       "leading minor of order ", status, " is not positive-definite).");
}

void check_lu(int status, const char* op) {
  if (status == 0) return;
  fail(Cause::linalg, op, ": U[", status, ",", status, "] is zero and using it on lu_solve would result in ",
       "a division by zero.");
}

void check_converged(int status, const char* op) {
  if (status == 0) return;
  fail(Cause::linalg, op, ": The algorithm failed to converge because the input matrix is ill-conditioned or contains ",
       "NaN or infinity (error code: ", status, ").");
}

MatrixShape ldl_solution(const Tensor& LD, const Tensor& pivots, const Tensor& B) {
  constexpr const char* op = "linalg.ldl_solve";
  const MatrixShape left = matrix_shape(LD, op, "LD", true);
  MatrixShape s = matrix_shape(B, op, "B", false);
  VESTA_CHECK(s.rows == left.rows, runtime, op, ": expected as many rows in B as in LD, got ", B.sizes(), " and ",
              LD.sizes(), ".");
  VESTA_CHECK(LD.dtype() == B.dtype(), runtime, op, ": expected LD and B of one dtype, got ", LD.dtype(), " and ",
              B.dtype(), ".");
  VESTA_CHECK(pivots.dtype() == DType::int32 || pivots.dtype() == DType::int64, runtime, op,
              ": expected pivots of integers, got ", pivots.dtype(), ".");
  Dims of_pivots(left.batch);
  of_pivots.push_back(left.rows);
  VESTA_CHECK(std::ranges::equal(pivots.sizes(), IntSpan(of_pivots)), runtime, op, ": expected pivots of shape ",
              IntSpan(of_pivots), " for LD ", LD.sizes(), ", got ", pivots.sizes(), ".");
  s.batch = broadcast_shapes(left.batch, s.batch, op);
  s.count = numel_of(s.batch, op);
  return s;
}

Tensor empty_by_columns(IntSpan batch, int64_t rows, int64_t columns, const Tensor& like) {
  Dims sizes(batch);
  sizes.push_back(columns);
  sizes.push_back(rows);
  Dims strides = contiguous_strides(sizes);
  const size_t last = sizes.size() - 1;
  std::swap(sizes[last], sizes[last - 1]);
  std::swap(strides[last], strides[last - 1]);
  return empty_tensor_strided(sizes, strides, like.dtype(), like.device());
}

void set_lapack_folder(std::string path) {
  std::lock_guard guard(folder().lock);
  folder().path = std::move(path);
}
std::string lapack_folder() {
  std::lock_guard guard(folder().lock);
  return folder().path;
}

}  // namespace vesta
