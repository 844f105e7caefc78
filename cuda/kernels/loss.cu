// Cross-entropy of logits and class numbers, without a tensor of probabilities. Loss of a row with class t, weights w
// and smoothing e (Szegedy et al. 2016), l its logsumexp:
//   (1 - e) w[t] (l - x[t]) + e / C sum_j w[j] (l - x[j])
#include <vesta/cuda/kernels/loss.h>
#include <vesta/cuda/kernels/loss_args.cuh>

namespace vesta::cuda {
namespace {

/// Sums the weights, and their products with the columns of a row less `shift`, over the team.
template <class T, class Row, class Team>
VESTA_DEVICE WeightedSums<compute_of<T>> weighted_sums(const LossArgs<T>& a, Row& held, const Team& team, const T* row,
                                                       int64_t n, compute_of<T> shift) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  WeightedSums<C> s{0, 0};
  held.each(team, row, n, C(-INFINITY), [&](int64_t c, const C* v) {
    WeightedSums<C> pack{0, 0};
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (c + j >= n) continue;
      const C w = a.weight.data ? a.weight[c + j] : C(1);
      pack = add_sums(pack, WeightedSums<C>{w, w * (v[j] - shift)});
    }
    s = add_sums(s, pack);
  });
  return team.reduce(s, [](const WeightedSums<C>& p, const WeightedSums<C>& q) { return add_sums(p, q); });
}

/// What the loss of a row takes: its maximum, the sum of exp less that, and the weighted sums less that.
template <class C>
struct RowSums {
  C top, sum;
  WeightedSums<C> weighted;
};

/// Returns the sums of a row; every member of the team gets them. A row in registers is gone over for its maximum
/// first.
template <bool smoothing, class T, class Row, class Team>
VESTA_DEVICE RowSums<compute_of<T>> row_sums(const LossArgs<T>& a, Row& held, const Team& team, const T* row,
                                             int64_t n) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const C rest = C(-INFINITY);
  RowSums<C> sums{rest, C(0), {C(0), C(0)}};
  if constexpr (!Row::keeps_changes) {
    const ExpSum<C> s = row_exp_sum(held, team, row, n);
    sums.top = finite_top(s.top), sums.sum = s.sum;
    if constexpr (smoothing) sums.weighted = weighted_sums(a, held, team, row, n, sums.top);
  } else {
    C top = rest;
    held.each(team, row, n, rest, [&](int, const C* v) { top = extremum(top, pack_extremum<N>(v)); });
    sums.top = top = finite_top(team.reduce(top, [](C p, C q) { return extremum(p, q); }));
    WeightedSums<C> s{C(0), C(0)};  // of exp and of the products
    held.each(team, row, n, rest, [&](int c, const C* v) {
      C d[N], e[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) d[j] = v[j] - top, e[j] = row_exp<T>(d[j]);
      s.weights = s.weights + pack_sum<N>(e);
      if constexpr (smoothing) {
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          if (!Row::packed && c + j >= int(n)) d[j] = C(0);
        }
        if (a.weight.data) {
          VESTA_UNROLL
          for (int j = 0; j < N; ++j) {
            const C w = Row::packed || c + j < int(n) ? a.weight[c + j] : C(0);
            sums.weighted.weights = sums.weighted.weights + w, d[j] = w * d[j];
          }
        }
        s.products = s.products + pack_sum<N>(d);
      }
    });
    if constexpr (smoothing) {
      s = team.reduce(s, [](const WeightedSums<C>& p, const WeightedSums<C>& q) { return add_sums(p, q); });
      const C weights = sums.weighted.weights;
      sums.weighted = {a.weight.data ? team.reduce(weights, [](C p, C q) { return p + q; }) : C(a.classes), s.products};
    } else {
      s.weights = team.reduce(s.weights, [](C p, C q) { return p + q; });
    }
    sums.sum = s.weights;
  }
  return sums;
}

