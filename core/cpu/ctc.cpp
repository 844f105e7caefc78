// Connectionist temporal classification (Graves et al. 2006). The states of a sequence are its labels with blanks
// before, between and behind them: 2 L + 1. alpha(t, s) is the logarithm of the sum over all ways to be in state s at
// step t, what step t reads included; beta(t, s) the same of the ways from there to the end, what it reads excluded.
// All of it is computed in double: logarithms of products of hundreds of probabilities have few digits left in float.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/dispatch/schema.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/loss.h>

namespace vesta::cpu {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

/// Returns log(e^a + e^b), of NaN NaN.
double log_sum(double a, double b) {
  if (b > a) std::swap(a, b);
  return b == kImpossible ? a : a + std::log1p(std::exp(b - a));
}

/// One sequence of a batch.
template <class T>
struct Sequence {
  const T* probs;  // of its first step
  int64_t step, stride;
  int64_t steps, classes;
  std::vector<int64_t> labels;  // of the states

  int64_t states() const { return int64_t(labels.size()); }
  /// Returns whether a way may lead from state s - 2 to s.
  bool skips(int64_t s) const { return s % 2 != 0 && s > 1 && labels[size_t(s)] != labels[size_t(s - 2)]; }
  double emitted(int64_t t, int64_t s) const { return double(probs[t * step + labels[size_t(s)] * stride]); }

  /// Writes alpha, of `width` states a step.
  void forward(double* alpha, int64_t width) const {
    for (int64_t t = 0; t < steps; ++t) {
      const double* before = alpha + (t - 1) * width;
      for (int64_t s = 0; s < states(); ++s) {
        double v = s < 2 ? 0 : kImpossible;
        if (t > 0) {
          v = s > 0 ? log_sum(before[s], before[s - 1]) : before[s];
          if (skips(s)) v = log_sum(v, before[s - 2]);
        }
        alpha[t * width + s] = v + emitted(t, s);
      }
    }
  }
  /// Returns log p of the labels.
  double log_sum_of_ends(const double* alpha, int64_t width) const {
    if (steps == 0) return states() == 1 ? 0 : kImpossible;
    const double* last = alpha + (steps - 1) * width + states() - 1;
    return states() > 1 ? log_sum(last[0], last[-1]) : last[0];
  }
  /// Turns exp(log_probs) of this sequence in `g`, a dense row of classes each `pitch` elements, into the gradient. It
  /// is NaN for an infinite loss, as in PyTorch, unless that does not count (zero_infinity).
  void backward(const double* alpha, int64_t width, double grad, T* g, int64_t pitch) const {
    const double total = log_sum_of_ends(alpha, width);
    if (total == kImpossible && grad != 0) grad = std::numeric_limits<double>::quiet_NaN();
    const auto number = static_cast<size_t>(states());
    std::vector<double> now(number), next(number), shares(static_cast<size_t>(classes));
    for (int64_t t = steps - 1; t >= 0; --t) {
      for (int64_t s = 0; s < states(); ++s) {
        double v = s + 2 >= states() ? 0 : kImpossible;
        if (t < steps - 1) {
          v = s + 1 < states() ? log_sum(next[size_t(s)], next[size_t(s + 1)]) : next[size_t(s)];
          if (s + 2 < states() && skips(s + 2)) v = log_sum(v, next[size_t(s + 2)]);
        }
        now[size_t(s)] = v + emitted(t, s);
        if (total != kImpossible) shares[size_t(labels[size_t(s)])] += std::exp(alpha[t * width + s] + v - total);
      }
      std::swap(now, next);
      T* row = g + t * pitch;
      for (int64_t c = 0; c < classes; ++c) row[c] = T(grad * (double(row[c]) - shares[size_t(c)]));
      for (int64_t label : labels) shares[size_t(label)] = 0;
    }
  }
};

/// The sequences of a batch.
template <class T>
struct Batch {
  const Tensor &log_probs, &targets;
  IntSpan input_lengths, target_lengths;
  int64_t blank;
  std::vector<int64_t> begins;

