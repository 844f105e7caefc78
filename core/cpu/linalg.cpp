// Linear algebra by LAPACK: matrices are copied into its order, by columns, one call each.
#include <algorithm>
#include <limits>
#include <vector>

#include <vesta/core/cpu/lapack.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/linalg.h>
#include <vesta/core/ops/linalg_checks.h>
#include <vesta/core/ops/shape.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/shape.h>

namespace vesta::cpu {
namespace {

constexpr DTypeSet kLapackTypes = set_of(DType::float32) | set_of(DType::float64) | kComplexes;

void check_sizes(int64_t rows, int64_t columns, const char* op) {
  constexpr int64_t limit = std::numeric_limits<int32_t>::max();
  VESTA_CHECK(rows <= limit && columns <= limit, runtime, op, ": expected sizes that fit 32 bits, got a matrix [", rows,
              ", ", columns, "].");
}
void check_result(LapackInt info, const char* op) {
  VESTA_CHECK(result_of(info) == 0, runtime, op, ": LAPACK refused argument ", -result_of(info), ".");
}

/// The working memory of LAPACK's functions, whose size they tell themselves.
template <class T>
struct Work {
  std::vector<T> memory;
  LapackInt size = -1;
  /// Calls `ask` with room for one number, where it leaves the size that it wants, and takes the larger of two.
  template <class Ask>
  void reserve(const Ask& ask) {
    T wanted{};
    const LapackInt query = -1;
    ask(&wanted, &query);
    size = std::max(size, LapackInt(std::max(1.0, double(std::real(wanted)))));
    memory.resize(size_t(size));
  }
};

/// One QR decomposition after the other.
template <class T>
struct Qr {
  static constexpr const char* op = "linalg.qr";
  const Lapack<T>& f = lapack<T>(op);
  const QrShape& s;
  LapackInt m = s.rows, n = s.columns, k = s.rank, q_columns = s.q_columns, ld = std::max<int64_t>(1, s.rows);
  Work<T> work;
  std::vector<T> tau = std::vector<T>(size_t(s.rank));

  explicit Qr(const QrShape& shape) : s(shape) {
    LapackInt info = 0;
    T none{};
    work.reserve([&](T* w, const LapackInt* size) { f.geqrf(&m, &n, &none, &ld, &none, w, size, &info); });
    if (q_columns == 0) return;
    work.reserve([&](T* w, const LapackInt* size) { f.orgqr(&m, &q_columns, &k, &none, &ld, &none, w, size, &info); });
  }
  /// Decomposes a [rows, columns], which is overwritten, into q and r.
  void run(T* a, T* q, T* r) {
    LapackInt info = 0;
    f.geqrf(&m, &n, a, &ld, tau.data(), work.memory.data(), &work.size, &info);
    check_result(info, op);
    for (int64_t j = 0; j < n; ++j) {
      const int64_t above = std::min(j + 1, k);
      std::copy_n(a + j * m, above, r + j * s.r_rows);
      std::fill(r + j * s.r_rows + above, r + (j + 1) * s.r_rows, T{});
    }
    if (q_columns == 0) return;
    std::copy_n(a, m * k, q);
    f.orgqr(&m, &q_columns, &k, q, &ld, tau.data(), work.memory.data(), &work.size, &info);
    check_result(info, op);
  }
};

/// Sets matrices [n, n] to the identity.
template <class T>
void fill_identity(T* to, int64_t count, int64_t n) {
  std::fill_n(to, count * n * n, T{});
  for (int64_t b = 0; b < count; ++b) {
    for (int64_t i = 0; i < n; ++i) to[(b * n + i) * n + i] = T(1);
  }
}

TensorPair qr_kernel(const Tensor& A, Text mode) {
  const QrShape s = qr_shape(A, mode);
  check_sizes(s.rows, s.columns, "linalg.qr");
  Tensor q = s.mode == QrMode::r ? empty_tensor(Dims{0}, A.dtype(), A.device())
                                 : empty_by_columns(s.batch, s.rows, s.q_columns, A);
  Tensor r = empty_by_columns(s.batch, s.r_rows, s.columns, A);
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    if (s.rank == 0 && q.numel()) return fill_identity(elements<T>(q), s.count, s.rows);
    if (A.numel() == 0) return;
    Tensor a = empty_by_columns(s.batch, s.rows, s.columns, A);
    copy_values(a, A);
    const LapackThreads threads(s.rows, s.columns, Qr<T>::op);
    Qr<T> decomposition(s);
    for (int64_t b = 0; b < s.count; ++b) {
      decomposition.run(elements<T>(a) + b * s.rows * s.columns, elements<T>(q) + b * s.rows * s.q_columns,
                        elements<T>(r) + b * s.r_rows * s.columns);
    }
  });
  return {q, r};
}