template <class T, class Row, class Team, bool smoothing>
VESTA_KERNEL void cross_entropy_kernel(LossArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t row = exists ? int64_t(team.row) : 0, n = exists ? a.classes : 0;
  const T* x = a.x + row * a.classes;
  const int64_t number = a.target[row];  // on the way beside the row
  Row held(team, x, n, C(-INFINITY), exists);
  const T of_class = a.is_class(number) ? x[number] : T{};
  const double weight = a.is_class(number) ? a.weight_of(number) : 0;
  const RowSums<C> s = row_sums<smoothing>(a, held, team, x, n);
  if (!exists || team.rank != 0) return;
  const int64_t t = a.class_of(number, true);
  double loss = 0;
  if (t >= 0) {
    const double l = math::log(s.sum);
    loss = (1 - a.smoothing) * weight * (double(s.top) - double(convert<C>(of_class)) + l);
    if constexpr (smoothing) {
      loss += a.smoothing / double(n) * (double(s.weighted.weights) * l - double(s.weighted.products));
    }
  }
  if (a.weight.wide) reinterpret_cast<C*>(a.out)[row] = C(loss);
  else reinterpret_cast<T*>(a.out)[row] = convert<T>(C(loss));
  a.exp_sums[2 * row] = s.top;
  a.exp_sums[2 * row + 1] = s.sum;
}

/// d loss / d x[j] = g (((1 - e) w[t] + e / C sum(w)) p[j] - e / C w[j] - (1 - e) w[t] [j = t]), p = softmax(x).
template <class T, class Row, class Team, bool smoothing>
VESTA_KERNEL void cross_entropy_backward_kernel(LossArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t row = exists ? int64_t(team.row) : 0, n = exists ? a.classes : 0;
  const T* x = a.x + row * a.classes;
  T* out = reinterpret_cast<T*>(a.out) + row * a.classes;
  const int64_t number = exists ? a.target[row] : a.ignore;  // these are on the way beside the row
  const double g = exists ? a.grad_of(row) : 0;
  const C top = exists ? a.exp_sums[2 * row] : C(0), sum = exists ? a.exp_sums[2 * row + 1] : C(1);
  Row held(team, x, n, C(-INFINITY), exists);
  double total = double(a.classes);
  if constexpr (smoothing) {
    if (a.weight.data) total = double(weighted_sums(a, held, team, x, n, C(0)).weights);
  }
  const int64_t t = a.class_of(number, exists && team.rank == 0);
  const double direct = t >= 0 ? g * (1 - a.smoothing) * a.weight_of(t) : 0,
               smooth = g * a.smoothing / double(a.classes);
  const C factor = C((direct + smooth * total) / double(sum)), less = C(smooth), hit = C(direct);
  if (t < 0) {  // the row is ignored
    held.each(team, x, n, C(-INFINITY), [&](auto c, C* v) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = C(0);
      store_pack<Row::packed>(out, c, n, v);
    });
    return;
  }
  held.each(team, x, n, C(-INFINITY), [&](auto c, C* v) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      v[j] = row_exp<T>(v[j] - top) * factor;
      if constexpr (smoothing)
        v[j] = v[j] - (a.weight.data && (Row::packed || c + j < n) ? less * a.weight[c + j] : less);
    }
    if (uint64_t(t - c) < uint64_t(N)) {  // the pack of the class
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) v[j] = c + j == t ? v[j] - hit : v[j];
    }
    store_pack<Row::packed>(out, c, n, v);
  });
}

}  // namespace

void cross_entropy(const CrossEntropyLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    auto run = [&]<RowKernels kernels, bool smoothing>() {
      with_rows<T, kernels>(uint64_t(l.rows), l.classes, l.packed, l.stream,
                            [&]<class Row, class Team>(const LaunchShape& shape, unsigned width) {
                              const LossArgs<T> a(l, width);
                              if (l.grad)
                                launch_block("_cross_entropy_backward",
                                             cross_entropy_backward_kernel<T, Row, Team, smoothing>, shape, a);
                              else
                                launch_block("cross_entropy", cross_entropy_kernel<T, Row, Team, smoothing>, shape, a);
                            });
    };
    if (l.smoothing != 0) run.template operator()<RowKernels::few, true>();
    else run.template operator()<RowKernels::every, false>();
  });
}

}  // namespace vesta::cuda
