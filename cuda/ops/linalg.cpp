// Decompositions by cuSOLVER and cuBLAS (lib/solver.h), and on the host where these are missing or refuse. Matrices are
// copied into the libraries' order, by columns, as on the CPU; the conventions and errors are the CPU's.
//
// The host waits only for statuses: of eigenvalues and singular values, and of factorizations whose errors are checked.
// A Solver is gone by then: it holds the device's handles for its thread.
#include <limits>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/linalg_checks.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/fault.h>
#include <vesta/cuda/kernels/linalg.h>
#include <vesta/cuda/lib/solver.h>
#include <vesta/cuda/ops/host.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {
using solver::Matrices;
using solver::Solver;

Tensor vectors(const Dims& batch, int64_t n, DType dtype, Device device) {
  Dims sizes(batch);
  sizes.push_back(n);
  return empty_tensor(sizes, dtype, device);
}
Tensor statuses(const Dims& batch, Device device) { return zeros(batch, DType::int32, device); }

/// Returns a copy by columns.
Tensor by_columns(const Tensor& t, const Dims& batch, int64_t rows, int64_t columns) {
  Tensor a = empty_by_columns(batch, rows, columns, t);
  copy_values(a, t);
  return a;
}
Matrices matrices(const Tensor& t, int64_t count, int64_t rows, int64_t columns) {
  return {t, std::max<int64_t>(rows, 1), rows * columns, count};
}
void check_sizes(int64_t rows, int64_t columns, const char* op) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  VESTA_CHECK(rows <= limit && columns <= limit, runtime, op, ": expected sizes that fit 32 bits, got a matrix [", rows,
              ", ", columns, "].");
}
/// Reads statuses, which waits for the device, and checks each.
void check_all(const Tensor& info, void (*check)(int, const char*), const char* op) {
  const Tensor read = contiguous_values(info.to(Device(DeviceType::cpu)));
  for (int64_t i = 0; i < read.numel(); ++i) {
    const int status = read.data_ptr<int32_t>()[i];
    VESTA_CHECK(status >= 0, runtime, op, ": cuSOLVER refused argument ", -status, ".");
    check(status, op);
  }
}
Tensor adjoint_of(const Tensor& t) { return conj(transpose(t, -2, -1)); }
/// Sets matrices [rows, columns] by columns to the identity.
Tensor identities(const Dims& batch, int64_t rows, int64_t columns, const Tensor& like) {
  Tensor t = empty_by_columns(batch, rows, columns, like);
  if (t.numel()) copy_values(t, expand(eye(rows, columns, like.dtype(), like.device()), t.sizes()));
  return t;
}

TensorPair cholesky(const Tensor& A, bool upper, bool check_errors) {
  constexpr const char* op = "linalg.cholesky_ex";
  const MatrixShape s = matrix_shape(A, op, "A", true);
  check_sizes(s.rows, s.columns, op);
  Tensor info = statuses(s.batch, A.device());
  if (A.numel() == 0) return {empty_by_columns(s.batch, s.rows, s.columns, A), info};
  const Tensor factor = by_columns(upper ? triu(A) : tril(A), s.batch, s.rows, s.columns);  // one triangle is worked on
  Solver(A).potrf(upper, s.rows, matrices(factor, s.count, s.rows, s.columns), info);
  // the batched function uses the other triangle as scratch
  if (s.count > 1) copy_values(factor, upper ? triu(factor) : tril(factor));
  if (check_errors) check_all(info, check_cholesky, op);
  return {factor, info};
}

TensorTriple lu_factor(const Tensor& A, bool pivot, bool check_errors) {
  constexpr const char* op = "linalg.lu_factor_ex";
  VESTA_CHECK(pivot, runtime, op, ": LU without pivoting is not implemented.");
  const MatrixShape s = matrix_shape(A, op, "A", false);
  check_sizes(s.rows, s.columns, op);
  Tensor pivots = vectors(s.batch, s.rank, DType::int32, A.device()), info = statuses(s.batch, A.device());
  if (A.numel() == 0) return {empty_by_columns(s.batch, s.rows, s.columns, A), pivots, info};
  const Tensor LU = by_columns(A, s.batch, s.rows, s.columns);
  Solver(A).getrf(s.rows, s.columns, matrices(LU, s.count, s.rows, s.columns), pivots, info);
  if (check_errors) check_all(info, check_lu, op);
  return {LU, pivots, info};
}

Tensor permutation(const Tensor& pivots, int64_t rows) {
  const OperandDevice device(pivots);
  const Tensor exchanges = contiguous_values(pivots.to(DType::int64));
  Dims sizes(pivots.sizes());
  sizes.back() = rows;
  Tensor order = empty_tensor(sizes, DType::int64, pivots.device());
  if (order.numel() == 0) return order;
  PermutationLaunch l;
  l.name = "lu_solve", l.stream = device.stream();
  l.pivots = exchanges.data_ptr<int64_t>(), l.order = order.data_ptr<int64_t>();
  l.n = pivots.size(-1), l.rows = rows, l.count = order.numel() / rows;
  l.fault = fault_of(device.index());
  run_permutation(l);
  return order;
}

TensorPair geqrf(const Tensor& A) {
  constexpr const char* op = "geqrf";
  const MatrixShape s = matrix_shape(A, op, "input", false);
  check_sizes(s.rows, s.columns, op);
  Tensor tau = vectors(s.batch, s.rank, A.dtype(), A.device());
  if (A.numel() == 0) return {empty_by_columns(s.batch, s.rows, s.columns, A), tau};
  const Tensor a = by_columns(A, s.batch, s.rows, s.columns);
  Solver(A).geqrf(s.rows, s.columns, matrices(a, s.count, s.rows, s.columns), tau);
  return {a, tau};
}

