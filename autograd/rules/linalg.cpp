// Linear algebra. The adjoint of M is M^H; <A, B> is the real part of the sum of conj(A) B.
#include <algorithm>

#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/distance.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

/// Returns `m`, square matrices, with the entries on one side of the diagonal replaced by 0 and the diagonal scaled.
Tensor triangle(const Tensor& m, bool upper, double diagonal) {
  Tensor i = arange(0, m.size(-1), 1, DType::int64, m.device()), row = unsqueeze(i, -1);
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
    const Tensor K = triangle(M - adjoint(M), false, 0.5), R1 = narrow(R, -1, 0, m);
    Tensor first = -linalg_solve_triangular(adjoint(R1), K, false, false);
    Dims rest(first.sizes());
    rest.back() = n - m;
    Tensor all = cat({first, zeros(rest, first.dtype(), first.device())}, -1);
    return matmul(Q, of_r.defined() ? all + of_r : all);
  }
};

/// Returns 1 / (a_i + a_j) of the last dimension, as a matrix.
Tensor reciprocal_sums(const Tensor& a) { return reciprocal(unsqueeze(a, -1) + unsqueeze(a, -2)); }

/// With A = U H, K = U^H dU is skew-Hermitian and U^H dA = K H + dH, so K H + H K is U^H dA less its adjoint: an
/// equation for each element of K in the basis of H's eigenvectors (Higham, "Functions of Matrices", 2008, section 8).
struct PolarRule {
  Saved u, h;
  static PolarRule save(const TensorPair& out, const Tensor&, Needs) {
    return {Saved::result(std::get<0>(out), 0), Saved::result(std::get<1>(out), 1)};
  }
  Tensor operator()(const GradList& g, Needs) const {
    const Tensor U = u(), H = h();
    const Tensor &of_u = g[0], &of_h = g[1];
    if (!of_u.defined() && !of_h.defined()) return {};
    const auto [values, V] = linalg_eigh(H);
    Tensor Q;
    if (of_u.defined()) Q = matmul(adjoint(U), of_u);
    if (of_h.defined()) Q = Q.defined() ? Q - matmul(of_h, H) : -matmul(of_h, H);
    const Tensor W = matmul(matmul(adjoint(V), Q), V) * reciprocal_sums(values).to(H.dtype());
    Tensor inner = matmul(matmul(V, W - adjoint(W)), adjoint(V));
    if (of_h.defined()) inner = inner + of_h;
    Tensor r = matmul(U, inner);
    if (!of_u.defined() || U.size(-2) == U.size(-1)) return r;
    const Tensor rest = of_u - matmul(U, matmul(adjoint(U), of_u));  // outside of U's columns
    return r + matmul(matmul(rest, V) / unsqueeze(values, -2).to(H.dtype()), adjoint(V));
  }
};

