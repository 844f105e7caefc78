// Padding with a value: what constant_pad_nd's kernels share.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// A tensor that is to be padded: the part of it that is kept (all of it, unless a number of `pad` is negative), the
/// result, whose elements are not written yet, and by dimension the index in it at which the part begins.
struct Padding {
  Tensor part, result;
  Dims before;
  /// Returns the view of the result where the part belongs.
  VESTA_API Tensor middle() const;
};

/// Lays out the result of padding with {before, after} of the last dimension, of the one before, ... Error(runtime): an
/// odd length, more pairs than dimensions, a negative size.
VESTA_API Padding lay_out_padding(const Tensor& input, IntList pad);

}  // namespace vesta
