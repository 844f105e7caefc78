// What collectives ask of their tensors, and how NCCL names types and operators.
#pragma once
#include <vesta/core/tensor.h>
#include <vesta/cuda/nccl/nccl_abi.h>
#include <vesta/multiprocessing/process_group.h>

namespace vesta::cuda::nccl {

/// Is the DeviceCheck of these groups.
void check_device(Collective what, const Tensor& t);
/// Returns the number of the one CUDA device that all tensors are on.
int device_of(Collective what, const std::vector<Tensor>& a, const std::vector<Tensor>& b = {});

/// Is how NCCL reduces a dtype: as `type`, `per_element` values each (a complex number is two), with an operator.
struct Reducer {
  DataType type;
  int per_element = 1;
  RedOp op = op_sum;
  bool premultiplies = false;
  double factor = 1;
};
/// Returns it; Error(type) where NCCL cannot.
Reducer reducer(Collective what, ReduceOp op, DType dtype);

/// Is an operator as NCCL's calls take it, for one call: a factor makes one of its own.
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

/// Is a tensor of the user and the memory that NCCL works on: its own where that is contiguous.
struct Operand {
  Tensor user, memory;
  bool reads, writes;
  /// Copies in, on the current stream.
  void prepare();
  /// Copies back.
  void finish() const;
  void* data() const { return memory.data_ptr(); }
  size_t bytes() const { return size_t(user.numel() * user.element_size()); }
  size_t numel() const { return size_t(user.numel()); }
};
Operand input_of(const Tensor& t);
Operand output_of(const Tensor& t);
Operand inout_of(const Tensor& t);

}  // namespace vesta::cuda::nccl
