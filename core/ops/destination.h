// The destination of out=: the kernel writes it itself if it can, else the result is copied.
#pragma once
#include <span>

#include <vesta/core/tensor.h>

namespace vesta {

/// A guard that offers the out= tensors of this thread's call to its kernels while it lives. A kernel takes one with
/// result_tensor(); the caller copies results that are elsewhere. Nothing may be recorded, and no operand of the call
/// may share memory with them, except for that of an op that `overwrites` (schema.h).
class Destination {
 public:
  VESTA_API explicit Destination(std::span<const Tensor> outs);
  VESTA_API ~Destination();
  Destination(const Destination&) = delete;

 private:
  friend VESTA_API Tensor result_tensor(IntSpan sizes, DType dtype, Device device);
  std::span<const Tensor> outs_;
  uint64_t taken_ = 0;  // a bit per tensor
  Destination* outer_;
};

/// Makes a contiguous tensor for a kernel's result, uninitialised: one of out= if it has this shape, dtype and device
/// and is contiguous, else a new one. Ask in the order of the results, when the operands have passed their checks.
VESTA_API Tensor result_tensor(IntSpan sizes, DType dtype, Device device = {});

/// Refuses an out= tensor that has another shape than its result and is not empty. Where follows_torch(), it is
/// accepted.
VESTA_API void check_out_shape(const Tensor& out, IntSpan sizes, const char* op);

/// Resizes an out= tensor that passes that check to its result's shape; warns if it was not empty, as PyTorch does.
VESTA_API void resize_out(const Tensor& out, IntSpan sizes, const char* op);

/// Raises for a call with out= that would be recorded: no gradient passes through out=.
VESTA_API void check_out_not_recorded(bool recorded, const char* op);

/// Refuses an out= tensor that cannot hold a result, by PyTorch's rules; `exact` asks for the result's dtype.
VESTA_API void check_out(const Tensor& out, const Tensor& result, bool exact, const char* op);

/// Does the same, and raises where a gradient would have to pass and where elements of out share memory.
VESTA_API void check_written(const Tensor& out, const Tensor& result, bool exact, const char* op);

/// Copies a result to an out= tensor that passes these checks.
VESTA_API void write_out(const Tensor& out, const Tensor& result, const char* op, bool exact = false);

}  // namespace vesta