  int64_t width() const { return 2 * (target_lengths.empty() ? 0 : *std::ranges::max_element(target_lengths)) + 1; }
  Sequence<T> operator[](int64_t n) const {
    const int64_t length = target_lengths[size_t(n)], classes = log_probs.size(2);
    const int64_t* from = elements<int64_t>(targets) + begins[size_t(n)];
    Sequence<T> q{elements<T>(log_probs) + n * log_probs.stride(1),
                  log_probs.stride(0),
                  log_probs.stride(2),
                  input_lengths[size_t(n)],
                  classes,
                  std::vector<int64_t>(size_t(2 * length + 1), blank)};
    for (int64_t k = 0; k < length; ++k) {
      VESTA_CHECK(from[k] >= 0 && from[k] < classes, runtime, "ctc_loss: expected targets from 0 to ", classes - 1,
                  ", got ", from[k], ".");
      q.labels[size_t(2 * k + 1)] = from[k];
    }
    return q;
  }
};

/// Calls f with the batch of the dtype of log_probs.
template <class F>
void visit_batch(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                 int64_t blank, F f) {
  std::vector<int64_t> begins = check_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
  visit<schema::kWideFloats>(log_probs.dtype(), [&]<class T>() {
    f(Batch<T>{log_probs, targets, input_lengths, target_lengths, blank, std::move(begins)});
  });
}

TensorPair ctc_loss_kernel(const Tensor& log_probs, const Tensor& targets, IntTuple input_lengths,
                           IntTuple target_lengths, int64_t blank) {
  const Tensor labels = contiguous_values(targets);
  TensorPair r;
  visit_batch(log_probs, labels, input_lengths, target_lengths, blank, [&]<class T>(const Batch<T>& batch) {
    const int64_t steps = log_probs.size(0), n = log_probs.size(1), width = batch.width();
    auto& [losses, alphas] = r;
    losses = empty_tensor(Dims{n}, log_probs.dtype()), alphas = empty_tensor(Dims{n, steps, width}, DType::float64);
    T* const loss = elements<T>(losses);
    double* const alpha = elements<double>(alphas);
    parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Sequence<T> q = batch[i];
        q.forward(alpha + i * steps * width, width);
        loss[i] = T(0 - q.log_sum_of_ends(alpha + i * steps * width, width));
      }
    });
  });
  return r;
}

Tensor ctc_loss_backward_kernel(const Tensor& grad, const Tensor& log_probs, const Tensor& targets, const Tensor& alpha,
                                IntTuple input_lengths, IntTuple target_lengths, int64_t blank) {
  const Tensor labels = contiguous_values(targets), grads = contiguous_values(grad);
  Tensor out = contiguous_values(exp(log_probs));
  visit_batch(log_probs, labels, input_lengths, target_lengths, blank, [&]<class T>(const Batch<T>& batch) {
    const int64_t steps = log_probs.size(0), n = log_probs.size(1), classes = log_probs.size(2), width = batch.width();
    VESTA_CHECK(grads.numel() == n && grads.dtype() == log_probs.dtype(), value,
                "_ctc_loss_backward: expected grad [N] of ", log_probs.dtype(), ", got ", grads.sizes(), " of ",
                grads.dtype(), ".");
    VESTA_CHECK(alpha.dtype() == DType::float64 && alpha.numel() == n * steps * width && alpha.is_contiguous(), value,
                "_ctc_loss_backward: expected alpha as _ctc_loss returned it, got ", alpha.sizes(), ".");
    const T* const g = elements<T>(grads);
    const double* const a = elements<double>(alpha);
    T* const to = elements<T>(out);
    parallel_for(n, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const Sequence<T> q = batch[i];
        q.backward(a + i * steps * width, width, double(g[i]), to + i * classes, n * classes);
        for (int64_t t = q.steps; t < steps; ++t) std::fill_n(to + (t * n + i) * classes, classes, T(0));
      }
    });
  });
  return out;
}

}  // namespace

void register_ctc() {
  ops::_ctc_loss.set_kernel(DeviceType::cpu, ctc_loss_kernel);
  ops::_ctc_loss_backward.set_kernel(DeviceType::cpu, ctc_loss_backward_kernel);
}

}  // namespace vesta::cpu
