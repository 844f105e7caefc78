// Moving a storage to memory of somebody else (shared memory), with every tensor over it.
#pragma once
#include <vesta/core/backend.h>
#include <vesta/core/storage.h>

namespace vesta {

/// Copies the bytes of a storage of the CPU to `memory`, which has at least as many and is the storage's from now on,
/// as if it had been wrapped (Storage::wrap): not resizable any more. Aliases see the new block. Returns the old one,
/// for the caller to free; a deleter that is null means that it belongs to the storage's header.
[[nodiscard]] VESTA_API Memory move_storage(Storage& storage, const Memory& memory);

}  // namespace vesta
