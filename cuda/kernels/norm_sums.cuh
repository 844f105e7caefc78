// What the kernels of layer and group normalisation share: two sums at once, and vectors of weights.
#pragma once
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {

/// Two sums that are made together.
template <class C>
struct Pair {
  C a, b;
};
template <class C>
VESTA_DEVICE Pair<C> add_pairs(const Pair<C>& p, const Pair<C>& q) {
  return {p.a + q.a, p.b + q.b};
}

/// A vector of the columns, of T or of the type of the computation; null: `otherwise`.
template <class T>
struct ColumnVector {
  using C = compute_of<T>;
  const char* data;
  bool wide;
  C otherwise;
  VESTA_DEVICE C operator[](int64_t c) const {
    if (!data) return otherwise;
    return wide ? reinterpret_cast<const C*>(data)[c] : convert<C>(reinterpret_cast<const T*>(data)[c]);
  }
};

}  // namespace vesta::cuda
