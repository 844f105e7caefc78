// Batch normalisation: sums over every dimension but the second, then one affine map per channel. Layer, root mean
// square and group normalisation: the same over rows. Ioffe and Szegedy 2015. The variance is that of deviations from
// numbers near the means of pieces, so that a large mean costs no digits: Note [Statistics in one pass].
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/norm_pixels.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/norm_backward.h>
#include <vesta/core/ops/reduce.h>
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
  return view(contiguous_values(transpose(x, 0, 1)), {1, shape.channels, shape.batch * shape.inner});
}
/// Returns what gather_runs made in the order of `like` [N, C, *].
Tensor scatter_runs(const Tensor& rows, const Tensor& like) {
  return contiguous_values(transpose(view(rows, transpose(like, 0, 1).sizes()), 0, 1));
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

/// Returns a mean as a number of the dtype of statistics, which may be subtracted from elements. What it leaves of the
/// mean is for the numbers that come after.
double center_of(double mean, DType dtype) {
  return statistics_dtype(dtype) == DType::float32 ? double(float(mean)) : mean;
}

/// What batch normalisation makes of the statistics of each channel.
struct ChannelMaps {
  BatchNormShape shape;
  Tensor weight, bias, running_mean, running_var;
  double momentum, eps;
  Tensor mean, invstd;

  struct Map {
    double center, scale, shift;  // y = (x - center) * scale + shift
  };
  /// Keeps the statistics of a channel; returns the map of its elements.
  Map settle(int64_t c, double m, double var) const {
    const double count = double(shape.count());
    if (shape.update) {
      const double unbiased = var * count / (count - 1);
      set_at(running_mean, c, (1 - momentum) * value_at(running_mean, c, 0) + momentum * m);
      set_at(running_var, c, (1 - momentum) * value_at(running_var, c, 1) + momentum * unbiased);
    }
    const double inv = 1 / std::sqrt(var + eps);
    set_at(mean, c, m);
    set_at(invstd, c, inv);
    const double scale = inv * value_at(weight, c, 1), center = center_of(m, mean.dtype());
    // of an infinite mean nothing is left
    return {center, scale, value_at(bias, c, 0) - (std::isfinite(center) ? (m - center) * scale : 0)};
  }
};

/// Returns how many neighbouring channels are worked on together, so that L2 keeps them from pass to pass; 0 where it
/// cannot: then every pass goes over all memory in its order. Of each image they are one piece, which must not be
/// short.
int64_t channels_together(const Runs& runs) {
  constexpr int64_t kWanted = 1 << 16, kKept = 1 << 19, kShortPiece = 1 << 12;  // bytes
  const int64_t one = std::max<int64_t>(1, runs.batch * runs.bytes), count = std::max<int64_t>(1, kWanted / one);
  return one <= kKept && count * runs.bytes >= kShortPiece ? std::min(count, std::max<int64_t>(1, runs.channels)) : 0;
}
/// Calls f(first channel, channels, numbers) for blocks of channels. Each thread has `lists` lists of numbers, one for
/// each run of a block.
template <class F>
void by_channels(const Runs& runs, int64_t together, int64_t lists, F f) {
  parallel_for((runs.channels + together - 1) / together, 1, [&](int64_t b, int64_t e) {
    std::vector<double> numbers(size_t(lists * together * std::max<int64_t>(1, runs.batch)));
    for (int64_t i = b; i < e; ++i) f(i * together, std::min(together, runs.channels - i * together), numbers.data());
  });
}
/// parallel_for() from the end of a range to its begin: what was read last is in the last cache still
/// (build/bin/bandwidth batch_norm).
template <class F>
void backwards(int64_t n, int64_t grain, F f) {
  parallel_for(n, grain, [&](int64_t b, int64_t e) { f(n - e, n - b); });
}
int64_t runs_per_task(const Runs& runs) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(runs.inner, 1)); }
/// Returns how many channels' numbers of all runs a task adds up: those of whole cache lines, or it reads every line
/// for a part of it (a third of batch norm's time with 4096 images; build/bin/bandwidth 'batch_norm, training').
int64_t channels_per_task(const Runs& runs) { return std::max<int64_t>(16, 8192 / std::max<int64_t>(runs.batch, 1)); }
/// Returns which rows of a tensor runs [begin, end) are.
ChannelRows rows_of(const Runs& runs, int64_t begin, int64_t end) {
  return {begin % runs.channels, runs.channels, end - begin, runs.inner};
}

/// Numbers of each run, in the order of memory, which the allocator keeps: fresh pages for two numbers of each run of
/// 64 elements took a sixth of batch norm's time (build/bin/bandwidth 'batch_norm, training').
class OfRuns {
 public:
  explicit OfRuns(int64_t count) : numbers_(empty_tensor({&count, 1}, DType::float64)) {}
  double* data() const { return elements<double>(numbers_); }
  double& operator[](int64_t i) const { return data()[i]; }
  int64_t size() const { return numbers_.numel(); }

