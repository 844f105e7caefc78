// The search for elements that may be among the best: most of a line only pass by.
#include <vesta/core/cpu/sort_kernels.h>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/sort_key.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

template <class T, class F>
VESTA_INLINE int64_t first_with(const T* x, int64_t i, int64_t n, F comes_before) {
  using C = compute_t<T>;
  constexpr int64_t N = Vec<C>::N;
  for (; i + 2 * N <= n; i += 2 * N) {
    const Mask<C> low = comes_before(load_row<C>(x + i, N)), high = comes_before(load_row<C>(x + i + N, N));
    if (any(low | high)) return i + __builtin_ctz(low.bits() | high.bits() << N);
  }
  for (; i < n; i += N) {
    const int64_t w = n - i < N ? n - i : N;
    const unsigned found = comes_before(load_row<C>(x + i, w)).bits() & ((w < N ? 1u << w : 0u) - 1u);
    if (found != 0) return i + __builtin_ctz(found);
  }
  return n;
}

template <class T>
int64_t skip(const void* line, int64_t i, int64_t n, const void* root, bool descending) {
  const T* const x = static_cast<const T*>(line);
  const T last = *static_cast<const T*>(root);
  if constexpr (is_float(dtype_of<T>)) {
    using V = Vec<compute_t<T>>;
    const V r(static_cast<compute_t<T>>(last));
    const Mask<compute_t<T>> nan = r != r;
    if (descending) {
      return first_with(x, i, n, [&](V v) __attribute__((always_inline)) { return (v > r) | ((v != v) & (r == r)); });
    }
    return first_with(x, i, n, [&](V v) __attribute__((always_inline)) { return (v < r) | (nan & (v == v)); });
  } else {
    constexpr int64_t kBlock = 32;
    const auto comes_before = [&](T v) __attribute__((always_inline)) { return descending ? v > last : v < last; };
    for (; i + kBlock <= n; i += kBlock) {
      SortKey<T> found = 0;  // as wide as the elements, so that the compiler makes vectors
      for (int64_t k = i; k < i + kBlock; ++k) found |= static_cast<SortKey<T>>(comes_before(x[k]));
      if (found != 0) break;
    }
    while (i < n && !comes_before(x[i])) ++i;
    return i;
  }
}

}  // namespace

void register_skips(SkipKernel (&skips)[kNumDTypes]) {
#define VESTA_X(name, type, text) \
  if constexpr (!is_complex(DType::name)) skips[int(DType::name)] = &skip<type>;
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
