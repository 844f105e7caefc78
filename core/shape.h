// Shapes: checked arithmetic on sizes and strides. All of it is 64-bit and raises on overflow.
#pragma once
#include <optional>

#include <vesta/core/base/error.h>
#include <vesta/core/base/small_vector.h>

namespace vesta {

/// The largest number of dimensions, as in PyTorch and NumPy.
inline constexpr int64_t kMaxDims = 64;

/// Returns a * b; raises if the product overflows int64.
inline int64_t checked_mul(int64_t a, int64_t b, const char* op) {
  int64_t r;
  VESTA_CHECK(!__builtin_mul_overflow(a, b, &r), value, op, ": the size overflows 64 bits (", a, " x ", b, ").");
  return r;
}
/// Returns a + b; raises if the sum overflows int64.
inline int64_t checked_add(int64_t a, int64_t b, const char* op) {
  int64_t r;
  VESTA_CHECK(!__builtin_add_overflow(a, b, &r), value, op, ": the size overflows 64 bits (", a, " + ", b, ").");
  return r;
}

/// Returns `at + steps * stride`, or `at` if that overflows, which only happens for empty tensors, whose elements are
/// never read.
inline int64_t moved(int64_t at, int64_t steps, int64_t stride) {
  int64_t by, to;
  const bool far = __builtin_mul_overflow(steps, stride, &by) || __builtin_add_overflow(at, by, &to);
  return far || to > (int64_t(1) << 58) ? at : to;
}

/// Returns the number of elements; raises on a negative size, on more than kMaxDims, and on overflow.
VESTA_API int64_t numel_of(IntSpan sizes, const char* op);
/// Returns row-major strides, in elements.
VESTA_API Dims contiguous_strides(IntSpan sizes);
/// Returns whether the strides are row-major (sizes of 1 and empty tensors do not count).
VESTA_API bool is_contiguous(IntSpan sizes, IntSpan strides);
/// Returns whether the elements fill a block of memory without holes or overlaps, in any order of dimensions.
VESTA_API bool is_non_overlapping_and_dense(IntSpan sizes, IntSpan strides);
/// Returns the shape both broadcast to (NumPy's rule); raises naming the dimension.
VESTA_API Dims broadcast_shapes(IntSpan a, IntSpan b, const char* op);
/// Maps a dimension in [-ndim, ndim) to [0, ndim); a 0-d tensor has one dimension here, as in PyTorch. IndexError.
VESTA_API int64_t wrap_dim(int64_t dim, int64_t ndim, const char* op);
/// Does the same as wrap_dim for a dimension whose size is needed: a 0-d tensor has none here. IndexError.
VESTA_API int64_t existing_dim(int64_t dim, int64_t ndim, const char* op);
/// Maps a list of dimensions to a bit mask; an empty list means all. Raises on repetition.
VESTA_API uint64_t dim_mask(IntSpan dims, int64_t ndim, const char* op, bool empty_is_all = true);
/// Replaces one -1 in `sizes` so that the product is `numel`; raises if there is no such number.
VESTA_API Dims infer_size(IntSpan sizes, int64_t numel, const char* op);
/// Returns the strides of `sizes` over the same memory, or nothing if a copy is needed (view's rule).
VESTA_API std::optional<Dims> view_strides(IntSpan old_sizes, IntSpan old_strides, IntSpan sizes);

}  // namespace vesta
