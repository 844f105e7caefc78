// Softmax along a dimension and cross-entropy over rows: drivers of the row kernels.
#include <cmath>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>

VESTA_DECLARE_ON_ISA(void register_rows(vesta::cpu::RowKernels (&)[vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

RowKernels rows[kNumDTypes];

constexpr int64_t kGrain = 8192;  // elements of exp that make a thread worthwhile

int64_t rows_per_piece(int64_t n) { return std::max<int64_t>(1, kGrain / std::max<int64_t>(n, 1)); }

/// Runs `row(x row, y row, n)` along `dim`: over contiguous memory, the dimension moved last where it is not.
template <class F>
Tensor along(const Tensor& x, const Tensor& second, int64_t dim, const char* op, F row) {
  check_floating(x, op);
  int64_t d = wrap_dim(dim, x.dim(), op);
  bool last = x.dim() == 0 || d == x.dim() - 1;
  auto ready = [&](const Tensor& t) { return contiguous(last ? t : transpose(t, d, -1)); };
  Tensor a = ready(x), b = second.defined() ? ready(second) : Tensor();
  // Where the dimension was moved, y is not the result: an out= that happens to have its shape must not take it.
  Tensor y = last ? result_tensor(a.sizes(), x.dtype(), x.device()) : empty_tensor(a.sizes(), x.dtype(), x.device());
  int64_t n = a.dim() ? a.sizes()[size_t(a.dim() - 1)] : 1;
  if (y.numel()) {
    const char *p = a.impl()->data(), *q = b.defined() ? b.impl()->data() : nullptr;
    char* to = y.impl()->data();
    const int64_t bytes = n * itemsize(x.dtype());
    parallel_for(y.numel() / n, rows_per_piece(n), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) row(p + r * bytes, q ? q + r * bytes : nullptr, to + r * bytes, n);
    });
  }
  return last ? y : contiguous(transpose(y, d, -1));
}

template <bool log>
Tensor softmax_kernel(const Tensor& x, int64_t dim) {
  check_floating(x, log ? "log_softmax" : "softmax");
  auto f = row_kernels(x.dtype()).softmax;
  return along(x, {}, dim, log ? "log_softmax" : "softmax",
               [f](const char* a, const char*, char* y, int64_t n) { f(a, y, n, log); });
}

Tensor softmax_gradient_kernel(const Tensor& grad, const Tensor& output, int64_t dim, bool log) {
  auto f = row_kernels(output.dtype())._softmax_backward;
  return along(grad, output, dim, "_softmax_backward",
               [f, log](const char* g, const char* y, char* gx, int64_t n) { f(g, y, gx, n, log); });
}

/// A reader of class numbers that checks them; it returns -1 for ignored rows.
struct Targets {
  const Tensor numbers;
  int64_t classes, ignore;
  Targets(const Tensor& target, int64_t c, int64_t ignore_index)
      : numbers(contiguous(target.to(DType::int64))), classes(c), ignore(ignore_index) {
    const int64_t* t = numbers.data_ptr<int64_t>();
    for (int64_t i = 0; i < numbers.numel(); ++i) {
      VESTA_CHECK(t[i] == ignore || (t[i] >= 0 && t[i] < classes), index, "cross_entropy: Target ", t[i],
                  " is out of bounds (row ", i, "; classes are 0 to ", classes - 1, ").");
    }
  }
  int64_t operator[](int64_t i) const {
    int64_t t = numbers.data_ptr<int64_t>()[i];
    return t == ignore ? -1 : t;
  }
};

template <class T>
double weight_at(const Tensor& w, int64_t c) {
  return w.defined() ? double(w.data_ptr<T>()[c]) : 1.0;
}

// Loss of a row with class t, weights w and smoothing e (Szegedy et al. 2016), l its logsumexp:
//   (1 - e) * w[t] * (l - x[t]) + e / C * sum_j w[j] * (l - x[j])
// The largest logit is subtracted from x before the logarithm of the sum is, so that large logits cost no digits.
TensorPair cross_entropy_kernel(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore,
                                double smoothing) {
  check_cross_entropy(input, target, weight, smoothing);
  const int64_t rows = input.sizes()[0], c = input.sizes()[1];
  Targets classes(target, c, ignore);
  Tensor x = contiguous(input), w = weight.defined() ? contiguous(weight) : Tensor();
  Tensor loss = empty_tensor({&rows, 1}, input.dtype(), input.device());
  Tensor exp_sums = empty_tensor(exp_sums_shape(input), statistics_dtype(input.dtype()));
  const RowKernels& k = row_kernels(input.dtype());
  visit<kFloats>(input.dtype(), [&]<class T>() {
    const char* base = x.impl()->data();
    const char* wp = w.defined() ? w.impl()->data() : nullptr;
    double total_weight = w.defined() && smoothing != 0 ? k.dot(wp, nullptr, 0, c) : double(c);
    parallel_for(rows, rows_per_piece(c), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const char* row = base + i * c * int64_t(sizeof(T));
        const ExpSum s = k.exp_sum(row, c);
        double value = 0;
        if (int64_t t = classes[i]; t >= 0) {
          const double l = std::log(s.sum);
          value = (1 - smoothing) * weight_at<T>(w, t) * (s.top - double(reinterpret_cast<const T*>(row)[t]) + l);
          if (smoothing != 0) value += smoothing / double(c) * (total_weight * l - k.dot(row, wp, s.top, c));
        }
        loss.data_ptr<T>()[i] = T(static_cast<compute_t<T>>(value));
        compute_t<T>* const kept = exp_sums.data_ptr<compute_t<T>>() + 2 * i;
        kept[0] = compute_t<T>(s.top), kept[1] = compute_t<T>(s.sum);
      }
    });
  });
  return {loss, exp_sums};
}

