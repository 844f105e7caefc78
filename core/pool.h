// Free lists for the small objects that every op makes: tensors, storage headers, autograd nodes.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include <vesta/core/base/macros.h>
#include <vesta/core/base/sanitizers.h>

namespace vesta::pool {

/// The largest pooled size; larger requests go to the system.
inline constexpr size_t kMaxBytes = 1024;
inline constexpr size_t kAlignment = 64;

inline constexpr size_t kClasses = kMaxBytes / kAlignment + 1;
inline constexpr uint32_t kMaxBlocks = 512;  // of a list; what is given beyond goes back to the system

/// The calling thread's free blocks, a list per size class (multiples of 64 bytes). Every op takes and gives several
/// blocks, so the common case is inline and touches nothing else.
struct Lists {
  struct Block {
    Block* next;
  };
  Block* head[kClasses];
  uint32_t room[kClasses];  // blocks that a list still takes: 0 before the thread's first allocation and after its end
  std::atomic<int64_t> live;
  enum : uint8_t { fresh, open, closed } state;
};
extern VESTA_API constinit thread_local Lists lists __attribute__((tls_model("initial-exec")));

/// The size class of a block of `bytes`.
constexpr size_t class_of(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment; }

/// Returns a fresh block of memory; throws Error(memory). Both ends are in the library, whichever allocator a program
/// that calls give() is linked with.
VESTA_API void* take_from_system(size_t bytes);
VESTA_API void give_to_system(void* p) noexcept;
/// The same for a tensor, which live() counts.
VESTA_API void* take_counted_from_system(size_t bytes);
VESTA_API void give_counted_to_system(void* p) noexcept;

/// Adds to the calling thread's number of live tensors. Only this thread writes it: no locked instruction is needed.
inline void add_live(int64_t delta) noexcept {
  lists.live.store(lists.live.load(std::memory_order_relaxed) + delta, std::memory_order_relaxed);
}

/// Takes a block of the calling thread's list; returns null where there is none. A list has blocks only while the
/// thread is registered, so that live() sees its counter and `counted`, a live tensor more, needs no test.
template <bool counted = false>
inline void* take_from_list(size_t bytes) {
  const size_t c = class_of(bytes);
  if (VESTA_SANITIZED || c >= kClasses) return nullptr;
  Lists::Block* const b = lists.head[c];
  if (!b) [[unlikely]]
    return nullptr;
  lists.head[c] = b->next;
  ++lists.room[c];
  if constexpr (counted) add_live(+1);
  return b;
}
/// Gives a block to that list; returns false where the list takes none, as before the thread is registered and after
/// its end.
template <bool counted = false>
inline bool give_to_list(void* p, size_t bytes) noexcept {
  const size_t c = class_of(bytes);
  if (VESTA_SANITIZED || c >= kClasses || lists.room[c] == 0) [[unlikely]]
    return false;
  auto* const b = static_cast<Lists::Block*>(p);
  b->next = lists.head[c];
  lists.head[c] = b;
  --lists.room[c];
  if constexpr (counted) add_live(-1);
  return true;
}

/// Returns `bytes` aligned to 64; throws Error(memory). Return a block with give(p, the same bytes), on any thread.
inline void* take(size_t bytes) {
  void* const p = take_from_list(bytes);
  return p ? p : take_from_system(bytes);
}
inline void give(void* p, size_t bytes) noexcept {
  if (!give_to_list(p, bytes)) give_to_system(p);
}

/// take() and give() for a tensor, which live() counts.
inline void* take_counted(size_t bytes) {
  void* const p = take_from_list<true>(bytes);
  return p ? p : take_counted_from_system(bytes);
}
inline void give_counted(void* p, size_t bytes) noexcept {
  if (!give_to_list<true>(p, bytes)) give_counted_to_system(p);
}
/// Returns the number of live tensors of all threads.
VESTA_API int64_t live() noexcept;

/// A base that gives a class operator new and delete from the pool; derived classes use their own size.
struct Pooled {
  static void* operator new(size_t bytes) { return take(bytes); }
  static void operator delete(void* p, size_t bytes) noexcept { give(p, bytes); }
};

}  // namespace vesta::pool
