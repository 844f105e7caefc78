// The operands of an op: their device, their stream, and the check that they lie on one device. Dispatch makes that
// check for all but 0-dimensional tensors on the CPU: ops that may get such ones make it here.
#pragma once
#include <initializer_list>

#include <vesta/core/tensor.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {

/// Raises a device error that names two arguments unless all tensors (undefined ones do not count) lie on one device.
inline void check_one_device(const char* op, std::initializer_list<const Tensor*> tensors) {
  const Tensor* owner = nullptr;
  int at = 0, first = 0;
  for (const Tensor* t : tensors) {
    ++at;
    if (!t->defined()) continue;
    if (!owner) owner = t, first = at;
    VESTA_CHECK(t->device() == owner->device(), device, op, ": expected all tensors on one device, got ",
                owner->device(), " (argument ", first, ") and ", t->device(), " (argument ", at,
                "). Move one with .to().");
  }
}

/// A guard that makes an operand's device current; it has the stream that the op runs on.
class OperandDevice {
 public:
  explicit OperandDevice(const Tensor& t) : guard_(t.device().index()), device_(t.device()) {}
  StreamHandle stream() const { return current_stream(device_.index()).handle(); }
  int index() const { return device_.index(); }

 private:
  DeviceGuard guard_;
  Device device_;
};

/// Returns the current stream of a tensor's device, in the form that kernels take.
inline StreamHandle stream_of(const Tensor& t) { return current_stream(t.device().index()).handle(); }

/// Adds `t`, which broadcasts, to `to` in place; returns that.
Tensor add_to(const Tensor& to, const Tensor& t);

}  // namespace vesta::cuda