/// With X X = A: X dX + dX X = dA, an equation for each element in the basis of X's eigenvectors.
struct MatrixSqrthRule {
  Saved root;
  static MatrixSqrthRule save(const Tensor& out, const Tensor&, Needs) { return {Saved::result(out)}; }
  Tensor operator()(const Tensor& g, Needs) const {
    const auto [values, V] = linalg_eigh(root());
    const Tensor whole = (g + adjoint(g)) * wrapped(0.5);  // dX is Hermitian
    const Tensor inner = matmul(matmul(adjoint(V), whole), V) * reciprocal_sums(values).to(g.dtype());
    return matmul(matmul(V, inner), adjoint(V));
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

// The same without a triangle. Another factorization of A in backward costs less than to go through that of the first.
struct SolveRule {
  Saved a, x;
  bool left = true, vector = false;
  static SolveRule save(const Tensor& x, const Tensor& a, const Tensor& b, bool left, Needs needs) {
    const bool vector =
        b.dim() == 1 || (a.dim() - 1 == b.dim() && std::ranges::equal(b.sizes(), a.sizes().first(size_t(a.dim() - 1))));
    return {Saved(a), needs[0] ? Saved::result(x) : Saved(), left, vector};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    const Tensor of_b = linalg_solve(adjoint(a()), vector ? unsqueeze(g, -1) : g, left);
    const Tensor b_like = vector ? squeeze(of_b, -1) : of_b;
    if (!needs[0]) return {Tensor{}, b_like};
    const Tensor X = vector ? unsqueeze(x(), -1) : x();
    const Tensor of_a = left ? matmul(of_b, adjoint(X)) : matmul(adjoint(X), of_b);
    return {-of_a, needs[1] ? b_like : Tensor{}};
  }
};

// With P = A^-1: gA = -P^H gP P^H.
struct InvRule {
  Saved inverse;
  static InvRule save(const Tensor& inverse, const Tensor&, Needs) { return {Saved::result(inverse)}; }
  Tensor operator()(const Tensor& g, Needs) const {
    const Tensor Ph = adjoint(inverse());
    return -matmul(Ph, matmul(g, Ph));
  }
};

struct CrossRule {
  Saved a, b;
  int64_t dim = -1;
  static CrossRule save(const Tensor&, const Tensor& a, const Tensor& b, int64_t dim, Needs needs) {
    return {needs[1] ? Saved(a) : Saved(), needs[0] ? Saved(b) : Saved(), dim};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    return {needs[0] ? linalg_cross(conj(b()), g, dim) : Tensor{},
            needs[1] ? linalg_cross(g, conj(a()), dim) : Tensor{}};
  }
};

// Factors whose derivative PyTorch does not have either: backward refuses, and names what has one.
struct GeqrfRule {
  static GeqrfRule save(const TensorPair&, const Tensor&, Needs) { return {}; }
  Tensor operator()(const GradList&, Needs) const {
    fail(Cause::not_implemented, "geqrf: its derivative is not implemented. Take linalg.qr, which has one.");
  }
};

struct LdlFactorRule {
  static LdlFactorRule save(const TensorTriple&, const Tensor&, bool, bool, Needs) { return {}; }
  Tensor operator()(const GradList&, Needs) const {
    fail(Cause::not_implemented, "linalg.ldl_factor: its derivative is not implemented. Take linalg.solve of the ",
         "matrix, which has one.");
  }
};

// A X = B: gB = A^-H gX, and A^H is A (Hermitian) or conj(A) (symmetric).
struct LdlSolveRule {
  Saved ld, pivots;
  bool hermitian = false;
  static LdlSolveRule save(const Tensor&, const Tensor& ld, const Tensor& pivots, const Tensor&, bool hermitian,
                           Needs) {
    return {Saved(ld), Saved(pivots), hermitian};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    VESTA_CHECK(!needs[0], not_implemented, "linalg.ldl_solve: its derivative by LD is not implemented. Take ",
                "linalg.solve of the matrix, which has one.");
    if (hermitian) return {Tensor{}, Tensor{}, linalg_ldl_solve(ld(), pivots(), g, true)};
    return {Tensor{}, Tensor{}, conj(linalg_ldl_solve(ld(), pivots(), conj(g), false))};
  }
};

/// Returns the gradient by a factor of A = L L^H (U^H U), for that of A, a Hermitian matrix.
Tensor of_factor(const Tensor& of_a, const Tensor& factor, bool upper) {
  return upper ? matmul(factor, of_a) : matmul(of_a, factor);
}

// With L L^H X = B: gB = A^-1 gX, and the factor's is that of A, -(gB X^H + X gB^H), times the factor: of the whole
// matrix, as PyTorch's, though one triangle is read.
struct CholeskySolveRule {
  Saved factor, x;
  bool upper = false;
  static CholeskySolveRule save(const Tensor& x, const Tensor&, const Tensor& factor, bool upper, Needs needs) {
    return {Saved(factor), needs[1] ? Saved::result(x) : Saved(), upper};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    const Tensor of_b = cholesky_solve(g, factor(), upper);
    if (!needs[1]) return {of_b, Tensor{}};
    const Tensor outer = matmul(of_b, adjoint(x()));
    return {needs[0] ? of_b : Tensor{}, -of_factor(outer + adjoint(outer), factor(), upper)};
  }
};

// With P = A^-1: the gradient by A is -P (gP + gP^H) P.
struct CholeskyInverseRule {
  Saved factor, inverse;
  bool upper = false;
  static CholeskyInverseRule save(const Tensor& inverse, const Tensor& factor, bool upper, Needs) {
    return {Saved(factor), Saved::result(inverse), upper};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    const Tensor P = inverse();
    return -of_factor(matmul(P, matmul(g + adjoint(g), P)), factor(), upper);
  }
};

// Golub and Pereyra, "The differentiation of pseudo-inverses", 1973, (4.12): with P = A^+ and G = gP^H,
// gA = -P^H gP P^H + (1 - A P) G P P^H + P^H P G (1 - P A). Equal singular values are no pole of it, as they are of the
// singular vectors'. Products are taken so that the matrices between are small.
struct PinvRule {
  Saved a, inverse;
  static PinvRule save(const Tensor& inverse, const Tensor& a, const Tensor&, const Tensor&, bool, Needs) {
    return {Saved(a), Saved::result(inverse)};
  }
  Grads<3> operator()(const Tensor& g, Needs) const {
    const Tensor A = a(), P = inverse(), Ph = adjoint(P), G = adjoint(g);
    Tensor left, right;
    if (A.size(-2) >= A.size(-1)) {
      const Tensor outer = matmul(G, matmul(P, Ph));
      left = outer - matmul(A, matmul(P, outer));
      right = matmul(Ph, matmul(P, G - matmul(G, matmul(P, A))));
    } else {
      const Tensor product = matmul(G, P), outer = matmul(product, Ph);
      left = outer - matmul(matmul(A, P), outer);
      right = matmul(matmul(Ph, P), G - matmul(product, A));
    }
    return {left + right - matmul(matmul(Ph, g), Ph), Tensor{}, Tensor{}};
  }
};

// Murray, "Differentiation of the Cholesky decomposition", 2016: with P the lower triangle of L^H gL, its diagonal
// halved, gA is the Hermitian part of L^-H P L^-1.
struct CholeskyRule {
  Saved factor;
  bool upper = false;
  static constexpr unsigned results = 0b01;
  static CholeskyRule save(const TensorPair& out, const Tensor&, bool upper, bool, Needs) {
    return {Saved::result(std::get<0>(out), 0), upper};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    const Tensor L = upper ? adjoint(factor()) : factor(), gL = upper ? adjoint(g[0]) : g[0];
    const Tensor P = triangle(matmul(adjoint(L), gL), false, 0.5);
    const Tensor left = linalg_solve_triangular(adjoint(L), P, true);
    const Tensor S = linalg_solve_triangular(L, left, false, false);
    return (S + adjoint(S)) * Scalar(0.5);
  }
};

// A = P L U. Of the leading square part, with M = L1^H gL1 below the diagonal and gU1 U1^H on and above it,
// gA = P L1^-H M U1^-H; what lies beyond it (columns of U, rows of L) adds to M and has a gradient of its own.
struct LuFactorRule {
  Saved lu, pivots;
  static constexpr unsigned results = 0b001;
  static LuFactorRule save(const TensorTriple& out, const Tensor&, bool, bool, Needs) {
    return {Saved::result(std::get<0>(out), 0), Saved(std::get<1>(out))};
  }
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined()) return {};
    const Tensor LU = lu(), order = _pivots_to_permutation(pivots(), LU.size(-2));
    const int64_t m = LU.size(-2), n = LU.size(-1), k = std::min(m, n);
    const Tensor square = narrow(narrow(LU, -2, 0, k), -1, 0, k), of_square = narrow(narrow(g[0], -2, 0, k), -1, 0, k);
    const Tensor U = triangle(square, true, 1);
    const Tensor L = triangle(square, false, 0) + eye(k, k, LU.dtype(), LU.device());
    Tensor lower = matmul(adjoint(L), triangle(of_square, false, 0)),
           upper = matmul(triangle(of_square, true, 1), adjoint(U));
    Tensor beyond;
    if (n > k) {
      const Tensor more = narrow(g[0], -1, k, n - k);
      lower = lower - matmul(more, adjoint(narrow(LU, -1, k, n - k)));
      beyond = linalg_solve_triangular(adjoint(L), more, true, true, true);
    } else if (m > k) {
      const Tensor more = narrow(g[0], -2, k, m - k);
      upper = upper - matmul(adjoint(narrow(LU, -2, k, m - k)), more);
      beyond = linalg_solve_triangular(adjoint(U), more, false, false);
    }
    const Tensor M = triangle(lower, false, 0) + triangle(upper, true, 1);
    Tensor r = linalg_solve_triangular(adjoint(L), M, true, true, true);
    r = linalg_solve_triangular(adjoint(U), r, false, false);
    if (beyond.defined()) r = cat({r, beyond}, n > k ? -1 : -2);
    return scatter(zeros(Dims(r.sizes()), r.dtype(), r.device()), -2, expand(unsqueeze(order, -1), r.sizes()), r);
  }
};

