// Checks whether rows can be loaded in packs, which the row kernels (kernels/rows.cuh) do where possible, and whether
// columns are read as they lie.
#pragma once
#include <algorithm>
#include <initializer_list>

#include <vesta/core/dtype_set.h>

namespace vesta::cuda {

inline constexpr int64_t kPackColumns = 4;  // what load_columns takes at once (kernels/rows.cuh)
/// Returns whether rows of n elements at these addresses (null ones do not count) can be loaded in such packs.
inline bool rows_fit_packs(int64_t n, DType dtype, std::initializer_list<const char*> rows) {
  const int64_t bytes = std::min<int64_t>(16, kPackColumns * itemsize(dtype));
  return n * itemsize(dtype) % bytes == 0 && std::ranges::all_of(rows, [&](const char* p) {
           return reinterpret_cast<uintptr_t>(p) % uintptr_t(bytes) == 0;
         });
}

/// Returns whether rows of n elements at these addresses (null ones do not count) consist of the packs that row kernels
/// load (row_pack of kernels/rows.cuh).
inline bool rows_are_packs(int64_t n, DType dtype, std::initializer_list<const char*> rows) {
  return n % (itemsize(dtype) == 2 ? 8 : 4) == 0 &&
         std::ranges::all_of(rows, [](const char* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
}

/// Returns whether columns of n elements, `inner` side by side, are read as they lie. Few long ones keep too few
/// threads busy. Batch and strides do not matter, as they must not change a result's bits.
inline bool columns_pay(int64_t n, int64_t inner, int64_t item) {
  constexpr int64_t kShort = 256, kMany = 1 << 13;  // bytes side by side
  return inner > 1 && (n <= kShort || inner * item >= kMany);
}

}  // namespace vesta::cuda