 private:
  Tensor numbers_;
};

/// The variance of no elements is not a number.
double variance_of(const Statistics& s) { return s.squares / s.count; }
double mean_of(const Statistics& s) { return s.count == 0 ? std::numeric_limits<double>::quiet_NaN() : s.mean; }

/// Normalises channels with their own statistics while L2 has them.
void normalize_by_channels(const Runs& runs, int64_t together, const char* from, char* to, DType dtype,
                           const ChannelMaps& maps) {
  const RowKernels& k = row_kernels(dtype);
  const bool non_temporal = rows_bypass_caches(to, runs.batch * runs.channels, runs.bytes);
  by_channels(runs, together, 2, [&](int64_t c, int64_t count, double* means) {
    double* const squares = means + together * std::max<int64_t>(1, runs.batch);
    for (int64_t n = 0; n < runs.batch && runs.inner > 0; ++n)
      k.statistics(from + runs.at(n, c), count, runs.inner, means + n * count, squares + n * count, {});
    // afterwards the lists begin with centers and scales, and the shifts follow the scales
    std::vector<double> shifts(static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      Statistics all;
      for (int64_t n = 0; n < runs.batch && runs.inner > 0; ++n)
        all.add({double(runs.inner), means[n * count + i], squares[n * count + i]});
      const ChannelMaps::Map map = maps.settle(c + i, mean_of(all), variance_of(all));
      means[i] = map.center, squares[i] = map.scale, shifts[size_t(i)] = map.shift;
    }
    for (int64_t n = 0; n < runs.batch; ++n)
      k.affine_rows(from + runs.at(n, c), {0, count, count, runs.inner}, means, squares, shifts.data(),
                    to + runs.at(n, c), non_temporal);
    if (non_temporal) finish_non_temporal();
  });
}

/// Normalises an input of runs.
Tensor normalize_runs(const Tensor& input, const ChannelMaps& maps, bool training) {
  const Tensor x = contiguous_values(input);
  const Runs runs(x);
  Tensor y = empty_tensor(x.sizes(), x.dtype());
  const RowKernels& k = row_kernels(x.dtype());
  const char* const from = x.impl()->data();
  char* const to = y.impl()->data();
  if (const int64_t together = training ? channels_together(runs) : 0) {
    normalize_by_channels(runs, together, from, to, x.dtype(), maps);
    return y;
  }
  const int64_t count = runs.batch * runs.channels, grain = runs_per_task(runs);
  const OfRuns mean(training && runs.inner ? count : 0), squares(mean.size());
  parallel_for(mean.size(), grain, [&](int64_t b, int64_t e) {
    k.statistics(from + b * runs.bytes, e - b, runs.inner, mean.data() + b, squares.data() + b, {});
  });
  OfChannels center(size_t(runs.channels)), scale(center.size()), shift(center.size());
  parallel_for(runs.channels, channels_per_task(runs), [&](int64_t b, int64_t e) {
    const double inner = double(runs.inner);
    for (int64_t n = 1; n < runs.batch && mean.size() > 0; ++n) {  // the first image's numbers become those of all
      const int64_t at = n * runs.channels + b;
      add_statistics(double(n) * inner, &mean[b], &squares[b], inner, &mean[at], &squares[at], e - b);
    }
    for (int64_t c = b; c < e; ++c) {
      double m = value_at(maps.running_mean, c, 0), var = value_at(maps.running_var, c, 1);
      if (training) {
        Statistics all;
        if (mean.size() > 0) all = {double(runs.batch) * inner, mean[c], squares[c]};
        m = mean_of(all), var = variance_of(all);
      }
      const ChannelMaps::Map map = maps.settle(c, m, var);
      center[size_t(c)] = map.center, scale[size_t(c)] = map.scale, shift[size_t(c)] = map.shift;
    }
  });
  if (runs.inner == 0) return y;
  const bool non_temporal = rows_bypass_caches(to, count, runs.bytes);
  backwards(count, grain, [&](int64_t b, int64_t e) {
    k.affine_rows(from + b * runs.bytes, rows_of(runs, b, e), center.data(), scale.data(), shift.data(),
                  to + b * runs.bytes, non_temporal);
    if (non_temporal) finish_non_temporal();
  });
  return y;
}

/// Calls f for every channel; that takes about 20 ns.
template <class F>
void each_channel(int64_t channels, F f) {
  parallel_for(channels, 512, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) f(c);
  });
}

