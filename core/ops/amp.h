// Ops of gradient scaling (Micikevicius et al. 2018, "Mixed Precision Training") and of clipping (Pascanu et al. 2013,
// "On the difficulty of training recurrent neural networks"): the checks that all devices share. The scale, the
// counter, found_inf and the norm live on the device: nothing here waits for it.
#pragma once
#include <utility>
#include <vector>

#include <vesta/core/arguments.h>
#include <vesta/core/ops/list_factor.h>
#include <vesta/core/tensor.h>

namespace vesta {

/// Checks the operands of _amp_unscale_: floating dtypes, dense memory, one device.
VESTA_API void check_amp_unscale(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale);
/// Checks the operands of _amp_update_scale_: one element each, dtypes, one device, an interval of at least 1.
VESTA_API void check_amp_update_scale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                                      int64_t growth_interval);

/// Checks the operands of _list_norms; returns the kind of norm of order `ord`.
VESTA_API NormKind check_list_norms(TensorList tensors, double ord);
/// Returns an uninitialized result of _list_norms.
VESTA_API Tensor empty_norms(TensorList tensors, bool total);
/// Checks the operands of _list_mul_; returns the multiplier.
VESTA_API ListFactor check_list_mul(TensorList tensors, const MaybeTensor& by, double factor, bool clip);
/// Checks the operands of _list_zero_.
VESTA_API void check_list_zero(TensorList tensors);

/// The dense memory of a list's tensors: those with holes are copied, and what was written is copied back.
class DenseMemory {
 public:
  explicit DenseMemory(const char* op) : op_(op) {}
  /// Returns the memory of a tensor, which lives until written() was called.
  VESTA_API char* of(const Tensor& t);
  /// Copies back, and counts the versions of the list's tensors.
  VESTA_API void written(TensorList list) const;

 private:
  const char* op_;
  std::vector<std::pair<const Tensor*, Tensor>> copies_;
};

}  // namespace vesta
