// Matrix products by cuBLASLt.
#pragma once
#include <memory>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The work fused into a product: on a sum before it is written, with the bias added if there is one (relu makes zeros
/// of NaN; gelu is the one with tanh), or `row_sums`: the sums of op(A)'s rows are written too, which are a bias's
/// gradient. What `..._kept` writes besides, `..._gradient` reads: of relu a bit for each sum, in the library's own
/// order; of gelu its argument. A gradient multiplies the sum by the activation's slope.
enum class Epilogue : uint8_t { none, bias, relu, relu_kept, relu_backward, gelu, gelu_kept, gelu_backward, row_sums };

/// The products C[m, n] = op(A)[m, k] @ op(B)[k, n], for `count` products at fixed distances. Row-major: A is stored
/// [m, k], or [k, m] if a_transposed, its rows `lda` elements apart; C is [m, n]. m, n, k, count are at least 1. With
/// `pointers` the matrices may lie anywhere, and the steps only say how they are aligned.
struct GemmDesc {
  DType dtype = DType::float32;
  int64_t m = 1, n = 1, k = 1, count = 1;
  bool a_transposed = false, b_transposed = false;
  int64_t lda = 1, ldb = 1, ldc = 1;
  int64_t a_step = 0, b_step = 0, c_step = 0;
  const void* const* pointers = nullptr;  // on the device: `count` of A, as many of B, as many of C
  bool by_pointers = false;
  const void* a = nullptr;
  const void* b = nullptr;
  void* c = nullptr;
  Epilogue epilogue = Epilogue::none;
  const void* bias = nullptr;  // [n] or null; for row_sums [m], which is written
  void* kept = nullptr;  // read or written by epilogues that have it: bytes_kept() bytes
  const void* added = nullptr;  // [m, n] in C's dtype and with its ldc, `added_step` apart: what each sum starts from
  int64_t added_step = 0;
  bool wide_result = false;  // C is float32 where the operands are 16-bit floats
  bool of_convolution = false;  // TF32 follows the setting of convolutions; a refusal gives no warning
};
/// Returns how many bytes an epilogue keeps of a product [m, n], in rows without gaps for gelu; 0 where it keeps
/// nothing or cannot (of gelu, n must be a multiple of 8).
int64_t bytes_kept(Epilogue epilogue, DType dtype, int64_t m, int64_t n);

/// Returns whether products of a dtype can go to cuBLASLt: it is there and takes the dtype.
bool gemm_available(DType dtype);
/// Returns whether products of a dtype can add a bias.
bool gemm_takes_bias(DType dtype);
/// Queues the products on `stream` of `device` (which is current). Returns false if the library is missing or refuses
/// them; then nothing was queued. Of what only an epilogue or pointers add, a refusal gives no warning. float32 keeps
/// its digits unless product_settings().matmul_allow_tf32 (or convolution_allow_tf32, see GemmDesc).
bool gemm(const GemmDesc& desc, int device, StreamHandle stream);

/// Products that are queued one after another on one stream, such as those of a recurrent layer's steps. As long as
/// sizes and alignment stay, the algorithm is looked up once; all share one workspace.
class RepeatedGemm {
 public:
  RepeatedGemm(DType dtype, int device, StreamHandle stream);
  ~RepeatedGemm();
  /// Queues a product as gemm() does, of the dtype above, one at a time. Returns false if nothing was queued.
  bool operator()(const GemmDesc& desc);

 private:
  struct State;
  std::unique_ptr<State> state_;  // null: the library is not there
};

/// Returns whether gemm() takes products by pointers; `pointers` need not be there yet. Older versions take none.
bool gemm_takes_pointers(const GemmDesc& desc, int device);

/// Counters of the cache of algorithms, for tests.
struct GemmCounters {
  uint64_t hits = 0, misses = 0;
};
GemmCounters gemm_counters();

}  // namespace vesta::cuda
