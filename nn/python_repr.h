// Values in a layer's repr: printed as Python does, because both languages print the same layers.
#pragma once
#include <string>

#include <vesta/core/base/macros.h>

namespace vesta::nn {

inline const char* python_repr(bool b) { return b ? "True" : "False"; }
/// Prints a number as Python's repr of a float does: the shortest digits that read back equal ("0.1", "1.0", "1e-05").
VESTA_API std::string python_repr(double v);

}  // namespace vesta::nn
