// Checks of collectives' tensors, and NCCL's names of types and operators.
#pragma once
#include <vesta/core/tensor.h>
#include <vesta/cuda/nccl/nccl_abi.h>
#include <vesta/multiprocessing/process_group.h>

namespace vesta::cuda::nccl {

/// Checks a tensor's device: the DeviceCheck of these groups.
void check_device(Collective what, const Tensor& t);
/// Returns the number of the one CUDA device that all tensors are on.
int device_of(Collective what, const std::vector<Tensor>& a, const std::vector<Tensor>& b = {});

/// The way NCCL reduces a dtype: as `type`, with `per_element` values each (a complex number is two), and an operator.
struct Reducer {
  DataType type;
  int per_element = 1;
  RedOp op = op_sum;
  bool premultiplies = false;
  double factor = 1;
};
/// Returns the Reducer; Error(type) if NCCL cannot do it.
Reducer reducer(Collective what, ReduceOp op, DType dtype);

/// An operator in the form of NCCL's calls, for one call: a factor needs its own operator.
class Operator {
 public:
  Operator(const Reducer& r, Comm comm);
  ~Operator();
  Operator(const Operator&) = delete;
  operator RedOp() const { return op_; }

 private:
  RedOp op_;
  Comm made_on_ = nullptr;
};

/// A tensor of the user and the memory that NCCL works on: its own if that is contiguous.
struct Operand {
  Tensor user, memory;
  bool reads, writes;
  /// Copies the tensor into that memory, on the current stream.
  void prepare();
  /// Copies the memory back to the tensor.
  void finish() const;
  void* data() const { return memory.data_ptr(); }
  size_t bytes() const { return size_t(user.numel() * user.element_size()); }
  size_t numel() const { return size_t(user.numel()); }
};
Operand input_of(const Tensor& t);
Operand output_of(const Tensor& t);
Operand inout_of(const Tensor& t);

}  // namespace vesta::cuda::nccl
