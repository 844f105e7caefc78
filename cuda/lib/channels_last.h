// Tensors laid out with channels last, as cuDNN's convolutions read them. A training step needs some of them twice:
// forward lays out input and weight, and the gradient of each reads the other; both read the incoming gradient. So a
// copy is kept until its second use.
//
// Note [Kept layouts]
// A copy belongs to the memory it was made from and is dropped with it. Forward makes copies and backward takes them,
// as often as they were kept, and only if the memory's version, the geometry and the stream are the same: this saves
// the pass over memory that a step would repeat, and the next forward sees a write that no version counts (another
// library's, through DLPack). No more than an eighth of the device's memory is kept, and none when an allocation
// fails. A stream that is being captured keeps and takes none: a graph's replay must make its own. Rejected: keeping a
// weight's copy from step to step (it changes in each). Operands that have channels last are read in place and counted
// nowhere; results keep that layout where the op follows it (Note [Layouts] in core/ops/memory_format.h).
#pragma once
#include <cstdint>

#include <vesta/core/tensor.h>

namespace vesta::cuda {

/// The use of kept copies: `takes` a kept one, if there is one; `keeps` a new one for a later reader.
struct LayoutUse {
  bool takes = false, keeps = false;
};
/// Lays out t [n, c, h, w] or [n, c, d, h, w] as a contiguous [n, (d,) h, w, c] whose address is a multiple of 16.
VESTA_API Tensor channels_last(const Tensor& t, LayoutUse use);
/// Drops the copies of the memory that an allocator's block held; called when the block is freed.
void forget_layouts(const void* block);

/// The number of copies made, of copies taken instead, and of bytes kept now.
struct LayoutCounters {
  uint64_t made = 0, taken = 0;
  int64_t kept_bytes = 0;
};
VESTA_API LayoutCounters layout_counters();

}  // namespace vesta::cuda
