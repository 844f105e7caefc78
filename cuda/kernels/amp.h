// The arguments of the kernels over lists of gradients: scaling, norms, clipping, zeros.
#pragma once
#include <cstdint>

#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/list_factor.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

inline constexpr int kBatchTensors = 192;      // of one launch; its arguments stay below 4 KiB
inline constexpr int64_t kScaleChunk = 4096;   // elements of one block
inline constexpr int64_t kNormChunk = 8192;    // elements whose sum is one number
inline constexpr int64_t kZeroChunk = 16384;   // bytes of one block

/// One launch over up to kBatchTensors contiguous runs of one dtype, cut into chunks, a block each.
struct TensorBatch {
  int count = 0;
  char* data[kBatchTensors] = {};
  int64_t numel[kBatchTensors] = {};
  uint32_t first_block[kBatchTensors + 1] = {};  // of each tensor, and the number of all
};
/// One launch that makes norms of the sums of chunks.
struct NormBatch {
  int count = 0;
  uint32_t first[kBatchTensors] = {}, last[kBatchTensors] = {};  // sums of each norm
  uint32_t place[kBatchTensors] = {};  // of the result
  const double* sums = nullptr;
  float* result = nullptr;  // or in float64:
  double* wide = nullptr;
};
static_assert(sizeof(TensorBatch) + sizeof(ListFactor) + 64 <= 4096, "kernel arguments are at most 4 KiB");
static_assert(sizeof(NormBatch) + 64 <= 4096, "kernel arguments are at most 4 KiB");

/// Queues x *= f over a batch in chunks of kScaleChunk, and *found_inf = 1 where an x was not finite, if it is given.
void scale(const char* name, const TensorBatch& batch, DType dtype, const ListFactor& f, float* found_inf,
           StreamHandle stream);
/// Queues the sums, or the greatest, of chunks of kNormChunk: one of each block, at sums[block].
void norm_parts(const TensorBatch& batch, DType dtype, NormKind kind, double* sums, StreamHandle stream);
/// Queues norms of these sums.
void norms(const NormBatch& batch, NormKind kind, StreamHandle stream);
/// Queues zeros over a batch of bytes in chunks of kZeroChunk.
void zero(const TensorBatch& batch, StreamHandle stream);
/// Queues the step of the scale and its counter.
void update_scale(float* scale, int32_t* tracker, const float* found_inf, double growth_factor, double backoff_factor,
                  int64_t growth_interval, StreamHandle stream);

}  // namespace vesta::cuda