// log |det A| changes by the real part of the trace of A^-1 dA, and the sign by its imaginary part, times i: gA = (gl -
// i Im(conj(gs) s)) A^-H. Of a singular matrix it is infinite or NaN.
struct SlogdetRule {
  Saved matrix, sign;
  static SlogdetRule save(const TensorPair& out, const Tensor& A, Needs) {
    return {Saved(A), A.is_complex() ? Saved::result(std::get<0>(out), 0) : Saved()};
  }
  Tensor operator()(const GradList& g, Needs) const {
    const Tensor A = matrix();
    Tensor scale = g[1];
    if (A.is_complex() && g[0].defined()) {
      const Tensor turn = -imag(conj(g[0]) * sign());
      scale = complex(scale.defined() ? scale : zeros_like(turn), turn);
    }
    if (!scale.defined()) return zeros_like(A);
    const auto [LU, pivots, info] = linalg_lu_factor_ex(A, true, false);
    const Tensor one = expand(eye(A.size(-1), A.size(-1), A.dtype(), A.device()), A.sizes());
    return unsqueeze(unsqueeze(scale, -1), -1) * linalg_lu_solve(LU, pivots, one, true, true);
  }
};

/// Returns x [*, n] as differences x_j - x_i [*, n, n], with ones on the diagonal.
Tensor differences(const Tensor& x) {
  return unsqueeze(x, -2) - unsqueeze(x, -1) + eye(x.size(-1), x.size(-1), x.dtype(), x.device());
}
/// Returns x [*, n] on the diagonal of [*, n, n].
Tensor on_diagonal(const Tensor& x) { return diag_embed(x, 0, -2, -1); }
Tensor without_diagonal(const Tensor& x) { return x - on_diagonal(diagonal(x, 0, -2, -1)); }