/// Returns images with channels last as pixels. Short runs are one image, as gather_runs makes them.
Pixels pixels_of(const BatchNormShape& shape, DType dtype) {
  if (has_short_runs(shape)) return {1, shape.batch * shape.inner, shape.channels, dtype};
  return {shape.batch, shape.inner, shape.channels, dtype};
}

/// Normalises an input with channels last; so is the result. Its bits are those of normalize_runs.
Tensor normalize_pixels(const Tensor& input, const ChannelMaps& maps, bool training) {
  const Tensor x = dense_image(input, true);
  Tensor y = empty_image(x.sizes(), true, x.dtype());
  const Pixels p = pixels_of(maps.shape, x.dtype());
  const size_t channels = size_t(p.channels);
  const char* const from = x.impl()->data();
  OfChannels m(channels), squares(channels), center(channels), scale(channels), shift(channels);
  if (training && x.numel() > 0) pixel_statistics(p, from, m, squares);
  const double count = x.numel() > 0 ? double(p.batch * p.inner) : 0;
  each_channel(p.channels, [&](int64_t c) {
    const auto i = static_cast<size_t>(c);
    const Statistics all{count, m[i], squares[i]};
    const ChannelMaps::Map map =
        training ? maps.settle(c, mean_of(all), variance_of(all))
                 : maps.settle(c, value_at(maps.running_mean, c, 0), value_at(maps.running_var, c, 1));
    center[i] = map.center, scale[i] = map.scale, shift[i] = map.shift;
  });
  affine_pixels(p, from, center, scale, shift, y.impl()->data());
  return y;
}

TensorTriple batch_norm_kernel(const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                               MaybeTensor running_var, bool training, double momentum, double eps) {
  const BatchNormShape shape = batch_norm_shape(input, weight, bias, running_mean, running_var, training);
  const bool last = suggests_channels_last(input);
  if (!last && has_short_runs(shape)) {
    auto [y, mean, invstd] =
        batch_norm_kernel(gather_runs(input, shape), weight, bias, running_mean, running_var, training, momentum, eps);
    return {scatter_runs(y, input), mean, invstd};
  }
  const DType stats = statistics_dtype(input.dtype());
  Tensor mean = empty_tensor({&shape.channels, 1}, stats), invstd = empty_tensor({&shape.channels, 1}, stats);
  const ChannelMaps maps{shape, weight, bias, running_mean, running_var, momentum, eps, mean, invstd};
  const Tensor y = last ? normalize_pixels(input, maps, training) : normalize_runs(input, maps, training);
  if (shape.update) {
    running_mean->impl()->bump("batch_norm");
    running_var->impl()->bump("batch_norm");
  }
  if (!training) mean = invstd = empty_tensor(Dims{0}, stats);  // as PyTorch has it: none are computed
  return {y, mean, invstd};
}

// With x^ = (x - mean) * invstd and m elements a channel:
//   d bias = sum g,  d weight = sum g x^,
//   dx = weight * invstd * (g - sum(g) / m - x^ * sum(g x^) / m)   in training,  weight * invstd * g  otherwise.
struct ChannelGradient {
  double of_weight, of_bias, scale, slope, offset;  // dx = scale * g + slope * (x - mean) + offset
  ChannelGradient(double sum, double dot, double inv, double weight, double count, bool training)
      : of_weight(count == 0 ? 0 : dot * inv), of_bias(sum), scale(inv * weight), slope(0), offset(0) {
    if (!training) return;
    slope = -scale * dot * inv * inv / count;
    offset = -scale * sum / count;
  }
};

/// The gradient for images with channels last; so is the result.
TensorTriple batch_norm_backward_pixels(const Tensor& grad, const Tensor& input, const Tensor& weight,
                                        const Tensor& mean, const Tensor& invstd, bool training) {
  const BatchNormShape shape(input);
  const Tensor x = dense_image(input, true), g = dense_image(grad.to(input.dtype()), true);
  const Tensor gx = empty_image(x.sizes(), true, x.dtype());
  const Tensor gw = empty_tensor({&shape.channels, 1}, mean.dtype()),
               gb = empty_tensor({&shape.channels, 1}, mean.dtype());
  const Pixels p = pixels_of(shape, x.dtype());
  const size_t channels = size_t(p.channels);
  OfChannels m(channels), sums(channels), dots(channels), none(channels), scale(channels), slope(channels),
      offset(channels);
  for (size_t c = 0; c < channels; ++c) m[c] = value_at(mean, int64_t(c), 0);
  pixel_gradient_sums(p, g.impl()->data(), x.impl()->data(), m, sums, dots);
  each_channel(p.channels, [&](int64_t at) {
    const auto c = static_cast<size_t>(at);
    const ChannelGradient of(sums[c], dots[c], value_at(invstd, at, 1), value_at(weight, at, 1), double(shape.count()),
                             training);
    set_at(gw, at, of.of_weight);
    set_at(gb, at, of.of_bias);
    scale[c] = of.scale, slope[c] = of.slope, offset[c] = of.offset;
  });
  if (training) combine_pixels(p, g.impl()->data(), x.impl()->data(), m, scale, slope, offset, gx.impl()->data());
  else affine_pixels(p, g.impl()->data(), none, scale, offset, gx.impl()->data());  // whatever x is, NaN included
  return {gx, gw, gb};
}

