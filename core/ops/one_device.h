// The check of composites whose parts would name themselves: all tensors lie on one device.
#pragma once
#include <initializer_list>

#include <vesta/core/tensor.h>

namespace vesta {

/// Is a tensor and the name that the caller knows it by.
struct NamedTensor {
  const char* name;
  const Tensor& tensor;
};

/// Raises Error(device) that names the op and two arguments, unless all tensors lie on one device. Undefined ones do
/// not count, nor do numbers in tensors (0-dimensional, on the CPU), which join any device.
inline void check_one_device(const char* op, std::initializer_list<NamedTensor> tensors) {
  const NamedTensor* first = nullptr;
  for (const NamedTensor& t : tensors) {
    if (!t.tensor.defined() || (t.tensor.dim() == 0 && t.tensor.device().type == DeviceType::cpu)) continue;
    if (!first) first = &t;
    VESTA_CHECK(t.tensor.device() == first->tensor.device(), device, op, ": expected all tensors on one device, got ",
                first->tensor.device(), " (", first->name, ") and ", t.tensor.device(), " (", t.name,
                "). Move one with .to().");
  }
}

}  // namespace vesta
