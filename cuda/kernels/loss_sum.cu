// Sums of losses, which are computed as they are added up: terms of an input and its target, and losses of class
// numbers. The stages and their trees are those of any reduction; what is computed is not written to memory.
#include <vesta/cuda/kernels/loss_sum.h>

#include <vesta/cuda/kernels/reduce.cuh>

namespace vesta::cuda {
namespace {

/// Rounds a number as a tensor of T would: a gradient that has been divided is the same as in two ops.
template <class T>
VESTA_DEVICE compute_of<T> round_to(compute_of<T> v) {
  return convert<compute_of<T>>(convert<T>(v));
}

// ---- Terms ----

/// A sum of terms of struct D with parameters P.
template <class D, class P, class T>
struct SumOfTerms {
  using In = T;
  using Acc = compute_of<T>;
  const T* target;
  double params[2];
  char* out;
  DType out_dtype;
  double divisor;

  VESTA_DEVICE Acc identity() const { return Acc(0); }
  VESTA_DEVICE Acc combine(Acc a, Acc b) const { return a + b; }
  VESTA_DEVICE Acc load(T v, int64_t, int64_t at) const {
    return traits::forward<D, P>(params, convert<Acc>(v), convert<Acc>(target[at]));
  }
  template <int N>
  VESTA_DEVICE void load_aligned(const Elements<T, N>& pack, int64_t at, Acc (&v)[N]) const {
    Acc t[N];
    widen(pack, v);
    widen(*reinterpret_cast<const Elements<T, N>*>(target + at), t);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) v[j] = traits::forward<D, P>(params, v[j], t[j]);
  }
  VESTA_DEVICE void store(int64_t k, Acc a) const {
    if (divisor >= 0) a = Acc(double(a) / divisor);
    if (is_half_type<T> && out_dtype != DType::float32) reinterpret_cast<T*>(out)[k] = convert<T>(a);
    else reinterpret_cast<Acc*>(out)[k] = a;
  }
};

template <class T>
struct GradientArgs {
  const T *x, *target, *grad;
  double params[2], divisor;
  T *of_x, *of_target;
  int64_t n;
  bool packed;
};

/// A thread computes the gradients of a pack of elements.
template <class D, class P, class T>
VESTA_KERNEL void terms_backward_kernel(GradientArgs<T> a) {
  using C = compute_of<T>;
  constexpr int N = reduce_pack<T>;
  const int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N;
  if (first >= a.n) return;
  C g = convert<C>(*a.grad);
  if (a.divisor >= 0) g = round_to<T>(C(g / C(a.divisor)));
  const bool whole = a.packed && first + N <= a.n;
  Elements<T, N> x, t;
  if (whole) {
    x = *reinterpret_cast<const Elements<T, N>*>(a.x + first);
    t = *reinterpret_cast<const Elements<T, N>*>(a.target + first);
  } else {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      const int64_t at = first + j < a.n ? first + j : first;
      x.v[j] = a.x[at], t.v[j] = a.target[at];
    }
  }
  C xs[N], ts[N], of[N];
  widen(x, xs), widen(t, ts);
  const auto store = [&](T* to) {
    const Elements<T, N> pack = narrowed<T, N>(of);
    if (whole) {
      *reinterpret_cast<Elements<T, N>*>(to + first) = pack;
      return;
    }
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      if (first + j < a.n) to[first + j] = pack.v[j];
    }
  };
  if (a.of_x) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) of[j] = gradient_of_term<D, P, 0>(g, xs[j], ts[j], a.params);
    store(a.of_x);
  }
  if (a.of_target) {
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) of[j] = gradient_of_term<D, P, 1>(g, xs[j], ts[j], a.params);
    store(a.of_target);
  }
}

// ---- Losses of class numbers ----

/// A sum of rows' losses, and of the weights of their classes.
template <class C>
struct ClassSum {
  C loss, weight;
};

/// Writes such sums.
template <class C>
struct ClassSums {
  using Acc = ClassSum<C>;
  static constexpr bool converts = false;
  char* out;
  DType out_dtype;  // complex for a piece
  bool mean;
  C* total;

