// Whether memory can be loaded in packs.
#pragma once
#include <cstddef>
#include <cstdint>

namespace vesta::cuda {

/// Returns whether an address is a multiple of `bytes`, as a load of so many at once needs it.
inline bool is_aligned(const void* p, size_t bytes = 16) { return reinterpret_cast<uintptr_t>(p) % bytes == 0; }

}  // namespace vesta::cuda
