// Memory of a file, reserved before it is used: a page that is missing later would be a SIGBUS.
#pragma once
#include <cstdint>
#include <optional>

#include <vesta/core/base/macros.h>

namespace vesta::shared {

/// Returns how many bytes this process may still take before the kernel would kill a process for memory: what the
/// machine has and what the limits of its control groups (v1 or v2) leave. Returns nothing if neither can be read.
VESTA_API std::optional<uint64_t> memory_headroom();

/// Allocates pages for bytes [offset, offset + bytes) of a memory file, in full or not at all. Error(memory) with the
/// requested and the available amount; the file then holds no more memory than before.
VESTA_API void reserve(int fd, uint64_t offset, uint64_t bytes);

/// Returns the whole pages inside [offset, offset + bytes) to the system; they read as zeros from then on.
VESTA_API void give_back(int fd, uint64_t offset, uint64_t bytes) noexcept;

}  // namespace vesta::shared
