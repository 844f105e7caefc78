// Sums over the vectors of a row, in a fixed order that depends on the length of the row alone: four chains of at most
// kChainVectors vectors, their lanes by halves, the blocks in double.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

constexpr int64_t kChainVectors = 64;  // vectors of a chain

/// Returns v with zeros in the lanes from n on.
template <class C>
VESTA_INLINE Vec<C> first_lanes(Vec<C> v, int64_t n) {
  constexpr auto number = []<int... I>(std::integer_sequence<int, I...>) {
    return typename Vec<C>::Raw{C(I)...};
  }(std::make_integer_sequence<int, Vec<C>::N>{});
  return select(Vec<C>(number) < Vec<C>(C(n)), v, Vec<C>(C(0)));
}

/// The sums of some vectors.
template <class C, int count>
using Sums = std::array<Vec<C>, count>;

/// The sum of vectors.
struct Plus {
  template <class S>
  VESTA_INLINE void operator()(S& sums, const S& v) const {
#pragma GCC unroll 4
    for (size_t k = 0; k < v.size(); ++k) sums[k] = sums[k] + v[k];
  }
};
/// The sum of the first of two vectors, and the sum of their products.
struct PlusProduct {
  template <class S>
  VESTA_INLINE void operator()(S& sums, const S& v) const {
    sums[0] = sums[0] + v[0], sums[1] = mul_add(v[0], v[1], sums[1]);
  }
};

/// Adds up, as Plus or Add says, the `count` vectors of f(i, n) over the vectors of [begin, end) in four chains;
/// returns their sums.
template <class C, int count, class Add = Plus, class F>
VESTA_INLINE Sums<C, count> add_to_chains(int64_t begin, int64_t end, Sums<C, count> (&chain)[4], F f) {
  constexpr int64_t N = Vec<C>::N;
  constexpr Add add;
  int64_t i = begin;
  for (; i + 4 * N <= end; i += 4 * N) {
#pragma GCC unroll 4
    for (int w = 0; w < 4; ++w) add(chain[w], f(i + w * N, N));
  }
#pragma GCC unroll 3
  for (int w = 0; w < 3; ++w) {  // numbers that the compiler knows, so that the chains stay in registers
    if (i + N <= end) add(chain[w], f(i, N)), i += N;
  }
  if (i < end) {  // lanes past the end must not count, whatever f returns for their zeros
    Sums<C, count> v = f(i, end - i);
    for (Vec<C>& one : v) one = first_lanes(one, end - i);
    add(chain[3], v);
  }
  Sums<C, count> all;
  for (int k = 0; k < count; ++k) all[k] = (chain[0][k] + chain[2][k]) + (chain[1][k] + chain[3][k]);
  return all;
}
/// Sets four chains to zeros.
template <class C, int count>
VESTA_INLINE void clear_chains(Sums<C, count> (&chain)[4]) {
  for (auto& c : chain) c.fill(Vec<C>(C(0)));
}
/// Adds them up over a block of at most kChainVectors vectors.
template <class C, int count, class Add = Plus, class F>
VESTA_INLINE Sums<C, count> sum_block(int64_t begin, int64_t end, F f) {
  Sums<C, count> chain[4];
  clear_chains<C, count>(chain);
  return add_to_chains<C, count, Add>(begin, end, chain, f);
}

/// Adds the lanes of a vector by halves.
template <class C>
VESTA_INLINE C sum_of_lanes(Vec<C> v) {
  constexpr int64_t N = Vec<C>::N;
  C rest[N];
  v.store(rest);
  for (int64_t half = N / 2; half; half /= 2) {
    for (int64_t j = 0; j < half; ++j) rest[j] += rest[j + half];
  }
  return rest[0];
}

/// Adds up each of the `count` vectors of f(i, n) over the vectors of a row in blocks of at most kChainVectors vectors,
/// the blocks in double.
template <class C, int count, class Add = Plus, class F>
VESTA_INLINE void sum_all(int64_t n, double* totals, F f) {
  constexpr int64_t N = Vec<C>::N;
  for (int k = 0; k < count; ++k) totals[k] = 0;
  for (int64_t i = 0; i < n; i += N * kChainVectors) {
    const Sums<C, count> sums = sum_block<C, count, Add>(i, std::min(n, i + N * kChainVectors), f);
    for (int k = 0; k < count; ++k) totals[k] += double(sum_of_lanes(sums[k]));
  }
}

/// Adds up f(i, n), one vector.
template <class C, class F>
VESTA_INLINE double sum_vectors(int64_t n, F f) {
  double total;
  sum_all<C, 1>(n, &total, [&](int64_t i, int64_t w) __attribute__((always_inline)) { return std::array{f(i, w)}; });
  return total;
}
/// Adds up the first one of the two vectors of f(i, n), and their products, in one pass.
template <class C, class F>
VESTA_INLINE void sum_products(int64_t n, double* first, double* second, F f) {
  double totals[2];
  sum_all<C, 2, PlusProduct>(n, totals, f);
  *first = totals[0], *second = totals[1];
}

}  // namespace vesta::cpu::VESTA_ISA_NS
