// Moving a storage to memory of somebody else (shared memory), with every tensor over it.
#pragma once
#include <vesta/core/backend.h>
#include <vesta/core/storage.h>

namespace vesta {

/// Copies the bytes of a storage of the CPU to `memory`, frees the old block and goes on with the new one, as if it had
/// been wrapped (Storage::wrap): it is not resizable any more. Aliases see the new block. `memory` has at least as many
/// bytes and is the storage's from now on.
VESTA_API void move_storage(Storage& storage, const Memory& memory);

}  // namespace vesta