/// The gradient of an activation, taken run by run before that of the normalisation in front of it.
struct ActivationGradient {
  Loop loop;
  const char* used;  // contiguous, of the gradient's dtype
  double params[kMaxParams];
  /// Computes the gradient of n elements that begin `at` bytes from the first.
  void run(const char* g, int64_t at, char* to, int64_t n) const {
    loop({to + at, {g + at, used + at}, {1, 1}, n, params, nullptr});
  }
};

/// The gradient of batch normalisation; `activation`: `grad` is that of its result, and goes through it first.
TensorTriple batch_norm_backward(const Tensor& grad, const Tensor& input, const Tensor& weight, const Tensor& mean,
                                 const Tensor& invstd, bool training, const ActivationGradient* activation) {
  const BatchNormShape shape(input);
  if (suggests_channels_last(input)) return batch_norm_backward_pixels(grad, input, weight, mean, invstd, training);
  if (has_short_runs(shape)) {
    auto [rows, gw, gb] = batch_norm_backward(gather_runs(grad.to(input.dtype()), shape), gather_runs(input, shape),
                                              weight, mean, invstd, training, nullptr);
    return {scatter_runs(rows, input), gw, gb};
  }
  const Tensor x = contiguous_values(input), g = contiguous_values(grad.to(input.dtype()));
  const Runs runs(x);
  const Tensor gx = empty_tensor(x.sizes(), x.dtype());
  const Tensor gw = empty_tensor({&runs.channels, 1}, mean.dtype()),
               gb = empty_tensor({&runs.channels, 1}, mean.dtype());
  const RowKernels& k = row_kernels(x.dtype());
  const char* const xp = x.impl()->data();
  char* const to = gx.impl()->data();
  const char* const gp = activation ? to : g.impl()->data();  // where the sums find the gradient of the result
  const auto take = [&](int64_t at, int64_t n) {
    if (activation) activation->run(g.impl()->data(), at, to, n);
  };
  // where the sums' pass has not written already
  const bool non_temporal = !activation && rows_bypass_caches(to, runs.batch * runs.channels, runs.bytes);
  // The sums of `rows` runs that begin at `at`; each piece that the kernels sum is taken when it is summed.
  const auto sums_of = [&](int64_t at, int64_t rows, const double* means, double* sums, double* dots) {
    if (!activation || runs.inner <= k.chain) {
      take(at, rows * runs.inner);
      k.gradient_sums_rows(gp + at, xp + at, {0, rows, rows, runs.inner}, means, sums, dots);
      return;
    }
    const int64_t item = runs.bytes / runs.inner;
    for (int64_t r = 0; r < rows; ++r) {
      sums[r] = dots[r] = 0;
      for (int64_t i = 0; i < runs.inner; i += k.chain) {
        const int64_t piece = at + r * runs.bytes + i * item, n = std::min(k.chain, runs.inner - i);
        double s, d;
        take(piece, n);
        k.gradient_sums(gp + piece, xp + piece, means[r], n, &s, &d);
        sums[r] += s, dots[r] += d;
      }
    }
  };
  const auto settle = [&](int64_t c, double sum, double dot) {
    const ChannelGradient of(sum, dot, value_at(invstd, c, 1), value_at(weight, c, 1), double(runs.count()), training);
    set_at(gw, c, of.of_weight);
    set_at(gb, c, of.of_bias);
    return of;
  };
  if (const int64_t together = channels_together(runs)) {
    by_channels(runs, together, 6, [&](int64_t c, int64_t channels, double* numbers) {
      const int64_t all = together * std::max<int64_t>(1, runs.batch);
      double *const sums = numbers, *const dots = sums + all, *const means = dots + all, *const scale = means + all,
                    *const slope = scale + all, *const offset = slope + all;
      for (int64_t i = 0; i < channels; ++i) means[i] = value_at(mean, c + i, 0);
      for (int64_t n = 0; n < runs.batch; ++n)
        sums_of(runs.at(n, c), channels, means, sums + n * channels, dots + n * channels);
      for (int64_t i = 0; i < channels; ++i) {
        double sum = 0, dot = 0;
        for (int64_t n = 0; n < runs.batch; ++n) sum += sums[n * channels + i], dot += dots[n * channels + i];
        const ChannelGradient of = settle(c + i, sum, dot);
        scale[i] = of.scale, slope[i] = of.slope, offset[i] = of.offset;
      }
      std::fill_n(sums, channels, 0.0);
      const ChannelRows rows{0, channels, channels, runs.inner};
      for (int64_t n = 0; n < runs.batch; ++n) {
        const int64_t at = runs.at(n, c);
        if (training) k.combine_rows(gp + at, xp + at, rows, means, scale, slope, offset, to + at, non_temporal);
        else k.affine_rows(gp + at, rows, sums, scale, offset, to + at, non_temporal);  // whatever x is, NaN included
      }
      if (non_temporal) finish_non_temporal();
    });
    return {gx, gw, gb};
  }
  const int64_t count = runs.batch * runs.channels, grain = runs_per_task(runs);
  OfChannels means(size_t(runs.channels)), none(means.size()), scale(means.size()), slope(means.size()),
      offset(means.size());
  for (size_t c = 0; c < means.size(); ++c) means[c] = value_at(mean, int64_t(c), 0);
  const OfRuns sums(count), dots(count);
  parallel_for(count, grain, [&](int64_t b, int64_t e) {
    take(b * runs.bytes, (e - b) * runs.inner);
    k.gradient_sums_rows(gp + b * runs.bytes, xp + b * runs.bytes, rows_of(runs, b, e), means.data(), sums.data() + b,
                         dots.data() + b);
  });
  parallel_for(runs.channels, channels_per_task(runs), [&](int64_t b, int64_t e) {
    OfChannels sum(size_t(e - b)), dot(sum.size());
    for (int64_t r = b; r < count; r += runs.channels) {
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += sums[r + int64_t(i)], dot[i] += dots[r + int64_t(i)];
    }
    for (auto c = size_t(b); c < size_t(e); ++c) {
      const ChannelGradient of = settle(int64_t(c), sum[c - size_t(b)], dot[c - size_t(b)]);
      scale[c] = of.scale, slope[c] = of.slope, offset[c] = of.offset;
    }
  });
  backwards(count, grain, [&](int64_t b, int64_t e) {
    const ChannelRows rows = rows_of(runs, b, e);
    const char *const gr = gp + b * runs.bytes, *const xr = xp + b * runs.bytes;
    if (training)
      k.combine_rows(gr, xr, rows, means.data(), scale.data(), slope.data(), offset.data(), to + b * runs.bytes,
                     non_temporal);
    else
      k.affine_rows(gr, rows, none.data(), scale.data(), offset.data(), to + b * runs.bytes,
                    non_temporal);  // whatever x is, NaN included
    if (non_temporal) finish_non_temporal();
  });
  return {gx, gw, gb};
}

