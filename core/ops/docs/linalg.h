// Docs of the topic linalg: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char linalg_qr[] =
    "linalg.qr(A, mode='reduced'): (Q, R) with A = Q R for each matrix of A [*, m, n]: the columns of Q are "
    "orthonormal, R is upper triangular, its diagonal real and of any sign. With k = min(m, n), mode 'reduced' gives "
    "Q [*, m, k] and R [*, k, n], 'complete' Q [*, m, m] and R [*, m, n], 'r' an empty Q and R [*, k, n]. A is "
    "float32, float64, complex64 or complex128. The gradient needs Q, the first k columns of A to be independent, and "
    "not 'complete' with m > n. Computed by LAPACK.";
inline constexpr char linalg_solve_triangular[] =
    "linalg.solve_triangular(input, B, *, upper, left=True, unitriangular=False): X with input X = B, or X input = B "
    "where left is False. input [*, n, n] is triangular: what lies on the other side of its diagonal is not read, nor "
    "the diagonal itself, of ones, if unitriangular. B is [*, n, k], or [*, k, n] where left is False; batches "
    "broadcast. A zero on the diagonal gives inf or nan. Computed by BLAS.";
inline constexpr char linalg_cholesky_ex[] =
    "linalg.cholesky_ex(input, *, upper=False, check_errors=False): a named tuple (L, info): the Cholesky factors "
    "of Hermitian positive-definite matrices [*, n, n], and an int32 tensor [*] with 0, or the order of the "
    "leading minor that is not positive. check_errors raises there. Only the lower triangle (the upper one with "
    "upper) is read.";
inline constexpr char linalg_cholesky[] =
    "linalg.cholesky(input, *, upper=False): the lower triangular L with L L^H = input of Hermitian "
    "positive-definite matrices [*, n, n]; U with U^H U = input if upper. Error: a matrix that is not "
    "positive-definite.";
inline constexpr char cholesky_solve[] =
    "cholesky_solve(B, L, upper=False): X with L L^H X = B (U^H U X = B if upper), for B [*, n, k] and L [*, n, n].";
inline constexpr char cholesky_inverse[] =
    "cholesky_inverse(L, upper=False): the inverse of L L^H, of U^H U if upper; [*, n, n].";
inline constexpr char linalg_lu_factor_ex[] =
    "linalg.lu_factor_ex(A, *, pivot=True, check_errors=False): a named tuple (LU, pivots, info): the LU "
    "decomposition with row exchanges of matrices [*, m, n] in one matrix, LAPACK's pivots (int32, from 1) and "
    "info, 0 or the place of the first zero on U's diagonal.";
inline constexpr char linalg_lu_factor[] =
    "linalg.lu_factor(A, *, pivot=True): a named tuple (LU, pivots); see lu_factor_ex.";
inline constexpr char linalg_lu[] =
    "linalg.lu(A, *, pivot=True): a named tuple (P, L, U) with A = P L U for matrices [*, m, n]: a permutation, a "
    "lower triangular matrix with ones on its diagonal, an upper triangular one.";
inline constexpr char _pivots_to_permutation[] =
    "_pivots_to_permutation(pivots, rows): the order of rows that LAPACK's exchanges give.";
inline constexpr char lu_unpack[] =
    "lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True): a named tuple (P, L, U) with A = P L U, of "
    "what linalg.lu_factor(A) gave: P [*, m, m], L [*, m, k], U [*, k, n]. What is not asked for is empty.";
inline constexpr char linalg_householder_product[] =
    "linalg.householder_product(input, tau): the first n columns of H_1 H_2 ... H_k, with H_i = 1 - tau_i v_i "
    "v_i^H; v_i is column i of input [*, m, n] from its diagonal on, where it is 1, and tau is [*, k], k <= n <= m.";
inline constexpr char orgqr[] = "orgqr(input, input2): linalg.householder_product(input, input2).";
inline constexpr char geqrf[] =
    "geqrf(input): a named tuple (a, tau): of input = Q R the matrix R in the upper triangle of a, below it the "
    "vectors of the reflections that make Q, and their factors: what linalg.householder_product, orgqr and ormqr take. "
    "input [*, m, n], tau [*, min(m, n)]. Its derivative is not implemented; linalg.qr has one.";
inline constexpr char ormqr[] =
    "ormqr(input, input2, input3, left=True, transpose=False): Q C, with left=False C Q; transpose: Q^H in the place "
    "of Q, the m x m matrix of the reflections input [*, m, k] with the factors input2 [*, min(m, k)] (geqrf). C is "
    "input3.";
inline constexpr char linalg_ldl_factor_ex[] =
    "linalg.ldl_factor_ex(input, *, hermitian=False, check_errors=False): a named tuple (LD, pivots, info): of a "
    "symmetric or (hermitian) Hermitian matrix [*, n, n] A = L D L^T or L D L^H, as LAPACK packs it: D has blocks of 1 "
    "and 2 rows. Only the lower triangle is read. info > 0: the block of D that is singular. Its derivative "
    "is not implemented; linalg.solve has one.";
inline constexpr char linalg_ldl_factor[] =
    "linalg.ldl_factor(input, *, hermitian=False): (LD, pivots) of linalg.ldl_factor_ex; Error: D is singular.";
inline constexpr char linalg_ldl_solve[] =
    "linalg.ldl_solve(LD, pivots, B, *, hermitian=False): the solution X of A X = B from linalg.ldl_factor(A): LD [*, "
    "n, n], pivots [*, n], B [*, n, k]; their batches broadcast. Differentiable by B.";
