// Constants: tables that follow from sizes (what each element of a resampled image is made of), kept on the device, so
// that a step that has run before copies nothing from the host.
//
// Note [Constants by content]
// A table is made on the host in each call, which takes microseconds, and found by its bytes: nobody has to name all
// that it depends on. Work reads it in the order of the stream that it was copied on, so that each stream has its own,
// and what is dropped may be reused at once. A table that a captured graph reads stays for good, because nothing tells
// when the graph is gone. Rejected: computing tables on the device, whose formulas would have to give the host's bits.
#pragma once
#include <cstdint>

#include <vesta/core/storage.h>

namespace vesta::cuda {

/// Returns memory of a device that holds these bytes in the order of its current stream. Nobody may write to it. It is
/// kept for later calls, up to a limit for each device, the least recently used going first.
StoragePtr constant_memory(const void* bytes, size_t nbytes, int device);
/// Drops what is kept on a device, but for what graphs read.
void forget_constants(int device);

}  // namespace vesta::cuda
