// Arithmetic that is rounded step by step, as on the CPU. nvcc fuses a * b + c into one rounding by default, which it
// must not do where a result promises the CPU's bits (optimizer steps, sums in the order of indices, random numbers).
#pragma once
#include <vesta/core/base/philox.h>

namespace vesta::cuda::rounded {

using philox_detail::add;
using philox_detail::mul;
/// Subtracts; -b is exact.
template <class T>
VESTA_HD VESTA_INLINE T sub(T a, T b) {
  return add(a, -b);
}
using philox_detail::quotient;
using philox_detail::root;

}  // namespace vesta::cuda::rounded