TensorTriple batch_norm_backward_kernel(const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                        const Tensor& invstd, bool training) {
  return batch_norm_backward(grad, input, weight, mean, invstd, training, nullptr);
}

TensorTriple batch_norm_activation_backward_kernel(const Tensor& grad, const Tensor& used, int64_t number, double alpha,
                                                   double beta, const Tensor& input, MaybeTensor weight,
                                                   const Tensor& mean, const Tensor& invstd, bool training) {
  const PointwiseInfo& info = activation_of_number(number);
  const auto loop = reinterpret_cast<Loop>(info.kernels[int(DeviceType::cpu)][1][int(input.dtype())]);
  const auto plain = [&](const Tensor& t) {
    return t.dtype() == input.dtype() && t.is_contiguous() && std::ranges::equal(t.sizes(), input.sizes());
  };
  const ActivationGradient activation{loop, used.impl()->data(), {alpha, beta}};
  if (loop && plain(grad) && plain(used) && !suggests_channels_last(input) && !has_short_runs(BatchNormShape(input)))
    return batch_norm_backward(grad, input, weight, mean, invstd, training, &activation);
  const Tensor* operands[] = {&grad, &used};
  const Tensor g = pointwise_backward(info, 0, operands, 2, activation.params);
  return batch_norm_backward(g, input, weight, mean, invstd, training, nullptr);
}

constexpr int64_t kMostRows = 16;  // whose statistics are computed together

/// The rows of layer normalisation: the last dimensions of an input, contiguous.
struct LayerNormRows {
  Tensor x, weight, bias;  // weight and bias of the dtype of statistics, or undefined
  int64_t n, count, bytes;
  Dims statistics;
  LayerNormRows(const char* op, const Tensor& input, IntSpan shape, const Tensor& w, const Tensor& b)
      : x(contiguous_values(input)), n(check_row_norm(op, input, shape, w, b)), statistics(input.sizes()) {
    count = n == 0 ? 0 : x.numel() / n;
    bytes = n * itemsize(x.dtype());
    const DType wide = statistics_dtype(x.dtype());
    if (w.defined()) weight = contiguous_values(w.to(wide));
    if (b.defined()) bias = contiguous_values(b.to(wide));
    std::fill(statistics.end() - std::ptrdiff_t(shape.size()), statistics.end(), 1);
  }
  int64_t grain() const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1)); }
  /// Returns how many rows the first cache holds from one pass to the next.
  int64_t rows_in_cache() const { return std::clamp<int64_t>(12288 / std::max<int64_t>(bytes, 1), 1, kMostRows); }
};

