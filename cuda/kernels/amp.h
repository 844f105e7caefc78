// The arguments of the gradient scaling kernels.
#pragma once
#include <cstdint>

#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int kUnscaleTensors = 64;         // of one launch; its arguments stay below 4 KiB
inline constexpr int64_t kUnscaleChunk = 4096;     // elements of one block

/// One launch over up to kUnscaleTensors contiguous runs of one dtype, cut into chunks, a block each.
struct UnscaleBatch {
  int count = 0;
  char* data[kUnscaleTensors] = {};
  int64_t numel[kUnscaleTensors] = {};
  uint32_t first_block[kUnscaleTensors + 1] = {};  // of each tensor, and the number of all
  float* found_inf = nullptr;
  const float* inv_scale = nullptr;
};
static_assert(sizeof(UnscaleBatch) <= 4000, "kernel arguments are at most 4 KiB");

/// Queues g *= inv_scale over a batch, and found_inf = 1 where a g was not finite.
void unscale(const UnscaleBatch& batch, DType dtype, StreamHandle stream);
/// Queues the step of the scale and its counter.
void update_scale(float* scale, int32_t* tracker, const float* found_inf, double growth_factor, double backoff_factor,
                  int64_t growth_interval, StreamHandle stream);

}  // namespace vesta::cuda
