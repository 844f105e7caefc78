// Memory formats: how the dimensions of a tensor follow each other in memory.
#pragma once
#include <vesta/core/tensor.h>

#include "dtype_device.h"

namespace vesta::python {

/// Returns whether a tensor's elements lie densely in the order of `format`; row by row for Format::preserve.
bool lies_in(const Tensor& t, Format format);
/// Returns the tensor, or a copy where it does not lie in `format`; itself for Format::preserve. Recorded for autograd.
/// Raises for a number of dimensions that the format does not have.
Tensor laid_out(const Tensor& t, Format format, const char* op);

}  // namespace vesta::python
