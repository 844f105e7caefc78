// Linear algebra. The adjoint of M is M^H; <A, B> is the real part of the sum of conj(A) B.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/ops.h>

namespace vesta::autograd::rules {
namespace {

/// Returns `m`, square matrices, with the entries on one side of the diagonal replaced by 0 and the diagonal scaled.
Tensor triangle(const Tensor& m, bool upper, double diagonal) {
  Tensor i = arange(0, m.size(-1), 1, DType::int64, m.device()), row = i.unsqueeze(-1);
  Tensor inside = upper ? row < i : i < row, real_zero = zeros({}, real_type(m.dtype()), m.device());
  return m * where(inside, real_zero + Scalar(1.0), where(row == i, real_zero + Scalar(diagonal), real_zero));
}

// QR, as Walter and Lehmann 2018 and Roberts and Roberts 2020 give it. With Q^H dQ = W skew-Hermitian and R's diagonal
// real, M = gR R^H - Q^H gQ holds what both results say of the first k columns:
//   rows >= columns:  gA = (gQ + Q S) R^-H       S: the Hermitian matrix with M's upper triangle, its diagonal real
//   rows < columns:   gA = Q (gR - [K R1^-H 0])  R1 the first columns; K: M - M^H below the diagonal, half of it on it
struct QrRule {
  Saved q, r;
  QrMode mode = QrMode::reduced;
  static QrRule save(const TensorPair& out, const Tensor&, Text mode, Needs) {
    return {Saved::result(std::get<0>(out), 0), Saved::result(std::get<1>(out), 1), qr_mode(mode)};
  }
  Tensor operator()(const GradList& g, Needs) const {
    VESTA_CHECK(mode != QrMode::r, runtime,
                "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr.");
    const Tensor Q = q(), R = r();
    const int64_t m = Q.size(-2), n = R.size(-1);
    VESTA_CHECK(mode == QrMode::reduced || m <= n, runtime,
                "The QR decomposition is not differentiable when mode='complete' and nrows > ncols.");
    const Tensor &of_q = g[0], &of_r = g[1];
    if (!of_q.defined() && !of_r.defined()) return {};
    Tensor M;
    if (of_r.defined()) M = matmul(of_r, adjoint(R));
    if (of_q.defined()) M = M.defined() ? M - matmul(adjoint(Q), of_q) : -matmul(adjoint(Q), of_q);
    if (m >= n) {
      const Tensor half = triangle(M, true, 0.5), QS = matmul(Q, half + adjoint(half));
      return linalg_solve_triangular(adjoint(R), of_q.defined() ? of_q + QS : QS, false, false);
    }
    const Tensor K = triangle(M - adjoint(M), false, 0.5), R1 = R.narrow(-1, 0, m);
    Tensor first = -linalg_solve_triangular(adjoint(R1), K, false, false);
    Dims rest(first.sizes());
    rest.back() = n - m;
    Tensor all = cat({first, zeros(rest, first.dtype(), first.device())}, -1);
    return matmul(Q, of_r.defined() ? all + of_r : all);
  }
};

// With A X = B: gB = A^-H gX and gA = -gB X^H; with X A = B: gB = gX A^-H and gA = -X^H gB.
struct SolveTriangularRule {
  Saved a, x;
  bool upper = false, left = true, unitriangular = false;
  static SolveTriangularRule save(const Tensor& x, const Tensor& a, const Tensor&, bool upper, bool left,
                                  bool unitriangular, Needs needs) {
    return {Saved(a), needs[0] ? Saved::result(x) : Saved(), upper, left, unitriangular};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    const Tensor of_b = linalg_solve_triangular(adjoint(a()), g, !upper, left, unitriangular);
    if (!needs[0]) return {Tensor{}, of_b};
    const Tensor of_a = left ? matmul(of_b, adjoint(x())) : matmul(adjoint(x()), of_b);
    return {-triangle(of_a, upper, unitriangular ? 0 : 1), needs[1] ? of_b : Tensor{}};
  }
};

}  // namespace

void register_linalg() {
  record<ops::linalg_qr, QrRule>();
  record<ops::linalg_solve_triangular, SolveTriangularRule>();
}

}  // namespace vesta::autograd::rules
