// A check whether rows can be loaded in packs, which the row kernels (kernels/rows.cuh) do where possible.
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

}  // namespace vesta::cuda
