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

}  // namespace vesta::doc
