// Memory of a file, reserved before anybody touches it: a page that is missing later would be a SIGBUS.
#pragma once
#include <cstdint>
#include <optional>

#include <vesta/core/base/macros.h>

namespace vesta::shared {

/// Returns how many bytes this process may still take before the kernel would kill somebody for memory: what the
/// machine has and what the limits of its control groups (v1 or v2) leave; nothing where neither can be read.
VESTA_API std::optional<uint64_t> memory_headroom();

/// Gives bytes [offset, offset + bytes) of a memory file pages of their own, in full or not at all. Error(memory) with
/// what was wanted and what there is; the file then holds no more memory than before.
VESTA_API void reserve(int fd, uint64_t offset, uint64_t bytes);

/// Gives the whole pages inside of [offset, offset + bytes) back to the system; they read as zeros from then on.
VESTA_API void give_back(int fd, uint64_t offset, uint64_t bytes) noexcept;

}  // namespace vesta::shared
