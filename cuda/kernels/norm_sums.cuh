// What normalisations and moments over rows share: two sums at once, and vectors of weights.
#pragma once
#include <vesta/cuda/kernels/rows.cuh>

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

/// Sets the columns of a pack that lie beyond a row of n to 0.
template <class C>
VESTA_DEVICE void clear_past(int64_t c, int64_t n, C* v) {
  if (c + kPack <= n) return;
  VESTA_UNROLL
  for (int j = 0; j < kPack; ++j) v[j] = c + j < n ? v[j] : C(0);
}

/// Returns the mean of a row of `count` elements, of which n exist for this team; every member of it gets the mean.
template <class Row, class Team, class T>
VESTA_DEVICE compute_of<T> row_mean(Row& held, const Team& team, const T* row, int64_t n, bool packed, int64_t count) {
  using C = compute_of<T>;
  C sum = 0;
  held.each(team, row, n, packed, C(0), [&](int64_t, const C* v) { sum = sum + ((v[0] + v[1]) + (v[2] + v[3])); });
  return team.reduce(sum, [](C p, C q) { return p + q; }) / C(count);
}

/// Returns the sums of a row's deviations from `center` and of their squares; every member of the team gets them.
template <class Row, class Team, class T>
VESTA_DEVICE Pair<compute_of<T>> row_deviations(Row& held, const Team& team, const T* row, int64_t n, bool packed,
                                                compute_of<T> center) {
  using C = compute_of<T>;
  Pair<C> s{C(0), C(0)};
  held.each(team, row, n, packed, C(0), [&](int64_t c, const C* v) {
    C d[kPack];
    VESTA_UNROLL
    for (int j = 0; j < kPack; ++j) d[j] = v[j] - center;
    clear_past(c, n, d);
    VESTA_UNROLL
    for (int j = 0; j < kPack; ++j) s.a = s.a + d[j], s.b = s.b + d[j] * d[j];
  });
  return team.reduce(s, [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); });
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
  /// Loads a pack of columns of a row of n.
  VESTA_DEVICE void load(int64_t c, int64_t n, C* to) const {
    const bool packed = reinterpret_cast<uintptr_t>(data) % 16 == 0;
    if (data && wide) {
      load_columns(reinterpret_cast<const C*>(data), c, n, packed, otherwise, to);
    } else if (data) {
      load_columns(reinterpret_cast<const T*>(data), c, n, packed, otherwise, to);
    } else {
      VESTA_UNROLL
      for (int j = 0; j < kPack; ++j) to[j] = otherwise;
    }
  }
};

}  // namespace vesta::cuda