// A V = V diag(w), V unitary: gA = V (diag(gw) + V^H gV / (w_j - w_i) off the diagonal) V^H (Giles, "An extended
// collection of matrix derivative results", 2008, 3.1).
struct EighRule {
  Saved w, v;
  static EighRule save(const TensorPair& out, const Tensor&, Text, Needs) {
    return {Saved::result(std::get<0>(out), 0), Saved::result(std::get<1>(out), 1)};
  }
  Tensor operator()(const GradList& g, Needs) const {
    const Tensor V = v();
    Tensor inner;
    if (g[1].defined()) {  // V stays unitary: only the skew-Hermitian part of V^H gV counts
      const Tensor N = matmul(adjoint(V), g[1]);
      inner = without_diagonal((N - adjoint(N)) * 0.5 / differences(w()));
    }
    if (g[0].defined()) {
      const Tensor of_values = on_diagonal(g[0]);
      inner = inner.defined() ? inner + of_values : of_values.to(V.dtype());
    }
    return inner.defined() ? matmul(matmul(V, inner), adjoint(V)) : Tensor{};
  }
};

// A V = V diag(w), columns of V of size 1: gA = V^-H (diag(gw) + (N - V^H V diag(Re N)) / conj(w_j - w_i)) V^H with
// N = V^H gV (Boeddeker et al., "On the computation of complex-valued gradients", 2017, 4.1).
struct EigRule {
  Saved w, v;
  bool real = false;
  static EigRule save(const TensorPair& out, const Tensor& a, Needs) {
    return {Saved::result(std::get<0>(out), 0), Saved::result(std::get<1>(out), 1), !a.is_complex()};
  }
  Tensor operator()(const GradList& g, Needs) const {
    const Tensor V = v(), VH = adjoint(V);
    Tensor inner;
    if (g[1].defined()) {
      const Tensor N = matmul(VH, g[1]), sizes = vesta::real(diagonal(N, 0, -2, -1)).to(N.dtype());
      inner = without_diagonal((N - matmul(VH, V * unsqueeze(sizes, -2))) / conj(differences(w())));
    }
    if (g[0].defined()) inner = inner.defined() ? inner + on_diagonal(g[0]) : on_diagonal(g[0]);
    if (!inner.defined()) return {};
    const Tensor r = linalg_solve(VH, matmul(inner, VH));
    return real ? vesta::real(r) : r;
  }
};