Tensor solve_triangular_kernel(const Tensor& A, const Tensor& B, bool upper, bool left, bool unitriangular) {
  constexpr const char* op = "linalg.solve_triangular";
  const TriangularShape s = triangular_shape(A, B, left);
  check_sizes(std::max(s.rows, s.columns), s.order, op);
  Tensor x = empty_by_columns(s.batch, s.rows, s.columns, B);
  if (!x.numel()) return x;
  copy_values(x, B);
  Tensor a = empty_by_columns(s.batch, s.order, s.order, A);
  copy_values(a, A);
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.order, std::max(s.rows, s.columns), op);
    const LapackInt m = s.rows, n = s.columns, ld = s.order;
    const T one(1);
    for (int64_t b = 0; b < s.count; ++b) {
      f.trsm(left ? "L" : "R", upper ? "U" : "L", "N", unitriangular ? "U" : "N", &m, &n, &one,
             elements<T>(a) + b * s.order * s.order, &ld, elements<T>(x) + b * m * n, &m, 1, 1, 1, 1);
    }
  });
  return x;
}

/// Copies matrices into LAPACK's order.
Tensor by_columns(const Tensor& A, const MatrixShape& s) {
  Tensor a = empty_by_columns(s.batch, s.rows, s.columns, A);
  copy_values(a, A);
  return a;
}
Tensor empty_vectors(const Dims& batch, int64_t n, DType dtype) {
  Dims sizes(batch);
  sizes.push_back(n);
  return empty_tensor(sizes, dtype);
}
TensorPair cholesky_kernel(const Tensor& A, bool upper, bool check_errors) {
  constexpr const char* op = "linalg.cholesky_ex";
  const MatrixShape s = matrix_shape(A, op, "A", true);
  check_sizes(s.rows, s.columns, op);
  Tensor factor = by_columns(A, s), info = empty_tensor(s.batch, DType::int32);
  int32_t* status = elements<int32_t>(info);
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    const LapackThreads threads(s.rows, s.columns, op);
    const LapackInt n = s.rows, ld = std::max<int64_t>(1, n);
    T* a = elements<T>(factor);
    for (int64_t b = 0; b < s.count; ++b, a += n * n) {
      LapackInt failed = 0;
      if (n > 0) lapack<T>(op).potrf(upper ? "U" : "L", &n, a, &ld, &failed, 1);
      VESTA_CHECK(result_of(failed) >= 0, runtime, op, ": LAPACK refused argument ", -result_of(failed), ".");
      status[b] = result_of(failed);
      for (int64_t j = 0; j < n; ++j) {  // the other triangle is the input's
        if (upper) std::fill(a + j * n + j + 1, a + (j + 1) * n, T{});
        else std::fill(a + j * n, a + j * n + j, T{});
      }
      if (check_errors) check_cholesky(status[b], op);
    }
  });
  return {factor, info};
}

TensorTriple lu_factor_kernel(const Tensor& A, bool pivot, bool check_errors) {
  constexpr const char* op = "linalg.lu_factor_ex";
  VESTA_CHECK(pivot, runtime, op, ": LU without pivoting is not implemented on the CPU.");
  const MatrixShape s = matrix_shape(A, op, "A", false);
  check_sizes(s.rows, s.columns, op);
  Tensor LU = by_columns(A, s), pivots = empty_vectors(s.batch, s.rank, DType::int32);
  Tensor info = empty_tensor(s.batch, DType::int32);
  int32_t* status = elements<int32_t>(info);
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    const LapackThreads threads(s.rows, s.columns, op);
    const LapackInt m = s.rows, n = s.columns, ld = std::max<int64_t>(1, m);
    std::vector<LapackInt> places(size_t(s.rank));
    for (int64_t b = 0; b < s.count; ++b) {
      LapackInt failed = 0;
      std::fill(places.begin(), places.end(), LapackInt(-1));
      if (s.rank > 0) lapack<T>(op).getrf(&m, &n, elements<T>(LU) + b * m * n, &ld, places.data(), &failed);
      VESTA_CHECK(result_of(failed) >= 0, runtime, op, ": LAPACK refused argument ", -result_of(failed), ".");
      read_integers(places.data(), s.rank, elements<int32_t>(pivots) + b * s.rank);
      status[b] = result_of(failed);
      if (check_errors) check_lu(status[b], op);
    }
  });
  return {LU, pivots, info};
}

