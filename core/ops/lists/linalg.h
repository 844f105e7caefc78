// The op list, linear algebra: decompositions and solutions. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_LINALG(OP)                                                                                           \
  OP(IN, linalg, TensorPair, qr, (const Tensor& A, Text mode = "reduced"), (A, mode), exact_out, fields("Q", "R"),     \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(IN, linalg, Tensor, solve_triangular,                                                                             \
     (const Tensor& input, const Tensor& B, Kw<bool> upper, bool left = true, bool unitriangular = false),             \
     (input, B, upper, left, unitriangular), exact_out, accepts(kWideFloats | kComplexes))                             \
  OP(IN, linalg, TensorPair, cholesky_ex, (const Tensor& input, Kw<bool> upper = false, bool check_errors = false),    \
     (input, upper, check_errors), exact_out, fields("L", "info"), accepts(kWideFloats | kComplexes),                  \
     gives(Gives::same, Gives::int32))                                                                                 \
  OP(IN, linalg, Tensor, cholesky, (const Tensor& input, Kw<bool> upper = false), (input, upper), composite, exact_out,\
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(METHOD, Tensor, cholesky_solve, (const Tensor& input2, bool upper = false), (input2, upper), composite, out,      \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(METHOD, Tensor, cholesky_inverse, (bool upper = false), (upper), composite, out,                                  \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(IN, linalg, TensorTriple, lu_factor_ex, (const Tensor& A, Kw<bool> pivot = true, bool check_errors = false),      \
     (A, pivot, check_errors), exact_out, fields("LU", "pivots", "info"), accepts(kWideFloats | kComplexes),           \
     gives(Gives::same, Gives::int32, Gives::int32))                                                                   \
  OP(IN, linalg, TensorPair, lu_factor, (const Tensor& A, Kw<bool> pivot = true), (A, pivot), composite, exact_out,    \
     fields("LU", "pivots"), accepts(kWideFloats | kComplexes), gives(Gives::same, Gives::int32))                      \
  OP(IN, linalg, TensorTriple, lu, (const Tensor& A, Kw<bool> pivot = true), (A, pivot), composite, exact_out,         \
     fields("P", "L", "U"), accepts(kWideFloats | kComplexes))                                                         \
  OP(FUNCTION, TensorTriple, lu_unpack,                                                                                \
     (const Tensor& LU_data, const Tensor& LU_pivots, bool unpack_data = true, bool unpack_pivots = true),             \
     (LU_data, LU_pivots, unpack_data, unpack_pivots), composite, exact_out, fields("P", "L", "U"),                    \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(IN, linalg, Tensor, householder_product, (const Tensor& input, const Tensor& tau), (input, tau), composite, out,  \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(METHOD, Tensor, orgqr, (const Tensor& input2), (input2), composite, out, accepts(kWideFloats | kComplexes))       \
  OP(METHOD, TensorPair, geqrf, (), (), out, fields("a", "tau"), accepts(kWideFloats | kComplexes))                    \
  OP(METHOD, Tensor, ormqr, (const Tensor& input2, const Tensor& input3, bool left = true, bool transpose = false),    \
     (input2, input3, left, transpose), composite, exact_out, accepts(kWideFloats | kComplexes))                       \
  OP(IN, linalg, TensorTriple, ldl_factor_ex,                                                                          \
     (const Tensor& input, Kw<bool> hermitian = false, bool check_errors = false), (input, hermitian, check_errors),   \
     exact_out, fields("LD", "pivots", "info"), accepts(kWideFloats | kComplexes),                                     \
     gives(Gives::same, Gives::int32, Gives::int32))                                                                   \
  OP(IN, linalg, TensorPair, ldl_factor, (const Tensor& input, Kw<bool> hermitian = false), (input, hermitian),        \
     composite, exact_out, fields("LD", "pivots"), accepts(kWideFloats | kComplexes), gives(Gives::same, Gives::int32))\
  OP(IN, linalg, Tensor, ldl_solve,                                                                                    \
     (const Tensor& LD, const Tensor& pivots, const Tensor& B, Kw<bool> hermitian = false),                            \
     (LD, pivots, B, hermitian), exact_out, accepts(kWideFloats | kComplexes))                                         \
  OP(FUNCTION, Tensor, _pivots_to_permutation, (const Tensor& pivots, int64_t rows), (pivots, rows), hidden,           \
     no_gradient, accepts(kWideFloats | kComplexes))                                                                   \
  OP(IN, linalg, Tensor, lu_solve,                                                                                     \
     (const Tensor& LU, const Tensor& pivots, const Tensor& B, Kw<bool> left = true, bool adjoint = false),            \
     (LU, pivots, B, left, adjoint), composite, exact_out, accepts(kWideFloats | kComplexes))                          \
  OP(METHOD, Tensor, lu_solve, (const Tensor& LU_data, const Tensor& LU_pivots), (LU_data, LU_pivots), composite,      \
     exact_out, accepts(kWideFloats | kComplexes))                                                                     \
  OP(IN, linalg, Tensor, solve, (const Tensor& A, const Tensor& B, Kw<bool> left = true), (A, B, left), composite,     \
     exact_out, accepts(kWideFloats | kComplexes))                                                                     \
  OP(IN, linalg, Tensor, inv, (const Tensor& A), (A), composite, exact_out, accepts(kWideFloats | kComplexes))         \
  OP(METHOD, Tensor, inverse, (), (), composite, out, accepts(kWideFloats | kComplexes))                               \
  OP(IN, linalg, Tensor, det, (const Tensor& A), (A), composite, exact_out, accepts(kWideFloats | kComplexes))         \
  OP(METHOD, Tensor, det, (), (), composite, accepts(kWideFloats | kComplexes))                                        \
  OP(IN, linalg, TensorPair, slogdet, (const Tensor& A), (A), composite, exact_out, fields("sign", "logabsdet"),       \
     accepts(kWideFloats | kComplexes), gives(Gives::same, Gives::real))                                               \
  OP(METHOD, TensorPair, slogdet, (), (), composite, out, fields("sign", "logabsdet"),                                 \
     accepts(kWideFloats | kComplexes), gives(Gives::same, Gives::real))                                               \
  OP(METHOD, Tensor, logdet, (), (), composite, accepts(kWideFloats | kComplexes))                                     \
  OP(IN, linalg, TensorPair, eigh, (const Tensor& input, Text UPLO = "L"), (input, UPLO), exact_out,                   \
     fields("eigenvalues", "eigenvectors"), accepts(kWideFloats | kComplexes), gives(Gives::real, Gives::same))        \
  OP(IN, linalg, Tensor, eigvalsh, (const Tensor& input, Text UPLO = "L"), (input, UPLO), composite, exact_out,        \
     accepts(kWideFloats | kComplexes), gives(Gives::real))                                                            \
  OP(IN, linalg, TensorPair, eig, (const Tensor& input), (input), out, fields("eigenvalues", "eigenvectors"),          \
     accepts(kWideFloats | kComplexes), gives(Gives::complex, Gives::complex))                                         \
  OP(IN, linalg, Tensor, eigvals, (const Tensor& input), (input), composite, out, accepts(kWideFloats | kComplexes),   \
     gives(Gives::complex))                                                                                            \
  OP(FUNCTION, TensorTriple, _linalg_svd, (const Tensor& A, bool full_matrices), (A, full_matrices), hidden,           \
     accepts(kWideFloats | kComplexes), gives(Gives::real, Gives::same))                                               \
  OP(IN, linalg, TensorTriple, svd, (const Tensor& A, bool full_matrices = true, Kw<MaybeText> driver = {}),           \
     (A, full_matrices, driver), composite, exact_out, fields("U", "S", "Vh"), accepts(kWideFloats | kComplexes),      \
     gives(Gives::real, Gives::same))                                                                                  \
  OP(IN, linalg, TensorPair, polar, (const Tensor& A), (A), composite, exact_out, fields("U", "H"),                    \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(IN, linalg, Tensor, matrix_sqrth, (const Tensor& input), (input), composite,                                      \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(IN, linalg, Tensor, svdvals, (const Tensor& A, Kw<MaybeText> driver = {}), (A, driver), composite, exact_out,     \
     accepts(kWideFloats | kComplexes), gives(Gives::real))                                                            \
  OP(METHOD, TensorTriple, svd, (bool some = true, bool compute_uv = true), (some, compute_uv), composite, exact_out,  \
     fields("U", "S", "V"), accepts(kWideFloats | kComplexes), gives(Gives::real, Gives::same))                        \
  OP(FUNCTION, Tensor, _linalg_pinv, (const Tensor& input, MaybeTensor atol, MaybeTensor rtol, bool hermitian),        \
     (input, atol, rtol, hermitian), composite, hidden, accepts(kWideFloats | kComplexes))                             \
  OP(FUNCTION, Tensor, _linalg_matrix_rank,                                                                            \
     (const Tensor& input, MaybeTensor atol, MaybeTensor rtol, bool hermitian), (input, atol, rtol, hermitian),        \
     composite, hidden, no_gradient, accepts(kWideFloats | kComplexes), gives(Gives::int64))                           \
  OP(METHOD, Tensor, pinverse, (double rcond = 1e-15), (rcond), composite, accepts(kWideFloats | kComplexes))          \
  OP(IN, linalg, Tensor, matrix_power, (const Tensor& input, int64_t n), (input, n), composite, out,                   \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(METHOD, Tensor, matrix_power, (int64_t n), (n), composite, out, accepts(kWideFloats | kComplexes))                \
  OP(IN, linalg, Tensor, matrix_exp, (const Tensor& input), (input), composite, accepts(kWideFloats | kComplexes))     \
  OP(METHOD, Tensor, matrix_exp, (), (), composite, accepts(kWideFloats | kComplexes))                                 \
  OP(METHOD, Tensor, addmv_, (const Tensor& mat, const Tensor& vec, Kw<RealScalar> beta = 1, RealScalar alpha = 1),    \
     (mat, vec, beta, alpha), composite, accepts(kNumbers))                                                            \
  OP(METHOD, TensorPair, triangular_solve,                                                                             \
     (const Tensor& A, bool upper = true, bool transpose = false, bool unitriangular = false),                         \
     (A, upper, transpose, unitriangular), composite, exact_out, fields("solution", "cloned_coefficient"),             \
     accepts(kWideFloats | kComplexes))                                                                                \
  OP(IN, linalg, Tensor, vector_norm,                                                                                  \
     (const Tensor& input, RealScalar ord = 2, const MaybeDims& dim = {}, bool keepdim = false,                        \
      Kw<MaybeDType> dtype = {}), (input, ord, dim, keepdim, dtype), composite, exact_out, casts(none, float32),       \
     accepts(kFloats | kComplexes), gives(Gives::real))                                                                \
  OP(PYTHON_FORM, Tensor, addmv_, alpha_beta,                                                                          \
     (Scalar beta, const Tensor& input, Scalar alpha, const Tensor& mat, const Tensor& vec),                           \
     (beta, input, alpha, mat, vec), with_factors_inplace(addmv, addmv_, input, mat, vec, beta, alpha), deprecated,    \
     accepts(kNumbers))                                                                                                \
  OP(PYTHON_FORM, Tensor, addmv_, beta, (Scalar beta, const Tensor& input, const Tensor& mat, const Tensor& vec),      \
     (beta, input, mat, vec), with_factors_inplace(addmv, addmv_, input, mat, vec, beta, 1), deprecated,               \
     accepts(kNumbers))                                                                                                \
  OP(PRODUCT_FORMS_INPLACE, addmv, mat, vec)
