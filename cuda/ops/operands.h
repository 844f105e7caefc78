// What the ops of this folder check and ask of their operands.
#pragma once
#include <algorithm>
#include <initializer_list>

#include <vesta/core/tensor.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {

/// Raises unless all tensors lie on the first one's device. Undefined ones do not count, but are numbered.
inline void check_one_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* owner = nullptr;
  int number = 0, first = 0;
  for (const Tensor* t : tensors) {
    ++number;
    if (!t->defined()) continue;
    if (!owner) {
      owner = t, first = number;
      continue;
    }
    VESTA_CHECK(t->device() == owner->device(), device, op, ": expected all tensors on one device, got ",
                owner->device(), " (argument ", first, ") and ", t->device(), " (argument ", number,
                "). Move one with .to().");
  }
}

/// Returns the stream on which an op over `t` runs.
inline StreamHandle stream_of(const Tensor& t) { return current_stream(t.device().index).handle(); }

inline constexpr int64_t kPackColumns = 4;  // that a thread of a row kernel loads at once (kernels/rows.cuh)
/// Tells whether rows of n elements at these addresses (null ones do not count) can be loaded in such packs.
inline bool rows_fit_packs(int64_t n, DType dtype, std::initializer_list<const char*> rows) {
  const int64_t bytes = std::min<int64_t>(16, kPackColumns * itemsize(dtype));
  return n * itemsize(dtype) % bytes == 0 &&
         std::ranges::all_of(rows, [&](const char* p) { return reinterpret_cast<uintptr_t>(p) % uintptr_t(bytes) == 0; });
}

}  // namespace vesta::cuda