  VESTA_DEVICE Acc identity() const { return {C(0), C(0)}; }
  VESTA_DEVICE Acc combine(const Acc& a, const Acc& b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  VESTA_DEVICE void store(int64_t k, const Acc& a) const {
    if (out_dtype == DType::complex64 || out_dtype == DType::complex128) {
      reinterpret_cast<Acc*>(out)[k] = a;
      return;
    }
    if (total) *total = a.weight;
    const C r = mean ? a.loss / a.weight : a.loss;
    switch (out_dtype) {
      case DType::float16: reinterpret_cast<Half*>(out)[k] = convert<Half>(r); return;
      case DType::bfloat16: reinterpret_cast<BFloat16*>(out)[k] = convert<BFloat16>(r); return;
      default: reinterpret_cast<C*>(out)[k] = r;
    }
  }
};

/// The classes of rows, in device form.
template <class T>
struct ClassRows {
  using C = compute_of<T>;
  const T *losses, *probabilities, *weight;
  Divider inner;
  int64_t classes, ignore;
  Fault* fault;
  const char* name;  // the host's text

  explicit ClassRows(const ClassLosses& l)
      : losses(reinterpret_cast<const T*>(l.losses)),
        probabilities(reinterpret_cast<const T*>(l.probabilities)),
        weight(reinterpret_cast<const T*>(l.weight)),
        inner(l.inner),
        classes(l.classes),
        ignore(l.ignore),
        fault(l.fault),
        name("nll_loss") {}

  VESTA_DEVICE bool counts(int64_t t) const { return t != ignore && t >= 0 && t < classes; }
  VESTA_DEVICE C weight_of(int64_t t) const { return weight ? convert<C>(weight[t]) : C(1); }
  /// Returns the loss of a row of class t and its weight, 0 of a row that does not count.
  VESTA_DEVICE ClassSum<C> loss_of(int64_t row, int64_t t) const {
    if (!counts(t)) {
      if (fault && t != ignore) report(fault, FaultKind::class_number, name, t, classes);
      return {C(0), C(0)};
    }
    const C w = weight_of(t);
    if (losses) return {convert<C>(losses[row]), w};
    const int64_t outer = inner.divide(row), column = row - outer * inner.divisor;
    return {-convert<C>(probabilities[(outer * classes + t) * inner.divisor + column]) * w, w};
  }
};

/// Sums over class numbers; row number i has number i.
template <class T>
struct SumOfClassLosses : ClassSums<compute_of<T>> {
  using In = int64_t;
  using Acc = ClassSum<compute_of<T>>;
  ClassRows<T> rows;

  VESTA_DEVICE Acc load(int64_t t, int64_t row, int64_t) const { return rows.loss_of(row, t); }
};

/// Sums over pieces.
template <class C>
struct SumOfClassSums : ClassSums<C> {
  using In = ClassSum<C>;

  VESTA_DEVICE In load(const In& v, int64_t, int64_t) const { return v; }
};

template <class T>
VESTA_KERNEL void nll_rows_kernel(ClassRows<T> rows, const int64_t* target, T* out, int64_t count) {
  const int64_t row = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (row < count) out[row] = convert<T>(rows.loss_of(row, target[row]).loss);
}

template <class T>
struct NllGradient {
  const int64_t* target;
  const T* grad;
  const compute_of<T>* total;
  bool one_grad, packed;
  T* out;
  int64_t n;  // elements of out
  Divider classes;
};

/// A thread writes a pack of the gradient: -grad * weight in the place of each row's class.
template <class T>
VESTA_KERNEL void nll_rows_backward_kernel(ClassRows<T> rows, NllGradient<T> a) {
  using C = compute_of<T>;
  constexpr int N = reduce_pack<T>;
  const int64_t first = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * N, inner = rows.inner.divisor;
  if (first >= a.n) return;
  int64_t lines = rows.inner.divide(first), column = first - lines * inner;
  int64_t outer = a.classes.divide(lines), c = lines - outer * rows.classes;
  Elements<T, N> pack;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    pack.v[j] = convert<T>(C(0));
    if (first + j >= a.n) break;
    const int64_t row = outer * inner + column, t = a.target[row];
    if (t == c && t != rows.ignore) {
      C g = convert<C>(a.grad[a.one_grad ? 0 : row]);
      if (a.total) g = round_to<T>(C(g / *a.total));
      pack.v[j] = convert<T>(C(-g * rows.weight_of(t)));
    }
    if (++column < inner) continue;
    column = 0;
    if (++c < rows.classes) continue;
    c = 0, ++outer;
  }
  if (a.packed && first + N <= a.n) {
    *reinterpret_cast<Elements<T, N>*>(a.out + first) = pack;
    return;
  }
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    if (first + j < a.n) a.out[first + j] = pack.v[j];
  }
}

}  // namespace

