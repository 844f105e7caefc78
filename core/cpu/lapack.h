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

/// The functions for matrices of T: float, double or a complex number of either. Matrices lie by columns, `ld` elements
/// from column to column. The sizes behind trsm's texts are their lengths, as Fortran's compilers pass them.
template <class T>
struct Lapack {
  using Int = const LapackInt*;
  /// Overwrites a [m, n] with R and the reflections that make Q; tau [min(m, n)].
  void (*geqrf)(Int m, Int n, T* a, Int lda, T* tau, T* work, Int lwork, LapackInt* info);
  /// Overwrites the first k columns of a [m, n], reflections of geqrf, with the first n columns of Q. Complex: ungqr.
  void (*orgqr)(Int m, Int n, Int k, T* a, Int lda, const T* tau, T* work, Int lwork, LapackInt* info);
  /// Overwrites b [m, n] with the solution X of op(A) X = alpha b (side L) or X op(A) = alpha b (side R).
  void (*trsm)(const char* side, const char* uplo, const char* op, const char* diag, Int m, Int n, const T* alpha,
               const T* a, Int lda, T* b, Int ldb, size_t, size_t, size_t, size_t);
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
