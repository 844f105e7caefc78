// The memory of tensors, for kernels.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta::cpu {

/// Returns the address of a tensor's first element. Error(type): the tensor is of another dtype. For kernels, whose ops
/// count their writes: after data_ptr() no packed form of the tensor would be kept (Storage::hand_out).
template <class T>
T* elements(const Tensor& t) {
  VESTA_CHECK(dtype_of<T> == t.dtype(), type, "expected a tensor of ", dtype_of<T>, ", got ", t.dtype(), ".");
  return reinterpret_cast<T*>(t.impl()->data());
}

}  // namespace vesta::cpu