/// Decomposes matrices into reflections and R.
TensorPair geqrf_kernel(const Tensor& A) {
  constexpr const char* op = "geqrf";
  const MatrixShape s = matrix_shape(A, op, "input", false);
  check_sizes(s.rows, s.columns, op);
  Tensor a = by_columns(A, s), tau = empty_vectors(s.batch, s.rank, A.dtype());
  if (s.rank == 0) return {a, tau};
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.rows, s.columns, op);
    const LapackInt m = s.rows, n = s.columns;
    LapackInt info = 0;
    T none{};
    Work<T> work;
    work.reserve([&](T* w, const LapackInt* size) { f.geqrf(&m, &n, &none, &m, &none, w, size, &info); });
    for (int64_t b = 0; b < s.count; ++b) {
      f.geqrf(&m, &n, elements<T>(a) + b * m * n, &m, elements<T>(tau) + b * s.rank, work.memory.data(), &work.size,
              &info);
      check_result(info, op);
    }
  });
  return {a, tau};
}

TensorTriple ldl_factor_kernel(const Tensor& A, bool hermitian, bool check_errors) {
  constexpr const char* op = "linalg.ldl_factor_ex";
  const MatrixShape s = matrix_shape(A, op, "input", true);
  check_sizes(s.rows, s.columns, op);
  Tensor LD = by_columns(tril(A), s), pivots = empty_vectors(s.batch, s.rows, DType::int32);
  Tensor info = empty_tensor(s.batch, DType::int32);
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.rows, s.columns, op);
    const bool wide = has_wide_integers<T>(op);
    const auto factor = std::is_floating_point_v<T> || !hermitian ? f.sytrf : f.hetrf;
    const LapackInt n = s.rows, ld = std::max<int64_t>(1, n);
    LapackInt failed = 0;
    T none{};
    std::vector<LapackInt> places(size_t(n) + 1);
    Work<T> work;
    work.reserve([&](T* w, const LapackInt* size) { factor("L", &n, &none, &ld, places.data(), w, size, &failed, 1); });
    for (int64_t b = 0; b < s.count; ++b) {
      failed = 0;
      if (n > 0) {
        factor("L", &n, elements<T>(LD) + b * n * n, &ld, places.data(), work.memory.data(), &work.size, &failed, 1);
      }
      const int status = result_of(failed);
      VESTA_CHECK(status >= 0, runtime, op, ": LAPACK refused argument ", -status, ".");
      read_integers(places.data(), n, elements<int32_t>(pivots) + b * n, wide);
      elements<int32_t>(info)[b] = status;
      if (status != 0 && check_errors) {
        fail(Cause::linalg, op, ": D[", status, ",", status, "] is zero and using it on ldl_solve would result in a ",
             "division by zero.");
      }
    }
  });
  return {LD, pivots, info};
}

/// Checks n pivots of linalg.ldl_factor, which LAPACK follows unseen: negative ones, of blocks of two rows, come in
/// pairs.
void check_ldl_pivots(const int64_t* pivots, int64_t n, const char* op) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t at = pivots[i];
    VESTA_CHECK(at != 0 && at >= -n && at <= n, runtime, op, ": expected pivots between 1 and ", n,
                ", or their negatives, got ", at, ".");
    if (at > 0) continue;
    VESTA_CHECK(i + 1 < n && pivots[i + 1] == at, runtime, op, ": expected negative pivots in equal pairs, as ",
                "linalg.ldl_factor gives them, got ", at, " alone.");
    ++i;
  }
}

