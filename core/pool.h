// Free lists for the small objects that every op makes: tensors, storage headers, autograd nodes.
#pragma once
#include <cstddef>
#include <cstdint>

#include <vesta/core/base/macros.h>

namespace vesta::pool {

/// The largest pooled size; larger requests go to the system.
inline constexpr size_t kMaxBytes = 1024;
inline constexpr size_t kAlignment = 64;

/// Returns `bytes` aligned to 64; throws Error(memory). Return a block with give(p, the same bytes), on any thread.
VESTA_API void* take(size_t bytes);
/// Returns a block to the calling thread's list.
VESTA_API void give(void* p, size_t bytes) noexcept;

/// Counts live tensors: call it with +1 when one is made, with -1 when it dies; live() sums over all threads.
VESTA_API void count_live(int delta) noexcept;
VESTA_API int64_t live() noexcept;

/// A base that gives a class operator new and delete from the pool; derived classes use their own size.
struct Pooled {
  static void* operator new(size_t bytes) { return take(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { give(p, bytes); }
};

}  // namespace vesta::pool
