// Checks that many ops share.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Raises unless `t` has a floating-point dtype.
inline void check_floating(const Tensor& t, const char* op, const char* argument = "input") {
  VESTA_CHECK(is_float(t.dtype()), type, op, ": expected a floating-point dtype, got ", t.dtype(), " (", argument,
              "). Convert with .to().");
}
/// Raises unless `t` has a floating-point or complex dtype.
inline void check_floating_or_complex(const Tensor& t, const char* op, const char* argument = "input") {
  VESTA_CHECK(is_differentiable(t.dtype()), type, op, ": expected a floating-point or complex dtype, got ", t.dtype(),
              " (", argument, "). Convert with .to().");
}
/// Raises unless `t` has a real dtype.
inline void check_real(const Tensor& t, const char* op, const char* argument = "input") {
  VESTA_CHECK(!is_complex(t.dtype()), type, op, ": expected a real dtype, got ", t.dtype(), " (", argument, ").");
}

}  // namespace vesta
