// Copies, casts and fills: values move, shapes stay.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/copy.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_COPY)

/// Makes an uninitialised tensor of `t`'s shape: with `t`'s strides where those are dense, else in the order of its
/// strides (PyTorch's preserve_format).
VESTA_API Tensor empty_preserving(const Tensor& t, DType dtype, Device device);
/// Returns the strides of a tensor of `sizes` in a memory format: contiguous_format, channels_last of 4 dimensions,
/// channels_last_3d of 5. Error(type) for another name, Error(runtime) for another number of dimensions; `op` is named.
VESTA_API Dims strides_in(Text memory_format, IntSpan sizes, const char* op);
/// Tells whether the elements lie densely in the order of channels_last (4 dimensions) or channels_last_3d (5).
VESTA_API bool lies_in(const Tensor& t, Text memory_format);
/// Writes `from`, which broadcasts to `to`'s shape, into `to`, converting. Nothing is checked and no version is raised:
/// for memory that nobody else knows yet, on one device.
VESTA_API void copy_values(const Tensor& to, const Tensor& from);
/// Does copy_values between two devices. Returns when the host may touch both; with `non_blocking`, and page-locked
/// memory on the host's side, when the copy is queued.
VESTA_API void copy_across(const Tensor& to, const Tensor& from, const char* op, bool non_blocking);
/// Sets every element, like copy_values; `op` names the op where the value does not fit.
VESTA_API void fill_values(const Tensor& to, Scalar value, const char* op);
/// Copies a CPU tensor into page-locked memory, which a CUDA device reads and writes by itself; the tensor itself where
/// it lies there already. Error(device) without a CUDA device, Error(runtime) for a tensor that is not on the CPU.
VESTA_API Tensor pin_memory(const Tensor& t);
/// Tells whether a tensor lies in page-locked memory.
VESTA_API bool is_pinned(const Tensor& t);
/// Notes that work on a stream (its number) of the tensor's device uses the tensor: its memory is reused only after it.
VESTA_API void record_stream(const Tensor& t, uint32_t stream);
/// Copies an op's result onto the tensor that the op was to change in place; returns that. Error(runtime): a result of
/// another shape, or of a dtype that the tensor cannot take.
VESTA_API Tensor write_result(const Tensor& to, const Tensor& result, const char* op);
/// Raises a TypeError when an argument is missing (Python's None).
inline void check_defined(const Tensor& t, const char* op, const char* argument) {
  VESTA_CHECK(t.defined(), type, op, ": expected a tensor, got None (", argument, ").");
}

}  // namespace vesta