const char* data_of(const Tensor& t) { return t.defined() ? t.impl()->data() : nullptr; }

TensorTriple layer_norm_kernel(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeTensor bias,
                               double eps) {
  const LayerNormRows rows("layer_norm", input, normalized_shape, weight, bias);
  const DType wide = statistics_dtype(input.dtype());
  const Tensor y = empty_tensor(input.sizes(), input.dtype());
  const Tensor mean = empty_tensor({&rows.count, 1}, wide), rstd = empty_tensor({&rows.count, 1}, wide);
  const RowKernels& k = row_kernels(input.dtype());
  const int64_t block = rows.rows_in_cache();
  const bool non_temporal = rows_bypass_caches(y.impl()->data(), rows.count, rows.bytes);
  parallel_for(rows.count, rows.grain(), [&](int64_t b, int64_t e) {
    double means[kMostRows], squares[kMostRows];
    for (int64_t i = b; i < e; ++i) {
      const int64_t at = (i - b) % block;
      const char* const x = rows.x.impl()->data() + i * rows.bytes;
      char* const to = y.impl()->data() + i * rows.bytes;
      if (at == 0)
        k.statistics(x, std::min(block, e - i), rows.n, means, squares,
                     {block * rows.bytes, non_temporal ? 0 : to - x});
      const double scale = 1 / std::sqrt(squares[at] / double(rows.n) + eps);
      set_at(mean, i, means[at]);
      set_at(rstd, i, scale);
      k.normalize(x, means[at], scale, data_of(rows.weight), data_of(rows.bias), to, rows.n, non_temporal);
    }
    if (non_temporal) finish_non_temporal();
  });
  if (rows.count == 0) return {y, zeros(rows.statistics, wide), zeros(rows.statistics, wide)};
  return {y, view(mean, rows.statistics), view(rstd, rows.statistics)};
}

double statistic(const Tensor& t, int64_t i) {
  return visit<kFloats>(t.dtype(), [&]<class T>() { return double(elements<T>(t)[i]); });
}

// With x^ = (x - mean) * rstd, h = g * weight and n elements a row:
//   dx = rstd * (h - sum(h) / n - x^ * sum(h x^) / n),  d weight = sum over rows of g x^,  d bias = sum over rows of g.
// Sums over rows are of pieces of a fixed number of rows, added in order: the same bits for any number of threads.
// An undefined mean is 0.
TensorTriple row_gradients(const LayerNormRows& rows, const Tensor& grad, const Tensor& input, IntSpan normalized_shape,
                           const Tensor& mean, const Tensor& rstd) {
  const Tensor g = contiguous_values(grad.to(input.dtype())), scales = contiguous_values(rstd);
  const Tensor means = mean.defined() ? contiguous_values(mean) : mean;
  const Tensor gx = empty_tensor(input.sizes(), input.dtype());
  const int64_t n = rows.n, piece = std::max<int64_t>(32, (rows.count + 255) / 256),
                pieces = (rows.count + piece - 1) / piece, item = itemsize(rstd.dtype());
  const Tensor parts = zeros({std::max<int64_t>(pieces, 1), 2, n}, rstd.dtype());
  const RowKernels& k = row_kernels(input.dtype());
  parallel_for(pieces, std::max<int64_t>(1, 16384 / std::max<int64_t>(n * piece, 1)), [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      char* const sums = parts.impl()->data() + p * 2 * n * item;
      for (int64_t i = p * piece; i < std::min(rows.count, (p + 1) * piece); ++i) {
        const char *const x = rows.x.impl()->data() + i * rows.bytes, *const gi = g.impl()->data() + i * rows.bytes;
        const double m = means.defined() ? statistic(means, i) : 0, r = statistic(scales, i);
        double sum, dot;
        k.normalize_sums(gi, x, m, r, data_of(rows.weight), sums, sums + n * item, n, &sum, &dot);
        k.normalize_backward(gi, x, m, r, data_of(rows.weight), means.defined() ? sum / double(n) : 0,
                             dot * r * r / double(n), gx.impl()->data() + i * rows.bytes, n);
      }
    }
  });
  const Tensor total = reshape(sum(parts, IntList(0)), {2, -1});
  Dims shape(normalized_shape);
  return {gx, view(select(total, 0, 0), shape), view(select(total, 0, 1), shape)};
}

