// Normalisation that is made of other ops: their gradients come from those.
#include <algorithm>
#include <tuple>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

Tensor batch_norm_composite(const Tensor& input, MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor weight,
                            MaybeTensor bias, bool training, double momentum, double eps) {
  VESTA_CHECK(training ? eps > 0 : eps >= 0, value, "batch_norm: expected a positive eps",
              training ? " in training" : " or 0", ", got ", eps, " (eps).");
  if (input.dim() == 1 && input.numel() == 0) return clone(input);  // no channels, as PyTorch lets it pass
  const auto requires_grad = [](const Tensor& t) { return t.defined() && t.requires_grad(); };
  if (!training && running_mean.defined() && running_var.defined() && layer_state.grad_enabled &&
      (input.requires_grad() || requires_grad(*weight) || requires_grad(*bias))) {
    return named_step(std::get<0>(_batch_norm_evaluation(input, weight, bias, *running_mean, *running_var, eps)),
                      "NativeBatchNormBackward0");
  }
  return std::get<0>(native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

TensorTriple _batch_norm_evaluation_composite(const Tensor& input, MaybeTensor weight, MaybeTensor bias,
                                              const Tensor& running_mean, const Tensor& running_var, double eps) {
  const Tensor y = std::get<0>(native_batch_norm(input, weight, bias, running_mean, running_var, false, 0, eps));
  const DType stats = statistics_dtype(input.dtype());
  const Tensor deviation = rsqrt(add(running_var.to(DType::float64), eps));
  return {y, clone(running_mean).to(stats), deviation.to(stats)};  // copies: training may write the running ones
}

namespace {

/// Brings each row of x [rows, n] to mean 0 and variance 1; returns the rows [1, rows, n], their means and the
/// reciprocals of their deviations [rows]. Rows are the channels of one image: batch normalisation in training is what
/// they need. It computes x * scale + shift, which loses the digits of a large mean, so that the mean goes first; being
/// a constant, it has no part in gradients.
TensorTriple normalized_rows(const Tensor& x, int64_t n, double eps) {
  Tensor rows = reshape(x, {1, x.numel() / n, n});
  const Tensor center = mean(rows.detach(), 2, true), means = reshape(center, {-1});
  rows = sub(rows, center);
  if (n == 1) return {mul(rows, wrapped(0.0)), means, rsqrt(add(mul(means, wrapped(0.0)), wrapped(eps)))};
  auto [y, rest, invstd] = native_batch_norm(rows, {}, {}, {}, {}, true, 0, eps);
  return {y, add(means, rest), invstd};
}

/// Returns [C] as [C, 1, ...], for an input [N, C, *].
Tensor channel_column(const Tensor& t, const Tensor& input) {
  Dims column(size_t(input.dim() - 1), 1);
  column[0] = input.size(1);
  return reshape(t, column);
}

/// Scales and shifts the channels of x, computed in its dtype.
Tensor scaled_channels(Tensor x, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) x = mul(x, channel_column(weight.to(x.dtype()), x));
  if (bias.defined()) x = add(x, channel_column(bias.to(x.dtype()), x));
  return x;
}

void check_channels(const Tensor& t, int64_t channels, const char* op, const char* which) {
  VESTA_CHECK(!t.defined() || (t.dim() == 1 && t.size(0) == channels), runtime, op, ": Expected ", which, " to be a ",
              "vector of size equal to the number of channels in input, ", channels, ", but got ",
              t.defined() ? t.sizes() : IntSpan(), ".");
}

}  // namespace

Tensor layer_norm_composite(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeTensor bias,
                            double eps) {
  return std::get<0>(native_layer_norm(input, normalized_shape, weight, bias, eps));
}

TensorTriple native_layer_norm_composite(const Tensor& input, IntList normalized_shape, MaybeTensor weight,
                                         MaybeTensor bias, double eps) {
  const int64_t n = check_row_norm("layer_norm", input, normalized_shape, weight, bias);
  const DType wide = compute_type(input.dtype());
  Dims statistics(input.sizes());
  std::fill(statistics.end() - std::ptrdiff_t(normalized_shape.size()), statistics.end(), 1);
  Tensor r = input.to(wide), means, invstd;
  if (input.numel() > 0) {
    std::tie(r, means, invstd) = normalized_rows(r, n, eps);
    r = reshape(r, input.sizes()), means = reshape(means, statistics), invstd = reshape(invstd, statistics);
  } else {
    means = zeros(statistics, wide, input.device()), invstd = zeros_like(means);
  }
  if (weight.defined()) r = mul(r, weight->to(wide));
  if (bias.defined()) r = add(r, bias->to(wide));
  return {r.to(input.dtype()), means, invstd};
}

/// The statistics are functions of the input, so they are computed anew; eps is what the given rstd has beyond the
/// variance.
TensorTriple _layer_norm_backward_composite(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                            MaybeTensor weight, const Tensor& mean, const Tensor& rstd) {
  Dims lead, last;
  for (int64_t d = 0; d < input.dim(); ++d) {
    (d < input.dim() - int64_t(normalized_shape.size()) ? lead : last).push_back(d);
  }
  const auto total = [&](const Tensor& t) { return lead.empty() ? t : sum(t, MaybeDims(IntSpan(lead))); };
  const auto average = [&](const Tensor& t) { return vesta::mean(t, MaybeDims(IntSpan(last)), true); };
  const Tensor x = input.to(mean.dtype()), g = grad.to(mean.dtype()), deviation = sub(x, average(x));
  const Tensor variance = average(square(deviation));
  const Tensor eps = sub(reciprocal(square(rstd)), variance).detach();
  const Tensor scale = rsqrt(add(variance, eps)), normal = mul(deviation, scale);
  const Tensor slope = weight.defined() ? mul(g, weight->to(mean.dtype())) : g;
  const Tensor of_input = mul(sub(sub(slope, average(slope)), mul(normal, average(mul(slope, normal)))), scale);
  return {of_input.to(input.dtype()), total(mul(g, normal)), total(g)};
}

TensorPair _unit_vectors_composite(const Tensor& input, int64_t dim, double eps, bool) {
  const Tensor size = norm(input, 2, MaybeDims(dim), true, statistics_dtype(input.dtype()));
  return {div(input, clamp_min(size, wrapped(eps))).to(input.dtype()), size};
}

/// Of x / r with r = max(|x|, eps): (g - (g . x / r) x / |x|) / r, without the second term where r is constant. Where
/// the gradient is recorded, the size is computed anew from the input.
Tensor _unit_vectors_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& size, int64_t dim,
                                        double eps, bool raises_value) {
  const DType wide = statistics_dtype(input.dtype());
  const bool recorded = layer_state.grad_enabled && input.requires_grad();
  const Tensor length = recorded ? norm(input, 2, MaybeDims(dim), true, wide) : size.to(wide);
  Tensor raised = clamp_min(length, wrapped(eps));
  if (recorded && raises_value) {
    const Tensor missing = where(lt(length, eps), sub(raised, length), wrapped(0.0));  // inf - inf is no number
    raised = add(length, missing.detach());
  }
  const Tensor x = input.to(wide), g = grad.to(wide);
  const Tensor along = div(sum(mul(g, x), MaybeDims(dim), true), raised);
  const Tensor counts = gt(length, raises_value ? 0.0 : eps);  // at eps the gradient is that of clamp_min
  const Tensor part = where(counts, div(along, where(counts, length, wrapped(1.0))), wrapped(0.0));
  return div(sub(g, mul(part, x)), raised).to(input.dtype());
}

