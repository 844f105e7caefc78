// What the host's half of a structured op asks of its operands.
#pragma once
#include <vesta/core/tensor.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {

/// Checks that all tensors that are there lie on one device. Error(device): names the first two arguments that do not.
template <class... T>
void check_one_device(const char* op, const T&... tensors) {
  Device device;
  int first = 0, number = 0;
  auto see = [&](const Tensor& t) {
    ++number;
    if (!t.defined()) return;
    if (!first) device = t.device(), first = number;
    VESTA_CHECK(t.device() == device, device, op, ": expected all tensors on one device, got ", device, " (argument ",
                first, ") and ", t.device(), " (argument ", number, "). Move one with .to().");
  };
  (see(tensors), ...);
}

/// Makes an operand's device current, and knows the stream that the op runs on.
class OperandDevice {
 public:
  explicit OperandDevice(const Tensor& t) : guard_(t.device().index), device_(t.device()) {}
  StreamHandle stream() const { return current_stream(device_.index).handle(); }
  int index() const { return device_.index; }

 private:
  DeviceGuard guard_;
  Device device_;
};

}  // namespace vesta::cuda
