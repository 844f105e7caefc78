// Batch normalisation: sums over every dimension but the second, then one affine map per channel.
// Ioffe and Szegedy 2015. The variance is a second pass over deviations from the mean, so that a large mean costs no
// digits.
#include <cmath>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/view.h>

namespace vesta::cpu {
namespace {

/// A contiguous input [N, C, *] as runs of `inner` elements: run (n, c) begins at (n * channels + c) * inner.
struct Runs : BatchNormShape {
  int64_t bytes;
  explicit Runs(const Tensor& x) : BatchNormShape(x), bytes(inner * itemsize(x.dtype())) {}
  int64_t at(int64_t n, int64_t c) const { return (n * channels + c) * bytes; }
};

/// Runs shorter than this are gathered before the kernels see them, because a call for each costs more than two copies
/// do: the step of [128, 400] takes 0.4 ms instead of 14. From 4 on, evaluation would lose more than training gains
/// (`nn.BatchNorm1d` and `2d` timed over [128, 400], [64, 64, k, k] with k = 2, 4, 5, 7, one thread).
constexpr int64_t kShortRun = 4;

bool has_short_runs(const BatchNormShape& shape) {
  return shape.inner < kShortRun && shape.batch > 1 && shape.channels > 0 && shape.inner > 0;
}
/// Returns [N, C, *] as one run a channel: a contiguous [1, C, N * inner].
Tensor gather_runs(const Tensor& x, const BatchNormShape& shape) {
  return view(contiguous(transpose(x, 0, 1)), {1, shape.channels, shape.batch * shape.inner});
}
/// Returns what gather_runs made in the order of `like` [N, C, *].
Tensor scatter_runs(const Tensor& rows, const Tensor& like) {
  return contiguous(transpose(view(rows, transpose(like, 0, 1).sizes()), 0, 1));
}

double value_at(const Tensor& t, int64_t i, double otherwise) {
  if (!t.defined()) return otherwise;
  const char* p = t.impl()->data() + i * t.strides()[0] * itemsize(t.dtype());
  return visit<kFloats>(t.dtype(), [&]<class T>() { return double(*reinterpret_cast<const T*>(p)); });
}
void set_at(const Tensor& t, int64_t i, double v) {
  char* p = t.impl()->data() + i * t.strides()[0] * itemsize(t.dtype());
  visit<kFloats>(t.dtype(), [&]<class T>() { *reinterpret_cast<T*>(p) = T(static_cast<compute_t<T>>(v)); });
}

TensorTriple batch_norm_kernel(const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                               MaybeTensor running_var, bool training, double momentum, double eps) {
  const BatchNormShape shape = batch_norm_shape(input, weight, bias, running_mean, running_var, training);
  if (has_short_runs(shape)) {
    auto [y, mean, invstd] =
        batch_norm_kernel(gather_runs(input, shape), weight, bias, running_mean, running_var, training, momentum, eps);
    return {scatter_runs(y, input), mean, invstd};
  }
  const bool update = shape.update;
  Tensor x = contiguous(input);
  Runs runs(x);
  Tensor y = empty_tensor(x.sizes(), x.dtype());
  DType stats = statistics_dtype(x.dtype());
  Tensor mean = empty_tensor({&runs.channels, 1}, stats), invstd = empty_tensor({&runs.channels, 1}, stats);
  const RowKernels& k = row_kernels(x.dtype());
  const char* from = x.impl()->data();
  char* to = y.impl()->data();
  parallel_for(
      runs.channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(runs.count(), 1)), [&](int64_t b, int64_t e) {
        for (int64_t c = b; c < e; ++c) {
          double m = value_at(running_mean, c, 0), var = value_at(running_var, c, 1), count = double(runs.count());
          if (training) {
            // A shift near the mean keeps float sums of a large mean exact enough; the first element is near enough.
            double shift =
                runs.count() ? double(visit<kFloats>(x.dtype(),
                                                     [&]<class T>() {
                                                       return double(*reinterpret_cast<const T*>(from + runs.at(0, c)));
                                                     }))
                             : 0.0;
            double sum = 0, squares = 0, s, q;
            for (int64_t n = 0; n < runs.batch; ++n)
              k.moments(from + runs.at(n, c), runs.inner, shift, &s, &q), sum += s;
            m = shift + sum / count;
            double rest = 0;
            for (int64_t n = 0; n < runs.batch; ++n)
              k.moments(from + runs.at(n, c), runs.inner, m, &s, &q), rest += s, squares += q;
            var = (squares - rest * rest / count) / count;
            if (update) {
              double unbiased = var * count / (count - 1);
              set_at(running_mean, c, (1 - momentum) * value_at(running_mean, c, 0) + momentum * m);
              set_at(running_var, c, (1 - momentum) * value_at(running_var, c, 1) + momentum * unbiased);
            }
          }
          double inv = 1 / std::sqrt(var + eps);
          set_at(mean, c, m);
          set_at(invstd, c, inv);
          double scale = inv * value_at(weight, c, 1), shift = value_at(bias, c, 0) - m * scale;
          for (int64_t n = 0; n < runs.batch; ++n)
            k.affine(from + runs.at(n, c), scale, shift, to + runs.at(n, c), runs.inner);
        }
      });
  if (update) {
    running_mean->impl()->bump("batch_norm");
    running_var->impl()->bump("batch_norm");
  }
  return {y, mean, invstd};
}

// With x^ = (x - mean) * invstd and m elements a channel:
//   d bias = sum g,  d weight = sum g x^,
//   dx = weight * invstd * (g - sum(g) / m - x^ * sum(g x^) / m)   in training,  weight * invstd * g  otherwise.
TensorTriple batch_norm_gradient_kernel(const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                        const Tensor& invstd, bool training) {
  const BatchNormShape shape(input);
  if (has_short_runs(shape)) {
    auto [rows, gw, gb] = batch_norm_gradient_kernel(gather_runs(grad.to(input.dtype()), shape),
                                                     gather_runs(input, shape), weight, mean, invstd, training);
    return {scatter_runs(rows, input), gw, gb};
  }
  Tensor x = contiguous(input), g = contiguous(grad.to(input.dtype()));
  Runs runs(x);
  Tensor gx = empty_tensor(x.sizes(), x.dtype());
  Tensor gw = empty_tensor({&runs.channels, 1}, mean.dtype()), gb = empty_tensor({&runs.channels, 1}, mean.dtype());
  const RowKernels& k = row_kernels(x.dtype());
  const char *xp = x.impl()->data(), *gp = g.impl()->data();
  char* to = gx.impl()->data();
  parallel_for(
      runs.channels, std::max<int64_t>(1, 16384 / std::max<int64_t>(runs.count(), 1)), [&](int64_t b, int64_t e) {
        for (int64_t c = b; c < e; ++c) {
          double m = value_at(mean, c, 0), inv = value_at(invstd, c, 1), count = double(runs.count());
          double sum = 0, dot = 0, s, d;
          for (int64_t n = 0; n < runs.batch; ++n)
            k.gradient_sums(gp + runs.at(n, c), xp + runs.at(n, c), m, runs.inner, &s, &d), sum += s, dot += d;
          set_at(gw, c, dot * inv);
          set_at(gb, c, sum);
          double scale = inv * value_at(weight, c, 1), slope = 0, offset = 0;
          if (training) {
            slope = -scale * dot * inv * inv / count;
            offset = -scale * sum / count - slope * m;
          }
          for (int64_t n = 0; n < runs.batch; ++n) {
            k.combine(gp + runs.at(n, c), xp + runs.at(n, c), scale, slope, offset, to + runs.at(n, c), runs.inner);
          }
        }
      });
  return {gx, gw, gb};
}

}  // namespace

void register_norm() {
  ops::native_batch_norm.set_kernel(DeviceType::cpu, batch_norm_kernel);
  ops::_batch_norm_backward.set_kernel(DeviceType::cpu, batch_norm_gradient_kernel);
}

}  // namespace vesta::cpu