Tensor normalize_composite(const Tensor& input, double p, IntList dim, double eps) {
  VESTA_CHECK(is_differentiable(input.dtype()), not_implemented,
              "normalize: expected a floating-point or complex dtype, got ", input.dtype(), " (input).");
  if (p == 2 && dim.size() == 1 && is_float(input.dtype()) && input.dim() > 0) {
    return named_step(std::get<0>(_unit_vectors(input, dim[0], eps, false)), "DivBackward0");
  }
  return div(input, clamp_min(norm(input, p, MaybeDims(IntSpan(dim)), true), wrapped(eps)));
}

namespace {

/// Returns the last dimensions, as many as normalized_shape has, and with `leading` the others.
Dims dims_of_rows(const Tensor& input, IntSpan normalized_shape, bool leading) {
  Dims dims;
  const int64_t lead = input.dim() - int64_t(normalized_shape.size());
  for (int64_t d = leading ? 0 : lead; d < (leading ? lead : input.dim()); ++d) dims.push_back(d);
  return dims;
}

/// Divides rows by the root of the mean of their squares (Zhang and Sennrich 2019).
TensorPair rms_norm_of_parts(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeDouble eps) {
  const auto checked = [](const Tensor& t) { return t.is_complex() ? real(t) : t; };
  check_row_norm("rms_norm", checked(input), normalized_shape, weight.defined() ? checked(*weight) : Tensor(), {});
  const DType wide = compute_type(input.dtype());
  const double small = eps ? *eps : rms_norm_eps(is_complex(wide) ? real_type(wide) : wide);
  const Tensor x = input.to(wide);
  const Tensor scale = rsqrt(add(mean(square(x), dims_of_rows(input, normalized_shape, false), true), small));
  Tensor r = mul(x, scale);
  if (weight.defined()) r = mul(r, weight->to(wide));
  return {r.to(input.dtype()), scale};
}

}  // namespace

