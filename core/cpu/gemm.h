// Matrix products on raw memory: C (+)= A @ B, batched, any strides, equal bits for any number of threads.
#pragma once

#include <vesta/core/base/macros.h>

#include <cstdint>
#include <span>

namespace vesta { class Storage; }

namespace vesta::cpu {

/// The identity of a weight whose packed form may be kept between calls: its storage, how often that was written when
/// the call began, and its place (Note [Kept weights] in kept_weights.h). Null: it is not kept.
struct Weight {
  const Storage* storage = nullptr;
  std::uint32_t writes = 0;
  unsigned char dtype = 0;
  bool channels_last = false;  ///< of a convolution's weight
  const void* data = nullptr;  ///< the first element

  explicit operator bool() const { return storage != nullptr; }
  bool operator==(const Weight&) const = default;
};

/// An element type; the tensor level maps its dtypes to these.
enum class Elem : unsigned char { f32, f64, bf16, f16, c64, c128, u8, i8, i16, i32, i64 };

/// Returns the size of one element in bytes.
VESTA_API std::int64_t elem_size(Elem elem);

/// One batch dimension: `size` products, and the step of each operand in elements (0 broadcasts it).
struct BatchDim {
  std::int64_t size, a, b, c;
};

/// The products C[m, n] = A[m, k] @ B[k, n] for every index of `batch`. All strides and steps count elements.
struct Gemm {
  std::int64_t m, n, k;
  const void* a;
  std::int64_t a_row, a_col;  ///< element (i, k) of A at i * a_row + k * a_col; any strides, also 0
  const void* b;
  std::int64_t b_row, b_col;  ///< element (k, j) of B at k * b_row + j * b_col; any strides, also 0
  void* c;
  std::int64_t c_row;  ///< element (i, j) of C at i * c_row + j; C must not overlap A or B
  std::span<const BatchDim> batch = {};  ///< outermost first; empty: one product
  const void* bias = nullptr;            ///< [n] added to each row after the product (unit stride), or null
  bool accumulate = false;               ///< add to what C holds
  Weight weight = {};                    ///< B's, if it may be kept
};

/// Computes the products.
///
/// f32 and f64 are sums of fused multiply-adds in a fixed order (Note [One chain of sums] in gemm_kernel.h): an
/// element depends on its row of A, its column of B, the bias and what it is added to, never on m, n, strides, batch
/// or the number of threads. bf16 and f16 are computed as f32 and rounded once, to nearest even; bf16 with the
/// instructions for it where the machine has them, which are as exact but treat subnormal numbers as zeros (Note
/// [Pairs of bfloat16] in gemm_kernel.h). Complex products use four multiplications in the order of k; integers wrap
/// around. k = 0 gives zeros (plus bias). Transposed operands are read in place where that is fast and repacked where
/// it is not; the caller need not copy. Throws Error(memory) if working memory is short, and what the interrupt check
/// throws.
VESTA_API void gemm(Elem elem, const Gemm& args);

/// Converts n 16-bit floats to f32, exactly (signalling NaNs become quiet).
VESTA_API void bf16_to_f32(std::int64_t n, const std::uint16_t* in, float* out);
VESTA_API void f16_to_f32(std::int64_t n, const std::uint16_t* in, float* out);

/// Rounds n values of f32 to 16-bit floats, to nearest even; NaN stays NaN and overflow becomes infinity.
VESTA_API void f32_to_bf16(std::int64_t n, const float* in, std::uint16_t* out);
VESTA_API void f32_to_f16(std::int64_t n, const float* in, std::uint16_t* out);

}  // namespace vesta::cpu
