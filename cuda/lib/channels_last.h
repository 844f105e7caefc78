// Tensors laid out with channels last, as cuDNN's convolutions read them. A step needs some twice: forward lays out
// input and weight, and so do the gradients of each other; the gradient that comes is read by both. So a copy is kept
// until its second use.
//
// Note [Kept layouts]
// A copy belongs to the memory it was made of and goes with it. Forward makes copies and backward takes them, as often
// as they were kept, and only if the memory's version, the geometry and the stream are the same: the pass over memory
// that a step would repeat is saved, and a write that no version tells of (another library's, through DLPack) is seen
// by the next forward. No more than an eighth of the device's memory is kept, and none when an allocation fails. A
// stream that is captured keeps and takes none: a graph's replay must make its own. Rejected: keeping a weight's copy
// from step to step (it changes in each), and results that stay in this layout (whoever asks for strides or a view
// would have to be told).
#pragma once
#include <cstdint>

#include <vesta/core/tensor.h>

namespace vesta::cuda {

/// Says how a copy is come by: `takes` one that is kept, if there is one; `keeps` a new one for a later reader.
struct LayoutUse {
  bool takes = false, keeps = false;
};
/// Lays out t [n, c, h, w] as a contiguous [n, h, w, c] whose address is a multiple of 16.
VESTA_API Tensor channels_last(const Tensor& t, LayoutUse use);
/// Forgets the copies of the memory that an allocator's block held; called when the block is freed.
void forget_layouts(const void* block);

/// Counts copies that were made, that were taken instead, and bytes that are kept now.
struct LayoutCounters {
  uint64_t made = 0, taken = 0;
  int64_t kept_bytes = 0;
};
VESTA_API LayoutCounters layout_counters();

}  // namespace vesta::cuda
