// Conversion of runs of elements between dtypes.
#pragma once
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// A function that converts n elements; strides are in bytes, of any sign. Addresses need only the alignment of their
/// type.
using Convert = void (*)(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n);

/// Returns the conversion between two dtypes for the instruction set in use.
Convert convert(DType from, DType to);

}  // namespace vesta::cpu
