// Elements that a mask chooses.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta::cpu {

/// Returns whether `mask` is a bool mask of the shape and device of `input`, and both are contiguous.
bool is_mask_of(const Tensor& mask, const Tensor& input);
/// Returns the elements of such an input where its mask is true, in their order.
Tensor elements_of_mask(const Tensor& input, const Tensor& mask);

/// The loops of one instruction set, indexed by log2 of the item size: they write the elements of x [n] whose byte of
/// the mask is not zero. There are `count` of them, and nothing behind those is written.
struct MaskKernels {
  void (*compress[5])(const char* x, const uint8_t* mask, int64_t n, char* out, int64_t count);
};

}  // namespace vesta::cpu