Tensor ldl_solve_kernel(const Tensor& LD, const Tensor& pivots, const Tensor& B, bool hermitian) {
  constexpr const char* op = "linalg.ldl_solve";
  const MatrixShape s = ldl_solution(LD, pivots, B);
  check_sizes(s.rows, s.columns, op);
  Dims matrices(s.batch), places(s.batch), rights(s.batch);
  matrices.push_back(s.rows), matrices.push_back(s.rows), places.push_back(s.rows);
  rights.push_back(s.rows), rights.push_back(s.columns);
  Tensor x = empty_by_columns(s.batch, s.rows, s.columns, B), a = empty_by_columns(s.batch, s.rows, s.rows, LD);
  if (x.numel() == 0) return x;
  copy_values(x, expand(B, rights));
  copy_values(a, expand(LD, matrices));
  const Tensor order = contiguous_values(expand(pivots.to(DType::int64), places));
  visit<kLapackTypes>(LD.dtype(), [&]<class T>() {
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.rows, s.columns, op);
    const bool wide = has_wide_integers<T>(op);
    const auto solve = std::is_floating_point_v<T> || !hermitian ? f.sytrs : f.hetrs;
    const LapackInt n = s.rows, k = s.columns;
    std::vector<LapackInt> exchanges(size_t(n) + 1);
    for (int64_t b = 0; b < s.count; ++b) {
      const int64_t* p = elements<int64_t>(order) + b * n;
      check_ldl_pivots(p, n, op);
      write_integers(p, n, exchanges.data(), wide);
      LapackInt info = 0;
      solve("L", &n, &k, elements<T>(a) + b * n * n, &n, exchanges.data(), elements<T>(x) + b * n * k, &n, &info, 1);
      check_result(info, op);
    }
  });
  return x;
}

Tensor permutation_kernel(const Tensor& pivots, int64_t rows) {
  const Tensor exchanges = contiguous_values(pivots.to(DType::int64));
  const int64_t n = pivots.size(-1), count = n ? exchanges.numel() / n : 0;
  Dims sizes(pivots.sizes());
  sizes.back() = rows;
  Tensor r = empty_tensor(sizes, DType::int64);
  if (n == 0) {
    for (int64_t i = 0; i < r.numel(); ++i) elements<int64_t>(r)[i] = i % std::max<int64_t>(rows, 1);
    return r;
  }
  for (int64_t b = 0; b < count; ++b) {
    int64_t* order = elements<int64_t>(r) + b * rows;
    for (int64_t i = 0; i < rows; ++i) order[i] = i;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t other = elements<int64_t>(exchanges)[b * n + i] - 1;
      VESTA_CHECK(other >= 0 && other < rows, runtime,
                  "lu_solve: pivots given to lu_solve must all be greater or equal ", "to 1 and at most ", rows,
                  ", got ", other + 1, ".");
      std::swap(order[i], order[other]);
    }
  }
  return r;
}

/// The parts of a decomposition that are computed: LAPACK needs half of the time for values without vectors.
enum class Parts : unsigned char { values, vectors_too };

/// Returns eigenvalues and, if they are wanted, eigenvectors.
TensorPair eigh(const Tensor& A, Text uplo, Parts parts) {
  constexpr const char* op = "linalg.eigh";
  check_uplo(uplo, op);
  const MatrixShape s = matrix_shape(A, op, "A", true);
  check_sizes(s.rows, s.columns, op);
  Tensor vectors = by_columns(A, s), values = empty_vectors(s.batch, s.rows, real_type(A.dtype()));
  if (A.numel() == 0) return {values, vectors};
  const char *triangle = uplo == "L" || uplo == "l" ? "L" : "U", *job = parts == Parts::values ? "N" : "V";
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    using R = typename Lapack<T>::R;
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.rows, s.columns, op);
    const LapackInt n = s.rows;
    Work<T> work;
    Work<R> real_work;
    std::vector<LapackInt> integers;
    LapackInt wanted = 0, integers_size = -1, info = 0;
    auto call = [&](T* a, R* w, T* room, const LapackInt* size, R* real_room, const LapackInt* real_size,
                    LapackInt* places, const LapackInt* places_size) {
      if constexpr (std::is_floating_point_v<T>) {
        f.syevd(job, triangle, &n, a, &n, w, room, size, places, places_size, &info, 1, 1);
      } else {
        f.heevd(job, triangle, &n, a, &n, w, room, size, real_room, real_size, places, places_size, &info, 1, 1);
      }
    };
    T none{};
    R real_none{};
    work.reserve([&](T* room, const LapackInt* size) {
      R wanted_real{};
      call(&none, &real_none, room, size, &wanted_real, size, &wanted, size);
      real_work.size = LapackInt(std::max(1.0, double(wanted_real)));
    });
    real_work.memory.resize(size_t(real_work.size));
    integers_size = std::max<LapackInt>(1, result_of(wanted));
    integers.resize(size_t(integers_size));
    for (int64_t b = 0; b < s.count; ++b) {
      call(elements<T>(vectors) + b * n * n, elements<R>(values) + b * n, work.memory.data(), &work.size,
           real_work.memory.data(), &real_work.size, integers.data(), &integers_size);
      check_converged(result_of(info), op);
    }
  });
  return {values, vectors};
}
TensorPair eigh_kernel(const Tensor& A, Text uplo) { return eigh(A, uplo, Parts::vectors_too); }
Tensor eigvalsh_kernel(const Tensor& A, Text uplo) { return std::get<0>(eigh(A, uplo, Parts::values)); }