Tensor rms_norm_composite(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeDouble eps) {
  if (input.is_complex()) return std::get<0>(rms_norm_of_parts(input, normalized_shape, weight, eps));
  const Tensor r = std::get<0>(_fused_rms_norm(input, normalized_shape, weight, eps));
  return suggests_channels_last(input) ? to_channels_last(r) : r;  // as in PyTorch
}

TensorPair _fused_rms_norm_composite(const Tensor& input, IntList normalized_shape, MaybeTensor weight,
                                     MaybeDouble eps) {
  return rms_norm_of_parts(input, normalized_shape, weight, eps);
}

/// The root mean square is a function of the input, so it is computed anew, as in _layer_norm_backward_composite.
TensorPair _rms_norm_backward_composite(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                        MaybeTensor weight, const Tensor& rstd) {
  const Dims last = dims_of_rows(input, normalized_shape, false), lead = dims_of_rows(input, normalized_shape, true);
  const auto average = [&](const Tensor& t) { return vesta::mean(t, MaybeDims(IntSpan(last)), true); };
  const Tensor x = input.to(rstd.dtype()), g = grad.to(rstd.dtype()), squares = average(square(x));
  const Tensor scale = rsqrt(add(squares, sub(reciprocal(square(rstd)), squares).detach())), normal = mul(x, scale);
  const Tensor slope = weight.defined() ? mul(g, weight->to(rstd.dtype())) : g, product = mul(g, normal);
  return {mul(sub(slope, mul(normal, average(mul(slope, normal)))), scale).to(input.dtype()),
          lead.empty() ? product : sum(product, MaybeDims(IntSpan(lead)))};
}

Tensor group_norm_composite(const Tensor& input, int64_t num_groups, MaybeTensor weight, MaybeTensor bias, double eps,
                            bool) {
  constexpr const char* op = "group_norm";
  check_floating(input, op);
  VESTA_CHECK(input.dim() >= 2, runtime, op, ": Expected at least 2 dimensions for input tensor but received ",
              input.sizes(), ".");
  const int64_t channels = input.size(1);
  VESTA_CHECK(num_groups > 0 && channels % num_groups == 0, runtime, op,
              ": Expected number of channels in input to be divisible by num_groups, but got input of shape ",
              input.sizes(), " and num_groups=", num_groups, ".");
  VESTA_CHECK(channels > 0, runtime, op, ": Expected number of channels to be greater than 0, got ", channels, ".");
  const int64_t inner = numel_of(input.sizes().subspan(2), op);
  VESTA_CHECK(inner > 0, runtime, op, ": Expected HxW to be greater than 0, got input ", input.sizes(), ".");
  check_channels(weight, channels, op, "weight");
  check_channels(bias, channels, op, "bias");
  return std::get<0>(native_group_norm(input, weight, bias, input.size(0), channels, inner, num_groups, eps));
}