// A = U diag(s) V^H: with E_ij = s_j^2 - s_i^2 off the diagonal and sk(X) = X - X^H,
// gA = U (sk(U^H gU) / E diag(s) + diag(s) sk(V^H gV) / E + diag(gs)) V^H, and for rows or columns beyond the rank
// (1 - U U^H) gU diag(1 / s) V^H and U diag(1 / s) gV^H (1 - V V^H) (Townsend, "Differentiating the singular value
// decomposition", 2016; the imaginary parts of the diagonal: Wan and Zhang, 2019).
struct SvdRule {
  Saved u, s, vh;
  bool full = false;
  static SvdRule save(const TensorTriple& out, const Tensor&, bool full, Needs) {
    return {Saved::result(std::get<0>(out), 0), Saved::result(std::get<1>(out), 1), Saved::result(std::get<2>(out), 2),
            full};
  }
  Tensor operator()(const GradList& g, Needs) const {
    const Tensor S = s();
    const int64_t k = S.size(-1);
    Tensor U = u(), V = adjoint(vh());
    const int64_t m = U.size(-2), n = V.size(-2);
    VESTA_CHECK(!full || m == n || (!g[0].defined() && !g[2].defined()), runtime,
                "The singular vectors in the complex case, and those of full_matrices=True, are specified up to "
                "multiplication by a unitary matrix: linalg.svd is only differentiable with full_matrices=False.");
    U = narrow(U, -1, 0, k), V = narrow(V, -1, 0, k);
    const Tensor gU = g[0], gV = g[2].defined() ? adjoint(g[2]) : Tensor{};
    Tensor inner, r;
    auto add = [](const Tensor& a, const Tensor& b) { return a.defined() ? a + b : b; };
    if (g[1].defined()) inner = on_diagonal(g[1]).to(U.dtype());
    if (gU.defined() || gV.defined()) {
      const Tensor squares = S * S, E = differences(squares);
      Tensor phases;
      auto half = [&](const Tensor& W, const Tensor& gW, bool left) {
        const Tensor product = matmul(adjoint(W), gW), skew = product - adjoint(product);
        const Tensor part = without_diagonal(skew / E);
        inner = add(inner, left ? part * unsqueeze(S, -2) : part * unsqueeze(S, -1));
        if (left && U.is_complex()) phases = diagonal(skew, 0, -2, -1);
      };
      if (gU.defined()) half(U, gU, true);
      if (gV.defined()) half(V, gV, false);
      if (phases.defined()) inner = inner + on_diagonal(phases / (S * Scalar(2.0)));
    }
    if (!inner.defined()) return {};
    r = matmul(matmul(U, inner), adjoint(V));
    if (gU.defined() && m > k) {
      const Tensor scaled = gU / unsqueeze(S, -2);
      r = r + matmul(scaled - matmul(U, matmul(adjoint(U), scaled)), adjoint(V));
    }
    if (gV.defined() && n > k) {
      const Tensor scaled = gV / unsqueeze(S, -2);
      r = r + matmul(U, adjoint(scaled - matmul(V, matmul(adjoint(V), scaled))));
    }
    return r;
  }
};

}  // namespace

void register_linalg() {
  record<ops::linalg_cholesky_ex, CholeskyRule>();
  record<ops::linalg_lu_factor_ex, LuFactorRule>();
  record<ops::linalg_slogdet, SlogdetRule>();
  record<ops::geqrf, GeqrfRule>();
  record<ops::linalg_ldl_factor_ex, LdlFactorRule>();
  record<ops::linalg_ldl_solve, LdlSolveRule>();
  record<ops::linalg_eigh, EighRule>();
  record<ops::linalg_eig, EigRule>();
  record<ops::_linalg_svd, SvdRule>();
  record<ops::linalg_qr, QrRule>();
  record<ops::linalg_polar, PolarRule>();
  record<ops::linalg_matrix_sqrth, MatrixSqrthRule>();
  record<ops::linalg_solve_triangular, SolveTriangularRule>();
  record<ops::linalg_solve, SolveRule>();
  record<ops::linalg_inv, InvRule>();
  record<ops::linalg_cross, CrossRule>();
  record<ops::cholesky_solve, CholeskySolveRule>();
  record<ops::cholesky_inverse, CholeskyInverseRule>();
  record<ops::_linalg_pinv, PinvRule>();
}

}  // namespace vesta::autograd::rules
