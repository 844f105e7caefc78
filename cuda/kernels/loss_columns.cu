// Cross-entropy of columns of logits that lie side by side, as images have them: nothing is transposed. The formulas
// are those of loss.cu; the logits are read once, and once more for label smoothing.
#include <vesta/cuda/kernels/columns.cuh>
#include <vesta/cuda/kernels/loss_args.cuh>

namespace vesta::cuda {
namespace {

template <class T, int N>
VESTA_KERNEL void cross_entropy_columns_kernel(ColumnsArgs<T> a, LossArgs<T> l) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const ColumnPlace<T, N> place(a);
  const int64_t first = place.pack * N;
  ExpSum<C> s[N];
  exp_sums_of_columns(a, place, s);
  WeightedSums<C> weighted[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) s[j].top = finite_top(s[j].top), weighted[j] = {C(0), C(0)};
  if (l.smoothing != 0) {
    place.template each<false>(a, [&](const Pack* x, const Pack*, int count, int64_t row) {
      VESTA_UNROLL
      for (int k = 0; k < kAhead; ++k) {
        if (k >= count) continue;
        const C w = l.weight.data ? l.weight[row + int64_t(k) * place.lanes] : C(1);
        VESTA_UNROLL
        for (int j = 0; j < N; ++j) {
          weighted[j] = add_sums(weighted[j], WeightedSums<C>{w, w * (convert<C>(x[k].v[j]) - s[j].top)});
        }
      }
    });
    combine_lanes(weighted, a.width, place.lanes,
                  [](const WeightedSums<C>& p, const WeightedSums<C>& q) { return add_sums(p, q); });
  }
  if (!place.exists || place.lane != 0) return;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const int64_t column = first + j, t = l.class_of(l.target[column], true);
    double loss = 0;
    if (t >= 0) {
      const double log = math::log(s[j].sum), own = double(convert<C>(a.x[place.at + t * a.step + j]));
      loss = (1 - l.smoothing) * l.weight_of(t) * (double(s[j].top) - own + log);
      if (l.smoothing != 0) {
        loss += l.smoothing / double(a.n) * (double(weighted[j].weights) * log - double(weighted[j].products));
      }
    }
    if (l.weight.wide) reinterpret_cast<C*>(l.out)[column] = C(loss);
    else reinterpret_cast<T*>(l.out)[column] = convert<T>(C(loss));
    l.exp_sums[2 * column] = s[j].top, l.exp_sums[2 * column + 1] = s[j].sum;
  }
}

/// d loss / d x[j] = g (((1 - e) w[t] + e / C sum(w)) p[j] - e / C w[j] - (1 - e) w[t] [j = t]), p = softmax(x).
template <class T, int N>
VESTA_KERNEL void cross_entropy_columns_backward_kernel(ColumnsArgs<T> a, LossArgs<T> l) {
  using C = compute_of<T>;
  using Pack = Elements<T, N>;
  const ColumnPlace<T, N> place(a);
  if (!place.exists) return;
  double total = double(a.n);
  if (l.smoothing != 0 && l.weight.data) {
    C sum(0);
    VESTA_ROLLED
    for (int64_t c = 0; c < a.n; ++c) sum = sum + l.weight[c];
    total = double(sum);
  }
  int64_t classes[N];
  C top[N], factor[N], less[N], hit[N];
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const int64_t column = place.pack * N + j, t = l.class_of(l.target[column], place.lane == 0);
    const double g = t >= 0 ? l.grad_of(column) : 0;
    const double direct = t >= 0 ? g * (1 - l.smoothing) * l.weight_of(t) : 0, smooth = g * l.smoothing / double(a.n);
    classes[j] = t, top[j] = l.exp_sums[2 * column];
    factor[j] = C((direct + smooth * total) / double(l.exp_sums[2 * column + 1]));
    less[j] = C(smooth), hit[j] = C(direct);
  }
  place.template each<false>(a, [&](const Pack* x, const Pack*, int count, int64_t row) {
    VESTA_UNROLL
    for (int k = 0; k < kAhead; ++k) {
      const int64_t r = row + int64_t(k) * place.lanes;
      const C w = l.smoothing != 0 && l.weight.data && k < count ? l.weight[r] : C(1);
      C v[N];
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) {
        C of = row_exp<T>(convert<C>(x[k].v[j]) - top[j]) * factor[j];
        if (l.smoothing != 0) of = of - less[j] * w;
        of = r == classes[j] ? of - hit[j] : of;
        v[j] = classes[j] < 0 ? C(0) : of;
      }
      if (k < count) *reinterpret_cast<Pack*>(place.result(a, row, k)) = narrowed<T, N>(v);
    }
  });
}

template <class T, int N>
void run(const CrossEntropyLaunch& l) {
  ColumnsArgs<T> a{};
  const LaunchShape shape = a.set(l.rows, l.classes, l.inner, N, l.pixels, l.stream);
  a.x = reinterpret_cast<const T*>(l.x), a.y = reinterpret_cast<T*>(l.out);
  const LossArgs<T> loss(l, a.width);
  if (l.grad) {
    launch_block("_cross_entropy_backward", cross_entropy_columns_backward_kernel<T, N>, shape, a, loss);
  } else {
    launch_block("cross_entropy", cross_entropy_columns_kernel<T, N>, shape, a, loss);
  }
}

}  // namespace

void cross_entropy_columns(const CrossEntropyLaunch& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    constexpr int N = sizeof(T) < 8 ? 16 / int(sizeof(T)) : 1;
    if (l.packed && !l.pixels) run<T, N>(l);
    else run<T, 1>(l);
  });
}

}  // namespace vesta::cuda
