// Copying for kernels and composites: values move between tensors, below the ops (copy.h) and the tape.
#pragma once
#include <vesta/core/scalar.h>
#include <vesta/core/tensor.h>

namespace vesta {

/// Makes an uninitialised tensor of `t`'s shape: with `t`'s strides where those are dense, else in the order of its
/// strides (PyTorch's preserve_format).
VESTA_API Tensor empty_preserving(const Tensor& t, DType dtype, Device device);
/// Returns the strides of a tensor of `sizes` in a memory format: contiguous_format, channels_last of 4 dimensions,
/// channels_last_3d of 5. Error(type) for another name, Error(runtime) for another number of dimensions; `op` is named.
VESTA_API Dims strides_in(Text memory_format, IntSpan sizes, const char* op);
/// Returns whether the elements lie densely in the order of channels_last (4 dimensions) or channels_last_3d (5).
VESTA_API bool lies_in(const Tensor& t, Text memory_format);
/// Writes `from`, which broadcasts to `to`'s shape, into `to`, converting. Nothing is checked and no version is raised:
/// for memory that is not shared yet, on one device.
VESTA_API void copy_values(const Tensor& to, const Tensor& from);
/// Returns the tensor itself where it is contiguous, else a contiguous copy: contiguous() for kernels, which record
/// nothing.
VESTA_API Tensor contiguous_values(const Tensor& t);
/// Does copy_values between two devices. Returns when the host may touch both; with `non_blocking`, and page-locked
/// memory on the host's side, when the copy is queued.
VESTA_API void copy_across(const Tensor& to, const Tensor& from, const char* op, bool non_blocking);
/// Sets every element, like copy_values; `op` names the op where the value does not fit.
VESTA_API void fill_values(const Tensor& to, Scalar value, const char* op);
/// Copies an op's result onto the tensor that the op was to change in place; returns that. Error(runtime): a result of
/// another shape, or of a dtype that the tensor cannot take.
VESTA_API Tensor write_result(const Tensor& to, const Tensor& result, const char* op);
/// Returns whether the result of an in-place op may be computed in the tensor's own memory: the call is not recorded.
/// Raises then where the tensor must not be written.
VESTA_API bool may_overwrite(const Tensor& to, bool recorded, const char* op);
/// Delivers an op's result as its call requested: returns it, or writes it to the operand or to out=.
VESTA_API Tensor write_result(Out out, const Tensor& result, const char* op);
/// Raises a TypeError when an argument is missing (Python's None).
inline void check_defined(const Tensor& t, const char* op, const char* argument) {
  VESTA_CHECK(t.defined(), type, op, ": expected a tensor, got None (", argument, ").");
}

}  // namespace vesta