/// Returns singular values and, if they are wanted, the vectors on both sides.
TensorTriple svd(const Tensor& A, bool full_matrices, Parts parts) {
  constexpr const char* op = "linalg.svd";
  const MatrixShape s = matrix_shape(A, op, "A", false);
  check_sizes(s.rows, s.columns, op);
  const bool alone = parts == Parts::values;
  const int64_t left = alone ? 0 : full_matrices ? s.rows : s.rank;
  const int64_t right = alone ? 0 : full_matrices ? s.columns : s.rank;
  Tensor u = empty_by_columns(s.batch, s.rows, left, A), v = empty_by_columns(s.batch, right, s.columns, A);
  Tensor values = empty_vectors(s.batch, s.rank, real_type(A.dtype()));
  Tensor a = by_columns(A, s);
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    using R = typename Lapack<T>::R;
    if (s.rank == 0) {
      fill_identity(elements<T>(u), u.numel() ? s.count : 0, s.rows);
      return fill_identity(elements<T>(v), v.numel() ? s.count : 0, s.columns);
    }
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.rows, s.columns, op);
    const LapackInt m = s.rows, n = s.columns, ldv = std::max<int64_t>(right, 1);
    const int64_t k = s.rank, larger = std::max(s.rows, s.columns);
    LapackInt info = 0;
    std::vector<LapackInt> integers(size_t(8 * k));
    std::vector<R> real_work(std::is_floating_point_v<T> ? 1 : size_t(k * std::max(5 * k + 7, 2 * larger + 2 * k + 1)));
    Work<T> work;
    auto call = [&](T* matrix, R* w, T* to_u, T* to_v, T* room, const LapackInt* size) {
      const char* job = alone ? "N" : full_matrices ? "A" : "S";
      if constexpr (std::is_floating_point_v<T>) {
        f.gesdd(job, &m, &n, matrix, &m, w, to_u, &m, to_v, &ldv, room, size, integers.data(), &info, 1);
      } else {
        f.gesdd_complex(job, &m, &n, matrix, &m, w, to_u, &m, to_v, &ldv, room, size, real_work.data(), integers.data(),
                        &info, 1);
      }
    };
    T none{};
    R real_none{};
    work.reserve([&](T* room, const LapackInt* size) { call(&none, &real_none, &none, &none, room, size); });
    for (int64_t b = 0; b < s.count; ++b) {
      call(elements<T>(a) + b * m * n, elements<R>(values) + b * k, elements<T>(u) + b * m * left,
           elements<T>(v) + b * right * n, work.memory.data(), &work.size);
      check_converged(result_of(info), op);
    }
  });
  return {u, values, v};
}
TensorTriple svd_kernel(const Tensor& A, bool full_matrices) { return svd(A, full_matrices, Parts::vectors_too); }
Tensor svdvals_kernel(const Tensor& A, MaybeText driver) {
  check_no_driver(driver);
  return std::get<1>(svd(A, false, Parts::values));
}

/// Writes the vectors of geev for real matrices as complex numbers: a conjugate pair lies in two columns.
template <class R>
void unpack_vectors(const R* packed, const R* imaginary, int64_t n, std::complex<R>* to) {
  for (int64_t j = 0; j < n; ++j) {
    const bool pair = imaginary[j] != R(0) && j + 1 < n;
    for (int64_t i = 0; i < n; ++i) {
      const R re = packed[j * n + i], im = pair ? packed[(j + 1) * n + i] : R(0);
      to[j * n + i] = {re, im};
      if (pair) to[(j + 1) * n + i] = {re, -im};
    }
    if (pair) ++j;
  }
}

