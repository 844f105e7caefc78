// The caching allocator of host memory: freed blocks are kept for the next tensor of about their size.
#pragma once
#include <cstddef>
#include <cstdint>
#include <utility>

#include <vesta/core/backend.h>

namespace vesta::cpu {

/// Allocates host memory, 64-byte aligned (2 MiB, in huge pages, from 1 MiB on), from the cache where possible.
VESTA_API Memory allocate(size_t nbytes);
/// A block of host memory for `count` values of T, undefined at first, that lives as long as this.
template <class T>
class HostArray {
 public:
  HostArray() = default;
  explicit HostArray(size_t count) : memory_(allocate(count * sizeof(T))) {}
  HostArray(HostArray&& other) noexcept : memory_(std::exchange(other.memory_, {})) {}
  HostArray& operator=(HostArray&& other) noexcept {
    std::swap(memory_, other.memory_);
    return *this;
  }
  ~HostArray() {
    if (memory_.deleter) memory_.deleter(memory_.context);
  }
  T* data() const { return static_cast<T*>(memory_.data); }

 private:
  Memory memory_;
};

/// The bytes held by live blocks, and by cached ones.
struct HostMemory {
  size_t live = 0, cached = 0;
};
VESTA_API HostMemory host_memory();
/// Returns every cached block to the system.
VESTA_API void release_cached_host_memory();

}  // namespace vesta::cpu
