// The addition of index_add_ and scatter_add_.
#pragma once
#include <vesta/cuda/kernels/rounded.cuh>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {

/// Returns sum + alpha * v: integers wrap, bool is "or".
template <class T, class C>
VESTA_DEVICE C add_scaled(C sum, T v, double alpha) {
  if constexpr (std::is_same_v<T, bool>) {
    return sum || (v && alpha != 0);
  } else if constexpr (std::is_integral_v<T>) {
    return T(uint64_t(sum) + uint64_t(v) * uint64_t(int64_t(alpha)));
  } else if constexpr (is_complex_type<T>) {
    using R = typename T::value_type;
    return T(rounded::add(sum.re, rounded::mul(v.re, R(alpha))), rounded::add(sum.im, rounded::mul(v.im, R(alpha))));
  } else {
    return rounded::add(sum, rounded::mul(convert<C>(v), C(alpha)));
  }
}

}  // namespace vesta::cuda
