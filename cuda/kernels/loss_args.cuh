// The parts that the kernels of cross-entropy share, those of rows and those of columns.
#pragma once
#include <vesta/cuda/kernels/loss.h>
#include <vesta/cuda/kernels/rows.cuh>

namespace vesta::cuda {

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

/// A launch for logits of T.
template <class T>
struct LossArgs {
  const T* x;
  const int64_t* target;
  MaybeWide<T> weight, grad;
  bool one_grad;  // the first of them is that of all rows
  const compute_of<T>* total;
  char* out;  // the gradient, of T, or the losses, of the dtype of weight and grad
  compute_of<T>* exp_sums;  // of each row its top and the sum of exp(x - top)
  int64_t rows, classes, ignore;
  double smoothing;
  unsigned width;
  Fault* fault;
  const char* name;  // the host's text: a literal in device code would lie on the device

  LossArgs(const CrossEntropyLaunch& l, unsigned team)
      : x(reinterpret_cast<const T*>(l.x)),
        target(l.target),
        weight{l.weight, l.wide_loss},
        grad{l.grad, l.wide_loss},
        one_grad(l.one_grad),
        total(reinterpret_cast<const compute_of<T>*>(l.total)),
        out(l.out),
        exp_sums(reinterpret_cast<compute_of<T>*>(l.exp_sums)),
        rows(l.rows),
        classes(l.classes),
        ignore(l.ignore),
        smoothing(l.smoothing),
        width(team),
        fault(l.fault),
        name("cross_entropy") {}

  VESTA_DEVICE bool is_class(int64_t t) const { return t != ignore && t >= 0 && t < classes; }
  /// Returns a row's class, -1 if the row is ignored, of its target. One member of the team reports a number out of
  /// range.
  VESTA_DEVICE int64_t class_of(int64_t t, bool reports) const {
    if (is_class(t)) return t;
    if (reports && t != ignore) report(fault, FaultKind::class_number, name, t, classes);
    return -1;
  }
  /// Returns the gradient of a row's loss: as wide as it is in memory, where it is divided as well.
  VESTA_DEVICE double grad_of(int64_t row) const {
    using C = compute_of<T>;
    const C g = grad[one_grad ? 0 : row];
    if (!total) return double(g);
    const C part = g / *total;
    return double(grad.wide ? part : convert<C>(convert<T>(part)));
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

}  // namespace vesta::cuda
