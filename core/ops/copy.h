// Copies, casts and fills: values move, shapes stay.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

namespace doc {
inline constexpr char clone[] =
    "clone(memory_format='preserve_format'): a copy in memory of its own. preserve_format keeps the strides of a dense "
    "tensor, contiguous_format makes them row-major; channels_last lays [N, C, H, W] out as [N, H, W, C], "
    "channels_last_3d [N, C, D, H, W] as [N, D, H, W, C].";
inline constexpr char to_copy[] =
    "to_copy(dtype=None, device=None, non_blocking=False): a copy in another dtype or on another device. non_blocking "
    "returns before a copy from or to page-locked memory is done.";
inline constexpr char copy_[] =
    "copy_(src, non_blocking=False): overwrites the tensor with src, which is converted and must broadcast to its "
    "shape; both may share memory.";
inline constexpr char fill_[] =
    "fill_(value): sets every element; a value outside the range of an integer type raises.";
inline constexpr char zero_[] = "zero_(): sets every element to 0.";
inline constexpr char contiguous[] = "contiguous(): the tensor itself where it is row-major, else such a copy.";
}  // namespace doc

/// Makes an uninitialised tensor of `t`'s shape: with `t`'s strides where those are dense, else in the order of its
/// strides (PyTorch's preserve_format).
VESTA_API Tensor empty_preserving(const Tensor& t, DType dtype, Device device);
/// Returns the strides of a tensor of `sizes` in a memory format: contiguous_format, channels_last of 4 dimensions,
/// channels_last_3d of 5. Error(type) for another name, Error(runtime) for another number of dimensions; `op` is named.
VESTA_API Dims strides_in(Text memory_format, IntSpan sizes, const char* op);
/// Writes `from`, which broadcasts to `to`'s shape, into `to`, converting. Nothing is checked and no version is raised:
/// for memory that nobody else knows yet, on one device.
VESTA_API void copy_values(const Tensor& to, const Tensor& from);
/// Is copy_values between two devices. Returns when the host may touch both; with `non_blocking`, and page-locked
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
/// Raises a TypeError when an argument is missing (Python's None).
inline void check_defined(const Tensor& t, const char* op, const char* argument) {
  VESTA_CHECK(t.defined(), type, op, ": expected a tensor, got None (", argument, ").");
}

}  // namespace vesta
