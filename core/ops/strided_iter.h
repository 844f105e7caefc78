// The strided iterator: turns operands of any strides into a plan with as few dimensions as possible.
#pragma once
#include <vesta/core/ops/pointwise.h>

namespace vesta {

/// A builder of a PointwisePlan: operands are broadcast to `shape`, dimensions ordered by stride (the destination's
/// first) and merged where every operand runs on from one into the next.
class VESTA_API PlanBuilder {
 public:
  PlanBuilder(IntSpan shape, Device device);
  void set_out(const Tensor& t);
  void add_input(const Tensor& t);
  /// Adds a host value of dtype `d`; it must outlive the plan.
  void add_immediate(char* value, DType d);
  /// Orders and merges; the plan points into this builder.
  PointwisePlan& finish();

 private:
  void add(PointwisePlan::Operand& o, int slot, const Tensor& t);
  bool before(int a, int b) const;
  PointwisePlan plan_;
  int ndim_;
  int operands_ = 1;
  int64_t sizes_[kMaxDims];
  int64_t strides_[1 + kMaxInputs][kMaxDims];
};

/// Returns dense strides for `shape` whose order of dimensions follows the operands' (a transposed operand gives a
/// transposed result), by PyTorch's rule.
VESTA_API Dims strides_like(IntSpan shape, std::span<const Tensor* const> operands);
/// Returns whether two elements of `t` share memory.
VESTA_API bool self_overlaps(const Tensor& t);
/// Gives an empty tensor a new shape and fresh memory.
VESTA_API void resize_tensor(const Tensor& t, IntSpan sizes);

}  // namespace vesta