TensorTriple layer_norm_backward_kernel(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                        MaybeTensor weight, const Tensor& mean, const Tensor& rstd) {
  const LayerNormRows rows("layer_norm", input, normalized_shape, weight, {});
  return row_gradients(rows, grad, input, normalized_shape, mean, rstd);
}

/// Divides rows by their root mean square: layer normalisation around 0.
TensorPair rms_norm_kernel(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeDouble eps) {
  const LayerNormRows rows("rms_norm", input, normalized_shape, weight, {});
  const DType wide = statistics_dtype(input.dtype());
  const Tensor y = empty_tensor(input.sizes(), input.dtype());
  const Tensor rstd = empty_tensor({&rows.count, 1}, wide);
  const RowKernels& k = row_kernels(input.dtype());
  const bool non_temporal = rows_bypass_caches(y.impl()->data(), rows.count, rows.bytes);
  const double small = eps ? *eps : rms_norm_eps(input.dtype());
  parallel_for(rows.count, rows.grain(), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const char* const x = rows.x.impl()->data() + i * rows.bytes;
      double sum, squares;
      k.moments(x, rows.n, 0, &sum, &squares);
      const double scale = 1 / std::sqrt(squares / double(rows.n) + small);
      set_at(rstd, i, scale);
      k.normalize(x, 0, scale, data_of(rows.weight), nullptr, y.impl()->data() + i * rows.bytes, rows.n, non_temporal);
    }
    if (non_temporal) finish_non_temporal();
  });
  return {y, rows.count == 0 ? zeros(rows.statistics, wide) : view(rstd, rows.statistics)};
}

// Layer normalisation's gradient around 0: dx = rstd * (h - x^ * sum(h x^) / n).
TensorPair rms_norm_backward_kernel(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                    MaybeTensor weight, const Tensor& rstd) {
  const LayerNormRows rows("rms_norm", input, normalized_shape, weight, {});
  auto [gx, gw, gb] = row_gradients(rows, grad, input, normalized_shape, {}, rstd);
  return {gx, gw};
}

/// Group normalisation of a contiguous input: its rows are those of layer normalisation, but weight and bias belong to
/// channels, which are runs of a row. Short runs see them repeated for every element.
struct GroupRows : GroupNormShape {
  Tensor x, weight, bias;  // [channels], or [channels * inner] where runs are short; undefined where not given
  bool is_short;
  int64_t item, stats_item;
  GroupRows(const Tensor& input, const Tensor& w, const Tensor& b, const GroupNormShape& shape)
      : GroupNormShape(shape),
        x(contiguous_values(input)),
        is_short(inner < kShortRun),
        item(itemsize(x.dtype())),
        stats_item(itemsize(statistics_dtype(x.dtype()))) {
    weight = of_elements(w), bias = of_elements(b);
  }
  Tensor of_elements(const Tensor& t) const {
    if (!t.defined()) return t;
    const Tensor wide = contiguous_values(t.to(statistics_dtype(x.dtype())));
    return is_short ? contiguous_values(expand(view(wide, {channels, 1}), {channels, inner})) : wide;
  }
  /// Returns where the weights of a row of short runs begin.
  const char* at(const Tensor& t, int64_t i) const {
    return t.defined() ? t.impl()->data() + i % groups * row() * stats_item : nullptr;
  }
  int64_t grain(int64_t elements) const { return std::max<int64_t>(1, 16384 / std::max<int64_t>(elements, 1)); }
};

TensorTriple group_norm_kernel(const Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t N, int64_t C,
                               int64_t HxW, int64_t group, double eps) {
  constexpr const char* op = "native_group_norm";
  const GroupRows rows(input, weight, bias, GroupNormShape(op, input, weight, bias, N, C, HxW, group));
  const DType wide = statistics_dtype(input.dtype());
  const Tensor y = empty_tensor(input.sizes(), input.dtype());
  const Tensor mean = empty_tensor(Dims{N, group}, wide), rstd = empty_tensor(Dims{N, group}, wide);
  const Tensor means = view(mean, {-1}), scales = view(rstd, {-1});
  const RowKernels& k = row_kernels(input.dtype());
  const int64_t n = rows.row();
  parallel_for(rows.rows(), rows.grain(n), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const char* const x = rows.x.impl()->data() + i * n * rows.item;
      char* const to = y.impl()->data() + i * n * rows.item;
      double m, squares;
      k.statistics(x, 1, n, &m, &squares, {n * rows.item, to - x});
      const double scale = 1 / std::sqrt(squares / double(n) + eps);
      set_at(means, i, m);
      set_at(scales, i, scale);
      if (rows.is_short) {
        k.normalize(x, m, scale, rows.at(rows.weight, i), rows.at(rows.bias, i), to, n, false);
        continue;
      }
      for (int64_t d = 0; d < rows.depth; ++d) {
        const int64_t c = i % group * rows.depth + d, run = d * HxW * rows.item;
        const double slope = scale * value_at(rows.weight, c, 1), center = center_of(m, wide);
        const double rest = std::isfinite(center) ? (m - center) * slope : 0;
        k.affine(x + run, center, slope, value_at(rows.bias, c, 0) - rest, to + run, HxW);
      }
    }
  });
  return {suggests_channels_last(input) ? to_channels_last(y) : y, mean, rstd};
}

