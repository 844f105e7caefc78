// The parts that normalisations and moments over rows share: two sums at once, and vectors of weights.
#pragma once
#include <cmath>

#include <vesta/cuda/kernels/norm.h>
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

/// Computes a * b + c, rounded once.
VESTA_DEVICE float multiply_add(float a, float b, float c) { return ::fmaf(a, b, c); }
VESTA_DEVICE double multiply_add(double a, double b, double c) { return ::fma(a, b, c); }

/// Returns a vector's number of channel c, or `otherwise` if there is no vector.
VESTA_DEVICE double read(const ChannelVector& v, int64_t c, double otherwise) {
  if (!v.data) return otherwise;
  const int64_t at = c * v.stride;
  switch (v.dtype) {
    case DType::float16: return double(convert<float>(reinterpret_cast<const Half*>(v.data)[at]));
    case DType::bfloat16: return double(convert<float>(reinterpret_cast<const BFloat16*>(v.data)[at]));
    case DType::float64: return reinterpret_cast<const double*>(v.data)[at];
    default: return double(reinterpret_cast<const float*>(v.data)[at]);
  }
}

/// Sets the columns of a pack that lie beyond a row of n to 0; `packed`: there are none.
template <int N, bool packed, class I, class C>
VESTA_DEVICE void clear_past(I c, int64_t n, C* v) {
  if constexpr (!packed) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = c + j < I(n) ? v[j] : C(0);
  }
}

/// Returns the mean of a row of `count` elements, of which n exist for this team; every member of it gets the mean. The
/// row holds 0 past its end.
template <class Row, class Team, class T>
VESTA_DEVICE compute_of<T> row_mean(Row& held, const Team& team, const T* row, int64_t n, int64_t count) {
  using C = compute_of<T>;
  C sum = 0;
  held.every(team, row, n, C(0), [&](auto, const C* v) { sum = sum + pack_sum<row_pack<T>>(v); });
  return team.reduce(sum, [](C p, C q) { return p + q; }) / C(count);
}

/// Returns the sums of a row's deviations from `center` and of their squares; every member of the team gets them. The
/// row holds 0 past its end. One that keeps changes is left with the deviations.
template <class Row, class Team, class T>
VESTA_DEVICE Pair<compute_of<T>> row_deviations(Row& held, const Team& team, const T* row, int64_t n,
                                                compute_of<T> center) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  Pair<C> s{C(0), C(0)};
  held.every(team, row, n, C(0), [&](auto c, C* v) {
    const C near = c < n ? center : C(0);  // what lies past the end stays 0
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = v[j] - near;
    clear_past<N, Row::packed>(c, n, v);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) s.a = s.a + v[j], s.b = multiply_add(v[j], v[j], s.b);
  });
  return team.reduce(s, [](const Pair<C>& p, const Pair<C>& q) { return add_pairs(p, q); });
}

/// Returns the mean of a row of n elements, or 0 if it is not `centered`, and the mean square around it, in double: for
/// rows whose squares, or sum, are beyond the range of float.
template <class Team, class T>
VESTA_DEVICE Pair<double> wide_moments(const Team& team, const T* row, int64_t n, int64_t count, bool centered) {
  auto mean_of = [&](auto term) {
    double sum = 0;
    VESTA_ROLLED
    for (int64_t c = team.rank; c < n; c += team.size) sum += term(double(convert<compute_of<T>>(row[c])));
    return team.reduce(sum, [](double p, double q) { return p + q; }) / double(count);
  };
  const double mean = centered ? mean_of([](double v) { return v; }) : 0;
  return {mean, mean_of([&](double v) { return (v - mean) * (v - mean); })};
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

/// Loads a pack of a vector whose elements are V: T, or the type of the computation. `packed`: it is aligned for packs
/// of a row of T, which consists of them.
template <class V, bool packed, class T, class I>
VESTA_DEVICE void load_vector(const ColumnVector<T>& from, I c, int64_t n, compute_of<T>* to) {
  constexpr int N = row_pack<T>;
  const V* data = reinterpret_cast<const V*>(from.data);
  Elements<V, N> pack;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) pack.v[j] = convert<V>(from.otherwise);
  if constexpr (packed) {
    if (data) pack = *reinterpret_cast<const Elements<V, N>*>(data + c);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (data && c + j < I(n)) pack.v[j] = data[c + j];
    }
  }
  widen(pack, to);
}
/// Calls f.template operator()<V>() with the type of the elements of vectors that are `wide` or not.
template <class T, class F>
VESTA_DEVICE void with_vectors(bool wide, F f) {
  if (std::is_same_v<T, compute_of<T>> || wide) f.template operator()<compute_of<T>>();
  else if constexpr (!std::is_same_v<T, compute_of<T>>) f.template operator()<T>();
}

}  // namespace vesta::cuda