TensorTriple native_group_norm_composite(const Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t N,
                                         int64_t C, int64_t HxW, int64_t group, double eps) {
  const GroupNormShape shape("native_group_norm", input, weight, bias, N, C, HxW, group);
  const DType wide = compute_type(input.dtype());
  Tensor r = input.to(wide), means = zeros(Dims{N, group}, wide, input.device()), invstd = means;
  if (input.numel() > 0) {
    std::tie(r, means, invstd) = normalized_rows(r, shape.row(), eps);
    means = reshape(means, {N, group}), invstd = reshape(invstd, {N, group});
  }
  r = scaled_channels(reshape(r, {N, C, HxW}), weight, bias);
  r = reshape(r, input.sizes()).to(input.dtype());
  return {suggests_channels_last(input) ? to_channels_last(r) : r, means, invstd};
}

/// The same in terms of ops, over [N, group, channels of a group, HxW].
TensorTriple _group_norm_backward_composite(const Tensor& grad, const Tensor& input, MaybeTensor weight,
                                            const Tensor& mean, const Tensor& rstd, int64_t N, int64_t C, int64_t HxW,
                                            int64_t group) {
  const Dims four{N, group, C / group, HxW}, row{2, 3}, others{0, 3};
  const auto average = [&](const Tensor& t) { return vesta::mean(t, MaybeDims(IntSpan(row)), true); };
  const auto total = [&](const Tensor& t) { return reshape(sum(t, MaybeDims(IntSpan(others))), {C}); };
  const Tensor x = reshape(input.to(mean.dtype()), four), g = reshape(grad.to(mean.dtype()), four);
  const Tensor deviation = sub(x, average(x)), variance = average(square(deviation));
  const Tensor eps = sub(reciprocal(square(reshape(rstd, {N, group, 1, 1}))), variance).detach();
  const Tensor scale = rsqrt(add(variance, eps)), normal = mul(deviation, scale);
  const Tensor slope = weight.defined() ? mul(g, reshape(weight->to(mean.dtype()), {1, group, C / group, 1})) : g;
  const Tensor of_input = mul(sub(sub(slope, average(slope)), mul(normal, average(mul(slope, normal)))), scale);
  return {reshape(of_input, input.sizes()).to(input.dtype()), total(mul(g, normal)), total(g)};
}

Tensor instance_norm_composite(const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                               MaybeTensor running_var, bool use_input_stats, double momentum, double eps, bool) {
  constexpr const char* op = "instance_norm";
  check_floating(input, op);
  VESTA_CHECK(input.dim() >= 2, runtime, op, ": expected an input [N, C, *], got ", input.sizes(), ".");
  VESTA_CHECK(use_input_stats || (running_mean.defined() && running_var.defined()), runtime, op,
              ": Expected running_mean and running_var to be defined when use_input_stats is false.");
  const int64_t channels = input.size(1);
  check_channels(weight, channels, op, "weight");
  check_channels(bias, channels, op, "bias");
  check_channels(running_mean, channels, op, "running_mean");
  check_channels(running_var, channels, op, "running_var");
  if (!use_input_stats) {
    return batch_norm(input, running_mean, running_var, weight, bias, false, momentum, eps);
  }
  if (input.numel() == 0) {
    return scaled_channels(input.to(compute_type(input.dtype())), weight, bias).to(input.dtype());
  }
  const int64_t n = input.numel() / (input.size(0) * channels);
  if (running_mean.defined() || running_var.defined()) {  // of each image, averaged over the batch
    NoGrad off;
    const Tensor rows = reshape(input.to(compute_type(input.dtype())), {input.size(0), channels, n});
    auto blend = [&](const MaybeTensor& running, const Tensor& now) {
      if (!running.defined()) return;
      copy_(*running, add(mul(*running, 1 - momentum), mul(mean(now, 0).to(running->dtype()), momentum)));
    };
    blend(running_mean, mean(rows, 2));
    blend(running_var, var(rows, 2));
  }
  // PyTorch's result lies row by row, in whatever layout the input has.
  return std::get<0>(native_group_norm(to_rows(input), weight, bias, input.size(0), channels, n, channels, eps));
}

}  // namespace vesta