/// Returns eigenvalues and, if they are wanted, eigenvectors.
TensorPair eig(const Tensor& A, Parts parts) {
  constexpr const char* op = "linalg.eig";
  const MatrixShape s = matrix_shape(A, op, "A", true);
  check_sizes(s.rows, s.columns, op);
  const DType complex = real_type(A.dtype()) == DType::float32 ? DType::complex64 : DType::complex128;
  Tensor a = by_columns(A, s), values = empty_vectors(s.batch, s.rows, complex);
  const bool alone = parts == Parts::values;
  Tensor vectors = empty_by_columns(s.batch, s.rows, alone ? 0 : s.rows, values);
  if (A.numel() == 0) return {values, vectors};
  visit<kLapackTypes>(A.dtype(), [&]<class T>() {
    using R = typename Lapack<T>::R;
    const Lapack<T>& f = lapack<T>(op);
    const LapackThreads threads(s.rows, s.columns, op);
    const T* p = elements<T>(a);  // what LAPACK refuses ends the process
    VESTA_CHECK(std::all_of(p, p + A.numel(), [](T x) { return x - x == T(0); }), runtime, op,
                ": input tensor should not contain infs or NaNs.");
    const LapackInt n = s.rows, one = 1;
    const int64_t square = n * n, kept = alone ? 0 : square;
    const char* job = alone ? "N" : "V";
    LapackInt info = 0;
    T none{};
    Work<T> work;
    auto* w = elements<std::complex<R>>(values);
    auto* v = elements<std::complex<R>>(vectors);
    if constexpr (std::is_floating_point_v<T>) {
      std::vector<T> re(static_cast<size_t>(n)), im(static_cast<size_t>(n)),
          packed(static_cast<size_t>(std::max<int64_t>(kept, 1)));
      work.reserve([&](T* room, const LapackInt* size) {
        f.geev("N", job, &n, &none, &n, &none, &none, &none, &one, &none, &n, room, size, &info, 1, 1);
      });
      for (int64_t b = 0; b < s.count; ++b) {
        f.geev("N", job, &n, elements<T>(a) + b * square, &n, re.data(), im.data(), &none, &one, packed.data(), &n,
               work.memory.data(), &work.size, &info, 1, 1);
        check_converged(result_of(info), op);
        for (int64_t i = 0; i < n; ++i) w[b * n + i] = {re[size_t(i)], im[size_t(i)]};
        if (!alone) unpack_vectors(packed.data(), im.data(), n, v + b * square);
      }
    } else {
      std::vector<R> real_work(size_t(2 * n));
      work.reserve([&](T* room, const LapackInt* size) {
        f.geev_complex("N", job, &n, &none, &n, &none, &none, &one, &none, &n, room, size, real_work.data(), &info, 1,
                       1);
      });
      for (int64_t b = 0; b < s.count; ++b) {
        f.geev_complex("N", job, &n, elements<T>(a) + b * square, &n, w + b * n, &none, &one, v + b * kept, &n,
                       work.memory.data(), &work.size, real_work.data(), &info, 1, 1);
        check_converged(result_of(info), op);
      }
    }
  });
  return {values, vectors};
}
TensorPair eig_kernel(const Tensor& A) { return eig(A, Parts::vectors_too); }
Tensor eigvals_kernel(const Tensor& A) { return std::get<0>(eig(A, Parts::values)); }

}  // namespace

void register_linalg() {
  ops::linalg_cholesky_ex.set_kernel(DeviceType::cpu, cholesky_kernel);
  ops::linalg_lu_factor_ex.set_kernel(DeviceType::cpu, lu_factor_kernel);
  ops::geqrf.set_kernel(DeviceType::cpu, geqrf_kernel);
  ops::linalg_ldl_factor_ex.set_kernel(DeviceType::cpu, ldl_factor_kernel);
  ops::linalg_ldl_solve.set_kernel(DeviceType::cpu, ldl_solve_kernel);
  ops::_pivots_to_permutation.set_kernel(DeviceType::cpu, permutation_kernel);
  ops::linalg_eigh.set_kernel(DeviceType::cpu, eigh_kernel);
  ops::linalg_eigvalsh.set_kernel(DeviceType::cpu, eigvalsh_kernel);
  ops::linalg_eig.set_kernel(DeviceType::cpu, eig_kernel);
  ops::linalg_eigvals.set_kernel(DeviceType::cpu, eigvals_kernel);
  ops::_linalg_svd.set_kernel(DeviceType::cpu, svd_kernel);
  ops::linalg_svdvals.set_kernel(DeviceType::cpu, svdvals_kernel);
  ops::linalg_qr.set_kernel(DeviceType::cpu, qr_kernel);
  ops::linalg_solve_triangular.set_kernel(DeviceType::cpu, solve_triangular_kernel);
}

}  // namespace vesta::cpu
