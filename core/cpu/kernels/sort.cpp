// The search for elements that may be among the best: most of a line only pass by.
#include <vesta/core/cpu/sort_kernels.h>

#include <limits>

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

/// The line is seen as rows of kColumns elements. The count-th best of the columns' best is no better than the count-th
/// best of all, and hardly worse.
template <class T>
int64_t candidates(const void* line, int64_t n, int64_t count, bool descending, int64_t* places) {
  using C = compute_t<T>;
  using V = Vec<C>;
  constexpr int64_t N = V::N, kColumns = 64, kVectors = kColumns / N;
  static_assert(kMostBest <= kColumns);
  const T* const x = static_cast<const T*>(line);
  const typename V::Bits flip = descending ? typename V::Bits{} : sign_bit<C>();
  const auto value = [&](int64_t i, int64_t w)
                         __attribute__((always_inline)) { return V::from_bits(load_row<C>(x + i, w).bits() ^ flip); };
  V best[kVectors];
  for (V& b : best) b = V(-std::numeric_limits<C>::infinity());
  for (int64_t i = 0; i + kColumns <= n; i += kColumns) {
#pragma GCC unroll 16
    for (int64_t k = 0; k < kVectors; ++k) best[k] = higher_or_first(best[k], value(i + k * N, N));
  }
  C columns[kColumns], top[kMostBest];
  for (int64_t k = 0; k < kVectors; ++k) best[k].store(columns + k * N);
  for (int64_t k = 0; k < kColumns; ++k) {  // an insertion sort of the best ones
    int64_t at = k < count ? k : count;
    if (k >= count && columns[k] <= top[count - 1]) continue;
    if (k >= count) --at;
    for (; at > 0 && top[at - 1] < columns[k]; --at) top[at] = top[at - 1];
    top[at] = columns[k];
  }
  const V least(top[count - 1]);
  int64_t found = 0;
  for (int64_t i = 0; i < n; i += 4 * N) {
    if (i + 4 * N <= n) {
      V v[4];
#pragma GCC unroll 4
      for (int64_t k = 0; k < 4; ++k) v[k] = value(i + k * N, N);
      const auto seen = [&](V one) __attribute__((always_inline)) { return ~(one < least); };  // NaN too
      if (!any((seen(v[0]) | seen(v[1])) | (seen(v[2]) | seen(v[3])))) continue;
    }
    for (int64_t j = i; j < n && j < i + 4 * N; j += N) {
      const int64_t w = n - j < N ? n - j : N;
      const V v = value(j, w);
      if (any(v != v)) return 0;
      for (unsigned bits = (v >= least).bits() & ((w < N ? 1u << w : 0u) - 1u); bits != 0; bits &= bits - 1) {
        if (found == kMostCandidates) return 0;
        places[found++] = j + __builtin_ctz(bits);
      }
    }
  }
  return found;
}

}  // namespace

void register_sort_kernels(SkipKernel (&skips)[kNumDTypes], CandidatesKernel (&all_candidates)[kNumDTypes]) {
#define VESTA_X(name, type, text)                                                                         \
  if constexpr (!is_complex(DType::name)) skips[int(DType::name)] = &skip<type>;                          \
  if constexpr (is_float(DType::name)) all_candidates[int(DType::name)] = &candidates<type>;
  VESTA_DTYPES(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu::VESTA_ISA_NS
