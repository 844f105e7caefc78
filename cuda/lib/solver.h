// Decompositions of matrices on the device: cuSOLVER and, for triangular systems and small matrices, cuBLAS.
#pragma once
#include <mutex>
#include <vector>

#include <vesta/core/tensor.h>
#include <vesta/cuda/lib/library.h>
#include <vesta/cuda/lib/solver_abi.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda::solver {

/// Throws Refused if cuSOLVER, or with `blas` cuBLAS, cannot be used.
void expect_libraries(bool blas);

/// The largest order of matrices that go to batched functions, which give a block to each. Not measured.
inline constexpr int64_t kBatchedOrder = 256;

/// Matrices side by side: the first one, and the elements from one to the next.
struct Matrices {
  const Tensor& memory;
  int64_t ld, step, count;
  void* at(int64_t i) const;
};

/// The calls of the library on the current stream of a tensor's device, with its handles locked. Matrices lie by
/// columns, of the tensor's dtype; statuses `info` are int32, one each, on the device.
class Solver {
 public:
  /// Takes the device's handles. Refused if cuSOLVER (with `needs_blas` cuBLAS) is missing.
  explicit Solver(const Tensor& like, bool needs_blas = false);

  /// Overwrites one triangle of [n, n] with its Cholesky factor.
  void potrf(bool is_upper, int64_t n, const Matrices& a, const Tensor& info);
  /// Overwrites [m, n] with L and U; `pivots` int32 [count, min(m, n)].
  void getrf(int64_t m, int64_t n, const Matrices& a, const Tensor& pivots, const Tensor& info);
  /// Overwrites [m, n] with R and reflections; `tau` [count, min(m, n)].
  void geqrf(int64_t m, int64_t n, const Matrices& a, const Tensor& tau);
  /// Overwrites [m, n], whose first k columns hold reflections, with the columns of Q.
  void orgqr(int64_t m, int64_t n, int64_t k, const Matrices& a, const Tensor& tau);
  /// Finds eigenvalues `w` [count, n] of Hermitian [n, n], which is overwritten with the vectors.
  void syevd(bool is_upper, int64_t n, const Matrices& a, const Tensor& w, const Tensor& info);
  /// Finds singular values `s` [count, n] and vectors of [m, n], m >= n, which is destroyed: the first columns of U and
  /// all of V^H, or with `all` the whole U.
  void gesvd(bool all, int64_t m, int64_t n, const Matrices& a, const Tensor& s, const Matrices& u, const Matrices& vh,
             const Tensor& info);
  /// Overwrites b [m, n] with the solution of A X = b, or X A = b.
  void trsm(bool is_left, bool is_upper, bool is_unit, int64_t m, int64_t n, const Matrices& a, const Matrices& b);

 private:
  struct Room {
    void* device;
    size_t device_size;
    void* host;
    size_t host_size;
  };
  Room room(size_t device, size_t host);
  Tensor pointers(const Matrices& a) const;
  void check(Status s, const char* call) const;
  /// Raises unless the statuses of a function that only fails on wrong arguments are 0.
  int* own_info();

  const Tensor& like_;
  int letter_, type_, real_type_;
  DeviceGuard guard_;
  std::unique_lock<std::mutex> lock_;
  Handle solver_ = nullptr, blas_ = nullptr;
  Params params_ = nullptr;
  Tensor workspace_, info_;
  std::vector<char> host_workspace_;
};

}  // namespace vesta::cuda::solver