TensorPair qr(const Tensor& A, Text mode) {
  const QrShape s = qr_shape(A, mode);
  check_sizes(s.rows, std::max(s.columns, s.q_columns), "linalg.qr");
  const bool only_r = s.mode == QrMode::r;
  if (s.rank == 0 || A.numel() == 0) {
    return {only_r ? empty_tensor(Dims{0}, A.dtype(), A.device()) : identities(s.batch, s.rows, s.q_columns, A),
            empty_by_columns(s.batch, s.r_rows, s.columns, A)};
  }
  Solver on(A);
  const Tensor a = by_columns(A, s.batch, s.rows, s.columns);
  const Tensor tau = vectors(s.batch, s.rank, A.dtype(), A.device());
  on.geqrf(s.rows, s.columns, matrices(a, s.count, s.rows, s.columns), tau);
  const Tensor r = by_columns(triu(narrow(a, -2, 0, s.r_rows)), s.batch, s.r_rows, s.columns);
  if (only_r) return {empty_tensor(Dims{0}, A.dtype(), A.device()), r};
  Tensor q = empty_by_columns(s.batch, s.rows, s.q_columns, A);
  if (s.q_columns > s.rank) copy_values(q, zeros(Dims(q.sizes()), q.dtype(), q.device()));
  copy_values(narrow(q, -1, 0, s.rank), narrow(a, -1, 0, s.rank));
  on.orgqr(s.rows, s.q_columns, s.rank, matrices(q, s.count, s.rows, s.q_columns), tau);
  return {q, r};
}

TensorPair eigh(const Tensor& A, Text uplo) {
  constexpr const char* op = "linalg.eigh";
  check_uplo(uplo, op);
  const MatrixShape s = matrix_shape(A, op, "A", true);
  check_sizes(s.rows, s.columns, op);
  Tensor values = vectors(s.batch, s.rows, real_type(A.dtype()), A.device());
  if (A.numel() == 0) return {values, empty_by_columns(s.batch, s.rows, s.columns, A)};
  const Tensor a = by_columns(A, s.batch, s.rows, s.columns), info = statuses(s.batch, A.device());
  Solver(A).syevd(uplo == "U" || uplo == "u", s.rows, matrices(a, s.count, s.rows, s.columns), values, info);
  check_all(info, check_converged, op);
  return {values, a};
}

TensorTriple svd(const Tensor& A, bool full_matrices) {
  constexpr const char* op = "linalg.svd";
  const MatrixShape s = matrix_shape(A, op, "A", false);
  check_sizes(s.rows, s.columns, op);
  const int64_t left = full_matrices ? s.rows : s.rank, right = full_matrices ? s.columns : s.rank;
  Tensor values = vectors(s.batch, s.rank, real_type(A.dtype()), A.device());
  if (A.numel() == 0) {
    return {identities(s.batch, s.rows, left, A), values, identities(s.batch, right, s.columns, A)};
  }
  // cuSOLVER wants at least as many rows as columns: A^H = V S U^H.
  const bool turned = s.rows < s.columns;
  const int64_t m = std::max(s.rows, s.columns), n = s.rank, u_columns = full_matrices ? m : n;
  const Tensor a = by_columns(turned ? adjoint_of(A) : A, s.batch, m, n), info = statuses(s.batch, A.device());
  const Tensor u = empty_by_columns(s.batch, m, u_columns, A), vh = empty_by_columns(s.batch, n, n, A);
  Solver(A).gesvd(full_matrices, m, n, matrices(a, s.count, m, n), values, matrices(u, s.count, m, u_columns),
                  matrices(vh, s.count, n, n), info);
  check_all(info, check_converged, op);
  if (!turned) return {u, values, vh};
  return {by_columns(adjoint_of(vh), s.batch, s.rows, left), values,
          by_columns(adjoint_of(u), s.batch, right, s.columns)};
}

Tensor solve_triangular(const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular) {
  constexpr const char* op = "linalg.solve_triangular";
  const TriangularShape s = triangular_shape(A, B, left);
  check_sizes(std::max(s.rows, s.columns), s.order, op);
  if (s.count * s.rows * s.columns == 0) return empty_by_columns(s.batch, s.rows, s.columns, B);
  const Tensor x = by_columns(B, s.batch, s.rows, s.columns), a = by_columns(A, s.batch, s.order, s.order);
  Solver(B, true).trsm(left, upper, unitriangular, s.rows, s.columns, matrices(a, s.count, s.order, s.order),
                       matrices(x, s.count, s.rows, s.columns));
  return x;
}

/// Throws Refused unless the libraries are there; triangular systems, whose result is one tensor, need cuBLAS.
template <class R>
void expect_libraries() {
  solver::expect_libraries(std::is_same_v<R, Tensor>);
}
template <auto& op, auto f, class R, class... A>
void register_one(Op<R(A...)>& o) {
  o.set_kernel(DeviceType::cuda, &run_or_on_host<op, f, expect_libraries<R>, R, A...>);
}

}  // namespace

void register_linalg() {
  register_one<ops::linalg_cholesky_ex, cholesky>(ops::linalg_cholesky_ex);
  register_one<ops::linalg_lu_factor_ex, lu_factor>(ops::linalg_lu_factor_ex);
  register_one<ops::geqrf, geqrf>(ops::geqrf);
  register_one<ops::linalg_qr, qr>(ops::linalg_qr);
  register_one<ops::linalg_eigh, eigh>(ops::linalg_eigh);
  register_one<ops::_linalg_svd, svd>(ops::_linalg_svd);
  register_one<ops::linalg_solve_triangular, solve_triangular>(ops::linalg_solve_triangular);
  ops::_pivots_to_permutation.set_kernel(DeviceType::cuda, permutation);
}

}  // namespace vesta::cuda
