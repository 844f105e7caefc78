// Cross-entropy of logits and class numbers, without a tensor of probabilities. Loss of a row with class t, weights w
// and smoothing e (Szegedy et al. 2016), l its logsumexp:
//   (1 - e) w[t] (l - x[t]) + e / C sum_j w[j] (l - x[j])
#include <vesta/cuda/kernels/loss.h>
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {
namespace {

/// Numbers of T, or of the type that T computes in.
template <class T>
struct MaybeWide {
  using C = compute_of<T>;
  const char* data;
  bool wide;
  VESTA_DEVICE C operator[](int64_t i) const {
    return wide ? reinterpret_cast<const C*>(data)[i] : convert<C>(reinterpret_cast<const T*>(data)[i]);
  }
};

template <class T>
struct LossArgs {
  const T* x;
  const int64_t* target;
  MaybeWide<T> weight, grad;
  char* out;  // the gradient, of T, or the losses, of the dtype of weight and grad
  compute_of<T>* exp_sums;  // of each row its top and the sum of exp(x - top)
  int64_t rows, classes, ignore;
  double smoothing;
  unsigned width;
  Fault* fault;
  const char* name;  // the host's text: a literal in device code would lie on the device

  /// Returns a row's class, or -1 if the row is ignored. One member of the team reports a number out of range.
  VESTA_DEVICE int64_t class_of(int64_t row, bool reports) const {
    const int64_t t = target[row];
    if (t == ignore) return -1;
    if (t >= 0 && t < classes) return t;
    if (reports) report(fault, FaultKind::class_number, name, t, classes);
    return -1;
  }
  VESTA_DEVICE double weight_of(int64_t c) const { return weight.data ? double(weight[c]) : 1.0; }
};

/// The sums sum(w) and sum(w x) over classes.
template <class C>
struct WeightedSums {
  C weights, products;
};

template <class C>
VESTA_DEVICE WeightedSums<C> add_sums(const WeightedSums<C>& a, const WeightedSums<C>& b) {
  return {a.weights + b.weights, a.products + b.products};
}

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

template <class T, class Row, class Team, bool smoothing>
VESTA_KERNEL void cross_entropy_kernel(LossArgs<T> a) {
  using C = compute_of<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t row = exists ? int64_t(team.row) : 0, n = exists ? a.classes : 0;
  const T* x = a.x + row * a.classes;
  Row held(team, x, n, C(-INFINITY), exists);
  const ExpSum<C> s = row_exp_sum(held, team, x, n);
  const C top = finite_top(s.top);
  WeightedSums<C> sums{0, 0};
  if constexpr (smoothing) sums = weighted_sums(a, held, team, x, n, top);
  if (!exists || team.rank != 0) return;
  const double l = math::log(double(s.sum));
  const int64_t t = a.class_of(row, true);
  double loss = 0;
  if (t >= 0) {
    loss = (1 - a.smoothing) * a.weight_of(t) * (double(top) - double(convert<C>(x[t])) + l);
    if constexpr (smoothing) {
      loss += a.smoothing / double(n) * (double(sums.weights) * l - double(sums.products));
    }
  }
  if (a.weight.wide) reinterpret_cast<C*>(a.out)[row] = C(loss);
  else reinterpret_cast<T*>(a.out)[row] = convert<T>(C(loss));
  a.exp_sums[2 * row] = top;
  a.exp_sums[2 * row + 1] = s.sum;
}

/// d loss / d x[j] = g (((1 - e) w[t] + e / C sum(w)) p[j] - e / C w[j] - (1 - e) w[t] [j = t]), p = softmax(x).
template <class T, class Row, class Team, bool smoothing>
VESTA_KERNEL void cross_entropy_gradient_kernel(LossArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = row_pack<T>;
  const Team team(a.width);
  const bool exists = int64_t(team.row) < a.rows;
  const int64_t row = exists ? int64_t(team.row) : 0, n = exists ? a.classes : 0;
  const T* x = a.x + row * a.classes;
  T* out = reinterpret_cast<T*>(a.out) + row * a.classes;
  Row held(team, x, n, C(-INFINITY), exists);
  double total = double(a.classes);
  if constexpr (smoothing) {
    if (a.weight.data) total = double(weighted_sums(a, held, team, x, n, C(0)).weights);
  }
  const int64_t t = exists ? a.class_of(row, team.rank == 0) : -1;
  const double g = exists ? double(a.grad[row]) : 0;
  const double direct = t >= 0 ? g * (1 - a.smoothing) * a.weight_of(t) : 0,
               smooth = g * a.smoothing / double(a.classes);
  const C top = exists ? a.exp_sums[2 * row] : C(0), sum = exists ? a.exp_sums[2 * row + 1] : C(1),
          factor = C((direct + smooth * total) / double(sum)), less = C(smooth), hit = C(direct);
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
      if constexpr (smoothing) {
        if (c + j < n) v[j] = v[j] - (a.weight.data ? less * a.weight[c + j] : less);
      }
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
                              const LossArgs<T> a{reinterpret_cast<const T*>(l.x),
                                                  l.target,
                                                  {l.weight, l.wide_loss},
                                                  {l.grad, l.wide_loss},
                                                  l.out,
                                                  reinterpret_cast<compute_of<T>*>(l.exp_sums),
                                                  l.rows,
                                                  l.classes,
                                                  l.ignore,
                                                  l.smoothing,
                                                  width,
                                                  l.fault,
                                                  "cross_entropy"};
                              if (l.grad)
                                launch_block("_cross_entropy_backward",
                                             cross_entropy_gradient_kernel<T, Row, Team, smoothing>, shape, a);
                              else
                                launch_block("cross_entropy", cross_entropy_kernel<T, Row, Team, smoothing>, shape, a);
                            });
    };
    if (l.smoothing != 0) run.template operator()<RowKernels::few, true>();
    else run.template operator()<RowKernels::every, false>();
  });
}

}  // namespace vesta::cuda
