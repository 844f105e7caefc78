// Linear algebra by LAPACK: matrices are copied into its order, by columns, one call each. Threads are the library's.
#include <algorithm>
#include <limits>

#include <vesta/core/cpu/lapack.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/linalg.h>

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
    if (s.rank == 0 && q.numel()) return fill_identity(q.data_ptr<T>(), s.count, s.rows);
    if (A.numel() == 0) return;
    Tensor a = empty_by_columns(s.batch, s.rows, s.columns, A);
    copy_values(a, A);
    Qr<T> decomposition(s);
    for (int64_t b = 0; b < s.count; ++b) {
      decomposition.run(a.data_ptr<T>() + b * s.rows * s.columns, q.data_ptr<T>() + b * s.rows * s.q_columns,
                        r.data_ptr<T>() + b * s.r_rows * s.columns);
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
    const LapackInt m = s.rows, n = s.columns, ld = s.order;
    const T one(1);
    for (int64_t b = 0; b < s.count; ++b) {
      f.trsm(left ? "L" : "R", upper ? "U" : "L", "N", unitriangular ? "U" : "N", &m, &n, &one,
             a.data_ptr<T>() + b * s.order * s.order, &ld, x.data_ptr<T>() + b * m * n, &m, 1, 1, 1, 1);
    }
  });
  return x;
}

}  // namespace

void register_linalg() {
  ops::linalg_qr.set_kernel(DeviceType::cpu, qr_kernel);
  ops::linalg_solve_triangular.set_kernel(DeviceType::cpu, solve_triangular_kernel);
}

}  // namespace vesta::cpu
