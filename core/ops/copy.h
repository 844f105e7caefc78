// Copies, casts and fills: values move, shapes stay.
#pragma once
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/copy.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_COPY)

/// Copies a CPU tensor into page-locked memory, which a CUDA device reads and writes by itself; the tensor itself where
/// it lies there already. Error(device) without a CUDA device, Error(runtime) for a tensor that is not on the CPU.
VESTA_API Tensor pin_memory(const Tensor& t);
/// Returns whether a tensor lies in page-locked memory.
VESTA_API bool is_pinned(const Tensor& t);
/// Notes that work on a stream (its number) of the tensor's device uses the tensor: its memory is reused only after it.
VESTA_API void record_stream(const Tensor& t, uint32_t stream);
}  // namespace vesta