void reduce_loss_terms(const ReduceStage& s) {
  const LossTerms& l = *s.terms;
  visit_device<kFloats>(s.dtype, [&]<class T>() {
    visit_term(l.term, [&]<class D, class P>() {
      const SumOfTerms<D, P, T> op{
          reinterpret_cast<const T*>(l.target), {l.params[0], l.params[1]}, s.out, s.out_dtype, s.divisor};
      run_pieces_stage(op, s);
    });
  });
}

void loss_terms_backward(const LossTermsGradient& l) {
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    visit_term(l.terms.term, [&]<class D, class P>() {
      const GradientArgs<T> a{.x = reinterpret_cast<const T*>(l.x),
                              .target = reinterpret_cast<const T*>(l.terms.target),
                              .grad = reinterpret_cast<const T*>(l.grad),
                              .params = {l.terms.params[0], l.terms.params[1]},
                              .divisor = l.divisor,
                              .of_x = reinterpret_cast<T*>(l.of_x),
                              .of_target = reinterpret_cast<T*>(l.of_target),
                              .n = l.n,
                              .packed = l.packed};
      constexpr int64_t N = reduce_pack<T>;
      launch_independent("_loss_sum_backward", terms_backward_kernel<D, P, T>,
                         linear_shape(uint64_t((l.n + N - 1) / N), kTeamThreads, l.stream), a);
    });
  });
}

void reduce_class_losses(const ReduceStage& s) {
  const ClassLosses& l = *s.classes;
  visit_device<kFloats>(l.dtype, [&]<class T>() {
    using C = compute_of<T>;
    const ClassSums<C> sums{s.out, s.out_dtype, l.mean, reinterpret_cast<C*>(l.total)};
    if (s.dtype == DType::int64) run_pieces_stage(SumOfClassLosses<T>{sums, ClassRows<T>(l)}, s);
    else run_pieces_stage(SumOfClassSums<C>{sums}, s);
  });
}

void nll_rows(const NllRows& l) {
  visit_device<kFloats>(l.rows.dtype, [&]<class T>() {
    launch_independent("nll_loss", nll_rows_kernel<T>, linear_shape(uint64_t(l.count), kTeamThreads, l.stream),
                       ClassRows<T>(l.rows), l.target, reinterpret_cast<T*>(l.out), l.count);
  });
}

void nll_rows_backward(const NllRows& l) {
  visit_device<kFloats>(l.rows.dtype, [&]<class T>() {
    const int64_t n = l.count * l.rows.classes;
    const NllGradient<T> a{.target = l.target,
                           .grad = reinterpret_cast<const T*>(l.grad),
                           .total = reinterpret_cast<const compute_of<T>*>(l.total),
                           .one_grad = l.one_grad,
                           .packed = reinterpret_cast<uintptr_t>(l.out) % 16 == 0,
                           .out = reinterpret_cast<T*>(l.out),
                           .n = n,
                           .classes = Divider(l.rows.classes)};
    constexpr int64_t N = reduce_pack<T>;
    launch_independent("_nll_loss_backward", nll_rows_backward_kernel<T>,
                       linear_shape(uint64_t((n + N - 1) / N), kTeamThreads, l.stream), ClassRows<T>(l.rows), a);
  });
}

}  // namespace vesta::cuda
