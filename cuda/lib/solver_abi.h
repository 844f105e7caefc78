// The binary interface of cuSOLVER's dense part and of cuBLAS, as far as we use it. Functions that exist for each dtype
// are arrays, in the order of kLetters; their matrices are untyped here.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vesta::cuda::solver {

using Handle = void*;
using Params = void*;  // as created: the defaults
using Status = int;  // 0: success

constexpr char kLetters[] = "SDCZ";  // float, double, and the complex numbers of both

enum DataType : int { r_32f = 0, r_64f = 1, c_32f = 4, c_64f = 5 };
enum Fill : int { lower = 0, upper = 1 };
enum Side : int { left = 0, right = 1 };
enum Diagonal : int { non_unit = 0, unit = 1 };
enum Transpose : int { op_n = 0 };
enum EigMode : int { eig_vectors = 1 };
enum Determinism : int { deterministic_results = 1, allow_nondeterministic_results = 2 };

/// The functions of cuSOLVER. Matrices lie by columns; `info` is on the device.
struct SolverFunctions {
  Status (*create)(Handle*);
  Status (*create_params)(Params*);
  Status (*set_stream)(Handle, void* stream);
  Status (*set_deterministic)(Handle, int mode);
  Status (*potrf_size)(Handle, Params, int fill, int64_t n, int type, const void* a, int64_t lda, int compute,
                       size_t* device, size_t* host);
  Status (*potrf)(Handle, Params, int fill, int64_t n, int type, void* a, int64_t lda, int compute, void* device,
                  size_t device_size, void* host, size_t host_size, int* info);
  Status (*getrf_size)(Handle, Params, int64_t m, int64_t n, int type, const void* a, int64_t lda, int compute,
                       size_t* device, size_t* host);
  Status (*getrf)(Handle, Params, int64_t m, int64_t n, int type, void* a, int64_t lda, int64_t* pivots, int compute,
                  void* device, size_t device_size, void* host, size_t host_size, int* info);
  Status (*geqrf_size)(Handle, Params, int64_t m, int64_t n, int type, const void* a, int64_t lda, int tau_type,
                       const void* tau, int compute, size_t* device, size_t* host);
  Status (*geqrf)(Handle, Params, int64_t m, int64_t n, int type, void* a, int64_t lda, int tau_type, void* tau,
                  int compute, void* device, size_t device_size, void* host, size_t host_size, int* info);
  Status (*syevd_size)(Handle, Params, int mode, int fill, int64_t n, int type, const void* a, int64_t lda, int w_type,
                       const void* w, int compute, size_t* device, size_t* host);
  Status (*syevd)(Handle, Params, int mode, int fill, int64_t n, int type, void* a, int64_t lda, int w_type, void* w,
                  int compute, void* device, size_t device_size, void* host, size_t host_size, int* info);
  Status (*gesvd_size)(Handle, Params, signed char job_u, signed char job_vt, int64_t m, int64_t n, int type,
                       const void* a, int64_t lda, int s_type, const void* s, int u_type, const void* u, int64_t ldu,
                       int vt_type, const void* vt, int64_t ldvt, int compute, size_t* device, size_t* host);
  Status (*gesvd)(Handle, Params, signed char job_u, signed char job_vt, int64_t m, int64_t n, int type, void* a,
                  int64_t lda, int s_type, void* s, int u_type, void* u, int64_t ldu, int vt_type, void* vt,
                  int64_t ldvt, int compute, void* device, size_t device_size, void* host, size_t host_size, int* info);
  Status (*orgqr_size[4])(Handle, int m, int n, int k, const void* a, int lda, const void* tau, int* size);
  Status (*orgqr[4])(Handle, int m, int n, int k, void* a, int lda, const void* tau, void* work, int size, int* info);
  Status (*potrf_batched[4])(Handle, int fill, int n, void* const* a, int lda, int* info, int count);
};

/// The functions of cuBLAS.
struct BlasFunctions {
  Status (*create)(Handle*);
  Status (*set_stream)(Handle, void* stream);
  Status (*trsm[4])(Handle, int side, int fill, int transpose, int diagonal, int m, int n, const void* alpha,
                    const void* a, int lda, void* b, int ldb);
  Status (*trsm_batched[4])(Handle, int side, int fill, int transpose, int diagonal, int m, int n, const void* alpha,
                            const void* const* a, int lda, void* const* b, int ldb, int count);
  Status (*getrf_batched[4])(Handle, int n, void* const* a, int lda, int* pivots, int* info, int count);
};

}  // namespace vesta::cuda::solver
