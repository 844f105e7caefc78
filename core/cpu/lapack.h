// LAPACK and BLAS: the Fortran functions that the kernels of linear algebra call, from a library that is opened when
// the first of them runs. Nothing is linked, so that `import vesta` needs none.
//
// Note [LAPACK's integers]
// Fortran passes integers by address; libraries are built for 32 bits or for 64. We pass addresses of 64-bit integers:
// the machine is little-endian, so that a 32-bit library reads the low half. Sizes are checked to fit 31 bits, and what
// comes back is read by `result_of`. So one set of signatures serves both kinds, OpenBLAS's 64-bit builds included.
#pragma once
#include <bit>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>

namespace vesta::cpu {

/// An integer argument of LAPACK.
using LapackInt = int64_t;
static_assert(std::endian::native == std::endian::little, "Note [LAPACK's integers]");

/// Returns the status that a function left behind: 0, or -i for a wrong argument i.
inline int result_of(LapackInt info) { return int(static_cast<uint32_t>(info)); }

/// Reads an array of `count` integers that LAPACK wrote, 32 or 64 bits each, into `to`. The array was filled with -1
/// before, and its elements are positive: the upper half of the first 64 bits tells which.
void read_integers(const LapackInt* from, int64_t count, int32_t* to);
/// Does the same for integers that may be negative, written by a call that wrote 64 bits each if `wide`.
void read_integers(const LapackInt* from, int64_t count, int32_t* to, bool wide);
/// Writes `count` integers as 32 bits, or 64 if `wide`, for LAPACK to read; `to` has room for 64 each.
void write_integers(const int64_t* from, int64_t count, LapackInt* to, bool wide);
/// Returns whether the library for T has 64-bit integers.
template <class T>
bool has_wide_integers(const char* op);

/// The threads that the library may use, for one scope: one for small matrices, else its own number, as bits depend on
/// it and must not on set_num_threads(). Its threads wait for each other busily at each of many short steps: two took
/// 1.1 to 1.3 times as long as one for QR, LU and eigenvalues of [256, 256] (0.6 to 0.9 times for [512, 512]), and
/// hundreds of times beside a busy process. Libraries other than OpenBLAS keep what they have.
class LapackThreads {
 public:
  LapackThreads(int64_t rows, int64_t columns, const char* op);
  ~LapackThreads();
  LapackThreads(const LapackThreads&) = delete;
  LapackThreads& operator=(const LapackThreads&) = delete;

 private:
  struct Count;
  Count* count_ = nullptr;
};

/// The functions for matrices of T: float, double or a complex number of either. Matrices lie by columns, `ld` elements
/// from column to column. The sizes at the end are the lengths of the strings, as Fortran's compilers pass them.
/// Functions that differ for real and complex numbers are set for one kind alone.
template <class T>
struct Lapack {
  using Int = const LapackInt*;
  using R = decltype(std::real(T{}));
  /// Overwrites a [m, n] with R and the reflections that make Q; tau [min(m, n)].
  void (*geqrf)(Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, LapackInt* info);
  /// Overwrites the first k columns of a [m, n], reflections of geqrf, with the first n columns of Q. Complex: ungqr.
  void (*orgqr)(Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, LapackInt* info);
  /// Overwrites b [m, n] with the solution X of op(A) X = alpha b (side L) or X op(A) = alpha b (side R).
  void (*trsm)(const char* side, const char* uplo, const char* op, const char* diag, Int m, Int n, const T* alpha,
               const T* a, Int lda, T* b, Int ldb, size_t, size_t, size_t, size_t);
  /// Overwrites one triangle of a symmetric a [n, n] with L and D of A = L D L^T; pivots [n], negative for blocks of 2.
  void (*sytrf)(const char* uplo, Int n, T* a, Int lda, LapackInt* pivots, T* work, Int lwork, LapackInt* info, size_t);
  /// Overwrites b [n, k] with the solution of A x = b, from sytrf.
  void (*sytrs)(const char* uplo, Int n, Int k, const T* a, Int lda, const LapackInt* pivots, T* b, Int ldb,
                LapackInt* info, size_t);
  /// Do the same for a Hermitian matrix, A = L D L^H. Complex.
  void (*hetrf)(const char* uplo, Int n, T* a, Int lda, LapackInt* pivots, T* work, Int lwork, LapackInt* info, size_t);
  void (*hetrs)(const char* uplo, Int n, Int k, const T* a, Int lda, const LapackInt* pivots, T* b, Int ldb,
                LapackInt* info, size_t);
  /// Overwrites one triangle of a [n, n] with its Cholesky factor; info > 0: the minor that is not positive.
  void (*potrf)(const char* uplo, Int n, T* a, Int lda, LapackInt* info, size_t);
  /// Overwrites a [m, n] with L and U; pivots [min(m, n)]; info > 0: the first zero on U's diagonal.
  void (*getrf)(Int m, Int n, T* a, Int lda, LapackInt* pivots, LapackInt* info);
  /// Finds eigenvalues w [n], ascending, of a Hermitian a [n, n], which is overwritten with vectors (jobz V). Real.
  void (*syevd)(const char* jobz, const char* uplo, Int n, T* a, Int lda, R* w, T* work, Int lwork, LapackInt* iwork,
                Int liwork, LapackInt* info, size_t, size_t);
  /// Does the same for complex numbers.
  void (*heevd)(const char* jobz, const char* uplo, Int n, T* a, Int lda, R* w, T* work, Int lwork, R* rwork,
                Int lrwork, LapackInt* iwork, Int liwork, LapackInt* info, size_t, size_t);
  /// Finds singular values s, descending, and vectors of a [m, n], which is destroyed. Real; complex.
  void (*gesdd)(const char* jobz, Int m, Int n, T* a, Int lda, R* s, T* u, Int ldu, T* vt, Int ldvt, T* work, Int lwork,
                LapackInt* iwork, LapackInt* info, size_t);
  void (*gesdd_complex)(const char* jobz, Int m, Int n, T* a, Int lda, R* s, T* u, Int ldu, T* vt, Int ldvt, T* work,
                        Int lwork, R* rwork, LapackInt* iwork, LapackInt* info, size_t);
  /// Finds eigenvalues and vectors of a [n, n], which is destroyed. Real: values wr + i wi, and the vectors of a
  /// conjugate pair as two columns, real and imaginary parts; complex.
  void (*geev)(const char* left, const char* right, Int n, T* a, Int lda, T* wr, T* wi, T* vl, Int ldvl, T* vr,
               Int ldvr, T* work, Int lwork, LapackInt* info, size_t, size_t);
  void (*geev_complex)(const char* left, const char* right, Int n, T* a, Int lda, T* w, T* vl, Int ldvl, T* vr,
                       Int ldvr, T* work, Int lwork, R* rwork, LapackInt* info, size_t, size_t);
};

/// Returns the functions for T, opening the library if that was not done. Looked for in this order: the file that
/// VESTA_LAPACK_LIBRARY names and no other, OpenBLAS, any liblapack of the system, the OpenBLAS that SciPy brings.
/// Error(runtime) that says what to install; the next call looks again.
template <class T>
const Lapack<T>& lapack(const char* op);

extern template const Lapack<float>& lapack(const char* op);
extern template const Lapack<double>& lapack(const char* op);
extern template const Lapack<std::complex<float>>& lapack(const char* op);
extern template const Lapack<std::complex<double>>& lapack(const char* op);

}  // namespace vesta::cpu