inline constexpr char linalg_lu_solve[] =
    "linalg.lu_solve(LU, pivots, B, *, left=True, adjoint=False): X with A X = B, from linalg.lu_factor(A); X A = "
    "B if not left, A^H for A if adjoint.";
inline constexpr char lu_solve[] = "lu_solve(B, LU_data, LU_pivots): linalg.lu_solve with B first.";
inline constexpr char linalg_solve[] =
    "linalg.solve(A, B, *, left=True): X with A X = B (X A = B if not left) for invertible A [*, n, n] and B [*, "
    "n, k], or vectors [*, n]. Error: a singular matrix.";
inline constexpr char linalg_inv[] = "linalg.inv(A): the inverses of matrices [*, n, n]. Error: a singular matrix.";
inline constexpr char inverse[] = "inverse(input): linalg.inv.";
inline constexpr char linalg_det[] = "linalg.det(A): the determinants [*] of matrices [*, n, n].";
inline constexpr char det[] = "det(input): linalg.det.";
inline constexpr char linalg_slogdet[] =
    "linalg.slogdet(A): a named tuple (sign, logabsdet) of the determinants of matrices [*, n, n]: sign is a "
    "complex number of size 1 for complex A, 0 for a singular matrix, whose logabsdet is -inf.";
inline constexpr char slogdet[] = "slogdet(input): linalg.slogdet.";
inline constexpr char logdet[] = "logdet(input): the logarithm of the determinant; NaN for a negative one, -inf for 0.";
inline constexpr char linalg_eigh[] =
    "linalg.eigh(input, UPLO='L'): a named tuple (eigenvalues, eigenvectors) of Hermitian matrices [*, n, n]: real "
    "eigenvalues [*, n], ascending, and vectors in the columns of [*, n, n]. Only the triangle UPLO is read.";
inline constexpr char linalg_eigvalsh[] = "linalg.eigvalsh(input, UPLO='L'): the eigenvalues of linalg.eigh.";
inline constexpr char linalg_eig[] =
    "linalg.eig(input): a named tuple (eigenvalues, eigenvectors), complex, of matrices [*, n, n]; vectors of size "
    "1 in columns.";
inline constexpr char linalg_eigvals[] = "linalg.eigvals(input): the eigenvalues of linalg.eig.";
inline constexpr char _linalg_svd[] = "_linalg_svd(A, full_matrices): (U, S, Vh).";
inline constexpr char linalg_svd[] =
    "linalg.svd(A, full_matrices=True, *, driver=None): a named tuple (U, S, Vh) with A = U diag(S) Vh of matrices "
    "[*, m, n]; S [*, min(m, n)] descends. U is [*, m, m] and Vh [*, n, n], or [*, m, k] and [*, k, n], k = min(m, "
    "n), if not full_matrices. Error: driver on the CPU.";
inline constexpr char linalg_polar[] =
    "linalg.polar(A): A [*, m, n] with m >= n as U [*, m, n] with orthonormal columns times H [*, n, n], positive "
    "semidefinite. Error: fewer rows than columns.";
inline constexpr char linalg_matrix_sqrth[] =
    "linalg.matrix_sqrth(input): the square root of Hermitian positive-definite matrices [*, n, n], of which the lower "
    "triangle is read; eigenvalues below 0 count as 0.";
inline constexpr char linalg_svdvals[] =
    "linalg.svdvals(A, *, driver=None): the singular values [*, min(m, n)], descending, of matrices [*, m, n].";
inline constexpr char svd[] =
    "svd(input, some=True, compute_uv=True): a named tuple (U, S, V) with input = U diag(S) V^H; see linalg.svd, "
    "whose Vh is V^H. Without compute_uv U and V are zeros.";
inline constexpr char _linalg_pinv[] = "_linalg_pinv(input, atol, rtol, hermitian): the pseudoinverse.";
inline constexpr char _linalg_matrix_rank[] = "_linalg_matrix_rank(input, atol, rtol, hermitian): the rank.";
inline constexpr char pinverse[] =
    "pinverse(input, rcond=1e-15): the pseudoinverse of matrices [*, m, n]; singular values up to rcond times the "
    "largest count as 0.";
inline constexpr char linalg_matrix_power[] =
    "linalg.matrix_power(input, n): the n-th power of matrices [*, k, k]; of their inverses if n < 0.";
inline constexpr char matrix_power[] = "matrix_power(input, n): linalg.matrix_power.";
inline constexpr char linalg_matrix_exp[] =
    "linalg.matrix_exp(input): the exponential of matrices [*, n, n], by scaling, Pade's quotient of order 13 and "
    "squaring (Higham, 2005).";
inline constexpr char matrix_exp[] = "matrix_exp(input): linalg.matrix_exp.";
inline constexpr char addmv_[] = "addmv_(mat, vec, *, beta=1, alpha=1): addmv in place.";
inline constexpr char triangular_solve[] =
    "triangular_solve(b, A, upper=True, transpose=False, unitriangular=False): a named tuple (solution, "
    "cloned_coefficient): X with A X = b for triangular A, A^T if transpose; and a copy of A.";
inline constexpr char linalg_vector_norm[] =
    "linalg.vector_norm(input, ord=2, dim=None, keepdim=False, *, dtype=None): (sum |x| ** ord) ** (1 / ord) over "
    "dim, over everything without; inf, -inf and 0 are the largest, the smallest and the number of nonzero "
    "elements.";

}  // namespace vesta::doc
