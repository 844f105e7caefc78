// Tracking of CPU memory for profiles: the blocks that tensors hold, and since when.
//
// Note [How memory is watched]
// While no profile runs, allocation and free cost no extra instruction. A large block comes from the CPU's Backend,
// which another one replaces while a profile watches. A small one lies beside its Storage: it is seen when an op reads
// or returns it. A watched block has a deleter of ours around its own, which notes the free, whenever that happens; it
// stays until then. Memory that is lent to a tensor (NumPy's, a file's) is not watched.
#pragma once
#include <cstdint>

#include <vesta/core/storage.h>

namespace vesta::profiler {

/// The number of a watched block (0: the block is not watched), and whether this is its first sighting.
struct Block {
  uint32_t number = 0;
  bool is_new = false;
};

/// Starts or stops watching allocations, for the sessions of one generation of the recorder.
void watch_memory(bool on, uint64_t generation);
/// Returns whether memory is watched.
bool watches_memory() noexcept;
/// Returns the block of a storage, which is watched from now on.
Block block_of(const Storage& storage);
/// Notes a block that was allocated (bytes > 0) or freed in the calling thread's log; defined in profiler.cpp.
void note_memory(uint64_t generation, uint32_t block, int64_t bytes) noexcept;

}  // namespace vesta::profiler
