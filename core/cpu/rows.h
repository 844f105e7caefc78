// A contiguous row, vector by vector: for kernels that are compiled for each instruction set.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

/// Calls f(i, n) for each vector of a row: n is N but for the last.
template <class C, class F>
VESTA_INLINE void each_vector(int64_t n, F f) {
  constexpr int64_t N = Vec<C>::N;
  int64_t i = 0;
  for (; i + N <= n; i += N) f(i, N);
  if (i < n) f(i, n - i);
}
template <class C, class T>
VESTA_INLINE Vec<C> load_row(const T* p, int64_t n) {
  return n == Vec<C>::N ? load_convert<C, T>(p) : load_convert_partial<C, T>(p, n);
}
template <class C, class T>
VESTA_INLINE void store_row(Vec<C> v, T* p, int64_t n) {
  if (n == Vec<C>::N) store_convert(v, p);
  else store_convert_partial(v, p, n);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
