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

/// Does what store_row() does, bypassing the caches if the row is far and of C.
template <class C, class T>
VESTA_INLINE void store_result(Vec<C> v, T* p, int64_t n, bool non_temporal) {
  if constexpr (std::is_same_v<T, C>) {
    if (non_temporal) return v.stream(p);
  }
  store_row(v, p, n);
}

/// Moves a line of the cache. Not __builtin_memcpy(), of which GCC makes moves of 16 bytes: one store a cycle, half of
/// what a core writes to the caches, and less where lines are crossed (benchmarks/compare_torch.py, roll and slices).
VESTA_INLINE void move_line(char* to, const char* from) {
  typedef long long Part __attribute__((vector_size(kVectorBytes), aligned(1), may_alias));
  constexpr int kParts = 64 / kVectorBytes;
  Part part[kParts];
#pragma GCC unroll 4
  for (int k = 0; k < kParts; ++k) part[k] = *reinterpret_cast<const Part*>(from + k * kVectorBytes);
#pragma GCC unroll 4
  for (int k = 0; k < kParts; ++k) *reinterpret_cast<Part*>(to + k * kVectorBytes) = part[k];
}

/// Copies a row of any length in moves of fixed sizes; the last one may overlap the one before.
VESTA_INLINE void copy_row(char* to, const char* from, int64_t n) {
  auto moves = [&]<int64_t size>(std::integral_constant<int64_t, size>) __attribute__((always_inline)) {
    const auto move = [&](int64_t i) __attribute__((always_inline)) {
      if constexpr (size == 64) move_line(to + i, from + i);
      else __builtin_memcpy(to + i, from + i, size);
    };
    int64_t i = 0;
    for (; i + size <= n; i += size) move(i);
    if (i < n) move(n - size);
  };
  if (n > 4096) __builtin_memcpy(to, from, size_t(n));
  else if (n >= 64) moves(std::integral_constant<int64_t, 64>{});
  else if (n >= 16) moves(std::integral_constant<int64_t, 16>{});
  else if (n >= 4) moves(std::integral_constant<int64_t, 4>{});
  else moves(std::integral_constant<int64_t, 1>{});
}

}  // namespace vesta::cpu::VESTA_ISA_NS