// The gradient of layer normalisation over the rows, h = g * weight. The sums over a channel are of one image each, and
// added up in order: the same bits for any number of threads.
TensorTriple group_norm_backward_kernel(const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                        const Tensor& rstd, int64_t N, int64_t C, int64_t HxW, int64_t group) {
  constexpr const char* op = "_group_norm_backward";
  const GroupRows rows(input, weight, {}, GroupNormShape(op, input, weight, {}, N, C, HxW, group));
  const Tensor g = contiguous_values(grad.to(input.dtype())), means = contiguous_values(mean),
               scales = contiguous_values(rstd);
  const Tensor gx = empty_tensor(input.sizes(), input.dtype());
  const int64_t n = rows.row(), width = rows.is_short ? C * HxW : C;
  const Tensor parts = zeros({2, std::max<int64_t>(N, 1), width}, mean.dtype());
  const RowKernels& k = row_kernels(input.dtype());
  char *const of_weight = parts.impl()->data(), *const of_bias = of_weight + N * width * rows.stats_item;
  const Tensor flat = view(parts, {-1});
  parallel_for(rows.rows(), rows.grain(n), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const char *const x = rows.x.impl()->data() + i * n * rows.item, *const gi = g.impl()->data() + i * n * rows.item;
      char* const to = gx.impl()->data() + i * n * rows.item;
      const double m = statistic(means, i), r = statistic(scales, i), count = double(n);
      double sum = 0, dot = 0, s, d;
      if (rows.is_short) {
        const int64_t at = i * n * rows.stats_item;  // row i is a part of image i / groups: the same order
        k.normalize_sums(gi, x, m, r, rows.at(rows.weight, i), of_weight + at, of_bias + at, n, &sum, &dot);
        k.normalize_backward(gi, x, m, r, rows.at(rows.weight, i), sum / count, dot * r * r / count, to, n);
        continue;
      }
      for (int64_t c = 0; c < rows.depth; ++c) {
        const int64_t run = c * HxW * rows.item;
        k.gradient_sums(gi + run, x + run, m, HxW, &s, &d);
        set_at(flat, i * rows.depth + c, d * r);
        set_at(flat, (N * C) + i * rows.depth + c, s);
        const double w = value_at(rows.weight, i % group * rows.depth + c, 1);
        sum += w * s, dot += w * d;
      }
      const double slope = -r * r * r * dot / count, offset = -r * sum / count;
      for (int64_t c = 0; c < rows.depth; ++c) {
        const int64_t run = c * HxW * rows.item;
        const double w = value_at(rows.weight, i % group * rows.depth + c, 1);
        k.combine(gi + run, x + run, m, r * w, slope, offset, to + run, HxW);
      }
    }
  });
  Tensor total = sum(parts, IntList(1));
  if (rows.is_short) total = sum(view(total, {2, C, HxW}), IntList(2));
  return {suggests_channels_last(input) ? to_channels_last(gx) : gx, select(total, 0, 0), select(total, 0, 1)};
}

}  // namespace

void register_norm() {
  ops::_fused_rms_norm.set_kernel(DeviceType::cpu, rms_norm_kernel);
  ops::_rms_norm_backward.set_kernel(DeviceType::cpu, rms_norm_backward_kernel);
  ops::native_group_norm.set_kernel(DeviceType::cpu, group_norm_kernel);
  ops::_group_norm_backward.set_kernel(DeviceType::cpu, group_norm_backward_kernel);
  ops::native_layer_norm.set_kernel(DeviceType::cpu, layer_norm_kernel);
  ops::_layer_norm_backward.set_kernel(DeviceType::cpu, layer_norm_backward_kernel);
  ops::native_batch_norm.set_kernel(DeviceType::cpu, batch_norm_kernel);
  ops::_batch_norm_backward.set_kernel(DeviceType::cpu, batch_norm_backward_kernel);
  ops::_batch_norm_activation_backward.set_kernel(DeviceType::cpu, batch_norm_activation_backward_kernel);
}

}  // namespace vesta::cpu