Tensor cross_entropy_gradient_kernel(const Tensor& grad, const Tensor& input, const Tensor& target, MaybeTensor weight,
                                     const Tensor& exp_sums, int64_t ignore, double smoothing) {
  check_exp_sums(input, exp_sums);
  const int64_t rows = input.sizes()[0], c = input.sizes()[1];
  Targets classes(target, c, ignore);
  Tensor x = contiguous(input), w = weight.defined() ? contiguous(weight) : Tensor(), g = contiguous(grad);
  Tensor kept = contiguous(exp_sums), gx = empty_tensor(input.sizes(), input.dtype(), input.device());
  const RowKernels& k = row_kernels(input.dtype());
  visit<kFloats>(input.dtype(), [&]<class T>() {
    const char* wp = w.defined() ? w.impl()->data() : nullptr;
    double total_weight = w.defined() && smoothing != 0 ? k.dot(wp, nullptr, 0, c) : double(c);
    parallel_for(rows, rows_per_piece(c), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* to = gx.data_ptr<T>() + i * c;
        int64_t t = classes[i];
        if (t < 0) {
          std::fill_n(to, c, T(compute_t<T>(0)));
          continue;
        }
        double gi = double(g.data_ptr<T>()[i]), direct = gi * (1 - smoothing) * weight_at<T>(w, t);
        double smooth = gi * smoothing / double(c);
        const compute_t<T>* const s = kept.data_ptr<compute_t<T>>() + 2 * i;
        k.exp_minus(x.impl()->data() + i * c * int64_t(sizeof(T)), double(s[0]),
                    (direct + smooth * total_weight) / double(s[1]), smooth, wp, reinterpret_cast<char*>(to), c);
        to[t] = T(static_cast<compute_t<T>>(static_cast<compute_t<T>>(to[t]) - compute_t<T>(direct)));
      }
    });
  });
  return gx;
}

}  // namespace

const RowKernels& row_kernels(DType d) {
  VESTA_CHECK(is_float(d), type, "expected a floating-point dtype, got ", d, ".");
  return rows[int(d)];
}

void register_softmax() {
  VESTA_ON_ISA(register_rows, rows);
  constexpr auto cpu = DeviceType::cpu;
  ops::_softmax.set_kernel(cpu, softmax_kernel<false>);
  ops::_log_softmax.set_kernel(cpu, softmax_kernel<true>);
  ops::_softmax_backward.set_kernel(cpu, softmax_gradient_kernel);
  ops::_cross_entropy.set_kernel(cpu, cross_entropy_kernel);
  ops::_cross_entropy_backward.set_kernel(cpu, cross_entropy_gradient_kernel);
}

}  // namespace vesta::cpu
