// Losses that are made of other ops: their gradients come from those.
#include <algorithm>
#include <limits>
#include <numbers>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/loss_terms.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

enum class Reduce { none, mean, sum };

Reduce reduction_of(Text t, const char* op) {
  if (t == "none") return Reduce::none;
  if (t == "mean") return Reduce::mean;
  VESTA_CHECK(t == "sum", value, op, ": expected reduction 'none', 'mean' or 'sum', got '", t, "'.");
  return Reduce::sum;
}

Tensor reduced(const Tensor& loss, Reduce r) {
  return r == Reduce::none ? loss : r == Reduce::mean ? mean(loss) : sum(loss);
}

/// Calls the op of a term.
Tensor term_of_loss(const Tensor& input, const Tensor& target, LossTerm term, double first, double second) {
  switch (term) {
    case LossTerm::squared_difference: return _squared_difference(input, target);
    case LossTerm::absolute_difference: return _absolute_difference(input, target);
    case LossTerm::huber_difference: return _huber_difference(input, target, first, second);
    case LossTerm::binary_cross_entropy: return _binary_cross_entropy(input, target);
    case LossTerm::binary_cross_entropy_of_score: return _binary_cross_entropy_of_score(input, target);
    case LossTerm::divergence: return _divergence(input, target);
    case LossTerm::log_divergence: return _log_divergence(input, target);
    case LossTerm::soft_margin: return _soft_margin(input, target);
    case LossTerm::exp_difference: return _exp_difference(input, target);
    case LossTerm::margin_difference: return _margin_difference(input, target, first);
  }
  VESTA_ASSERT(false);
  return {};
}

/// Returns a loss as it is asked for: its terms, their sum or their mean.
Tensor loss_of_terms(const Tensor& input, const Tensor& target, LossTerm term, Reduce r, double first = 0,
                     double second = 0) {
  if (r != Reduce::none && ops::_loss_sum.is_fused_on(input.device().type()) && target.device() == input.device() &&
      is_float(input.dtype()) && target.dtype() == input.dtype() && std::ranges::equal(input.sizes(), target.sizes())) {
    return _loss_sum(input, target, int64_t(term), first, second, r == Reduce::mean ? double(input.numel()) : -1.0);
  }
  return reduced(term_of_loss(input, target, term, first, second), r);
}

/// Brings [C] to rows [1, C], [N, C, d1, ...] to columns [N, C, M], and class numbers to [N] or [N, M].
struct ClassRows {
  Tensor input, target;
  Dims shape;  // of the losses
  ClassRows(const Tensor& x, const Tensor& t, const char* op) : input(x), target(t), shape(t.sizes()) {
    VESTA_CHECK(x.dim() >= 1, value, op, ": expected an input of at least 1 dimension, got a 0-d tensor.");
    if (x.dim() == 1) {
      VESTA_CHECK(t.dim() <= 1 && t.numel() == 1, value, op, ": expected a target of one element for input ", x.sizes(),
                  ", got ", t.sizes(), ".");
      input = unsqueeze(x, 0), target = reshape(t, 1), shape.clear();
    } else if (x.dim() > 2) {
      Dims want(x.sizes());
      want.erase(1);
      VESTA_CHECK(std::ranges::equal(IntSpan(want), t.sizes()), value, op, ": expected a target of shape ",
                  IntSpan(want), " for input ", x.sizes(), ", got ", t.sizes(), ".");
      if (x.dim() == 3) return;
      const int64_t places = numel_of(x.sizes().subspan(2), op);
      input = reshape(x, {x.size(0), x.size(1), places}), target = reshape(t, {x.size(0), places});
    }
  }
};

/// Returns the weight of each class number's class: 0 where the class is ignored.
Tensor row_weights(const Tensor& target, const Tensor& weight, int64_t ignore_index, DType dtype) {
  Tensor counted = ne(target, ignore_index);
  const Tensor classes = reshape(where(counted, target, wrapped(int64_t(0))).to(DType::int64), {-1});
  return mul(reshape(index_select(weight, 0, classes), target.sizes()), counted.to(dtype));
}

/// Returns the weights of the rows that are not ignored, or their number: what a mean is divided by.
Tensor total_weight(const Tensor& target, const Tensor& weight, int64_t ignore_index, DType dtype) {
  if (weight.defined()) return sum(row_weights(target, weight, ignore_index, dtype));
  return sum(ne(target, ignore_index), MaybeDims(), false, dtype);
}

/// Returns the loss of rows as it is asked for; `counted` are the rows that are not ignored, if the caller knows them.
Tensor class_loss(const Tensor& rows_loss, const ClassRows& rows, const Tensor& weight, int64_t ignore_index, Reduce r,
                  const Tensor& counted = {}) {
  if (r == Reduce::sum) return sum(rows_loss);
  if (r == Reduce::none) return reshape(rows_loss, rows.shape);
  NoGrad off;
  const bool plain = !weight.defined();
  const auto count = [&](MaybeDType dtype) {
    return sum(counted.defined() ? counted : ne(rows.target, ignore_index), MaybeDims(), false, dtype);
  };
  if (plain && rows.target.device().type() == DeviceType::cpu) {  // a count on the host, where that needs no wait
    const auto n = double(count({}).item<int64_t>());
    EnableGrad on;
    return div(sum(rows_loss), Scalar(n));
  }
  const DType wide = compute_type(rows_loss.dtype());  // 16 bits could not count beyond 256
  const Tensor total = plain ? count(wide) : sum(row_weights(rows.target, weight, ignore_index, wide));
  EnableGrad on;
  if (wide == rows_loss.dtype()) return div(sum(rows_loss), total);
  return div(sum(rows_loss, MaybeDims(), false, wide), total).to(rows_loss.dtype());
}

/// Cross-entropy against probabilities of the input's shape.
Tensor soft_cross_entropy(const Tensor& input, const Tensor& target, const Tensor& weight, Reduce r, double smoothing) {
  const int64_t dim = input.dim() == 1 ? 0 : 1, classes = input.size(dim);
  Tensor p = target;
  if (smoothing != 0) p = add(mul(p, 1 - smoothing), smoothing / double(classes));
  Tensor terms = mul(p, log_softmax(input, dim));
  if (weight.defined()) {
    Dims sizes(size_t(input.dim()), 1);
    sizes[size_t(dim)] = classes;
    terms = mul(terms, reshape(weight, sizes));
  }
  Tensor loss = neg(sum(terms, dim));
  if (r == Reduce::none) return loss;
  Tensor total = sum(loss);
  return r == Reduce::sum ? total : div(total, Scalar(double(input.numel()) / double(std::max<int64_t>(classes, 1))));
}

}  // namespace

// ---- Sums of terms ----

Tensor _loss_sum_composite(const Tensor& input, const Tensor& target, int64_t term, double first, double second,
                           double divisor) {
  check_loss_sum(input, target, term, "_loss_sum");
  const Tensor terms = term_of_loss(input, target, LossTerm(term), first, second);
  return divisor < 0 ? sum(terms) : mean(terms);
}

TensorPair _loss_sum_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& target, int64_t term,
                                        double first, double second, double divisor, int64_t wanted) {
  constexpr const char* op = "_loss_sum_backward";
  check_loss_sum(input, target, term, op);
  const PointwiseInfo& info = info_of_term(term, op);
  const Tensor each = expand(divisor < 0 ? grad : div(grad, Scalar(divisor)), IntList(input.sizes()));
  const double params[kMaxParams] = {first, second};
  const auto gradient = [&](int i) {
    if ((wanted >> i & 1) == 0) return Tensor();
    const Tensor* operands[4] = {&each};
    int count = 1;
    for (int k = 0; k < 2; ++k) {
      if (info.uses[i] >> k & 1) operands[count++] = k == 0 ? &input : &target;
    }
    Tensor r = pointwise_backward(info, i, operands, count, params);
    VESTA_CHECK(r.defined(), not_implemented, op, ": no kernel for ", input.dtype(), " on ", input.device(), ".");
    return r;
  };
  return {gradient(0), gradient(1)};
}

// ---- Of scores ----

Tensor binary_cross_entropy_with_logits_composite(const Tensor& input, const Tensor& target, MaybeTensor weight,
                                                  Text reduction, MaybeTensor pos_weight) {
  constexpr const char* op = "binary_cross_entropy_with_logits";
  Reduce how = reduction_of(reduction, op);
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), value, op, ": Target size (", target.sizes(),
              ") must be the same as input size (", input.sizes(), ").");
  VESTA_CHECK(is_float(input.dtype()) && is_float(target.dtype()), not_implemented, op,
              ": expected floating-point dtypes, got ", input.dtype(), " (input) and ", target.dtype(), " (target).");
  constexpr const char* step = "BinaryCrossEntropyWithLogitsBackward0";
  constexpr LossTerm term = LossTerm::binary_cross_entropy_of_score;
  if (!weight.defined() && !pos_weight.defined()) return named_step(loss_of_terms(input, target, term, how), step);
  Tensor loss = pos_weight.defined() ? _weighted_binary_cross_entropy_of_score(input, target, *pos_weight)
                                     : _binary_cross_entropy_of_score(input, target);
  if (weight.defined()) loss = mul(loss, *weight);
  return named_step(reduced(loss, how), step);
}

namespace {
/// Casts a floating-point tensor whose dtype is narrower.
Tensor widened(const Tensor& t, MaybeDType dtype) {
  const bool narrow = dtype && t.defined() && is_float(t.dtype()) && itemsize(t.dtype()) < itemsize(*dtype);
  return narrow ? t.to(*dtype) : t;
}

/// Returns PyTorch's name of the last step of a loss of classes: images have a step of their own, and smoothed labels
/// add two losses.
const char* class_step(const Tensor& input, double label_smoothing) {
  if (label_smoothing > 0) return "AddBackward0";
  return input.dim() >= 3 ? "NllLoss2DBackward0" : "NllLossBackward0";
}
}  // namespace

Tensor cross_entropy_composite(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index,
                               Text reduction, double label_smoothing, MaybeDType dtype) {
  Reduce r = reduction_of(reduction, "cross_entropy");
  const Tensor w = widened(weight, dtype);
  if (std::ranges::equal(input.sizes(), target.sizes()) && is_float(target.dtype())) {
    VESTA_CHECK(ignore_index < 0, runtime,
                "cross_entropy: ignore_index is not supported for floating point target, got ", ignore_index,
                " (ignore_index).");
    return soft_cross_entropy(widened(input, dtype), widened(target, dtype), w, r, label_smoothing);
  }
  // The kernels read 16-bit logits and compute in float32: a copy would only be read once more.
  const bool kernel_widens = dtype == DType::float32;
  ClassRows rows(kernel_widens ? input : widened(input, dtype), target, "cross_entropy");
  const char* const step = class_step(input, label_smoothing);
  if (r == Reduce::mean && ops::_cross_entropy_mean.is_fused_on(rows.input.device().type())) {
    const auto mean = _cross_entropy_mean(rows.input, rows.target, w, ignore_index, label_smoothing, dtype);
    return named_step(std::get<0>(mean), step);
  }
  Tensor loss = std::get<0>(_cross_entropy(rows.input, rows.target, w, ignore_index, label_smoothing, dtype));
  return named_step(class_loss(loss, rows, w, ignore_index, r), step);
}

TensorTriple _cross_entropy_mean_composite(const Tensor& input, const Tensor& target, MaybeTensor weight,
                                           int64_t ignore_index, double label_smoothing, MaybeDType dtype) {
  const auto [losses, exp_sums] = _cross_entropy(input, target, weight, ignore_index, label_smoothing, dtype);
  const DType wide = compute_type(losses.dtype());
  const Tensor total = total_weight(target, weight, ignore_index, wide);
  return {div(sum(losses, MaybeDims(), false, wide), total).to(losses.dtype()), exp_sums, total};
}

namespace {
/// Returns the losses of rows of log-probabilities; `counted` are the rows that are not ignored.
Tensor nll_of_rows(const Tensor& input, const Tensor& target, const Tensor& weight, int64_t ignore_index,
                   const Tensor& counted) {
  Tensor classes = where(counted, target, wrapped(int64_t(0)));
  const bool on_host =
      classes.device().type() == DeviceType::cpu;  // elsewhere the gather below reports, without a wait
  if (const int64_t c = input.sizes()[1]; on_host && classes.numel() > 0) {
    const int64_t low = amin(classes).item<int64_t>(), high = amax(classes).item<int64_t>();
    VESTA_CHECK(low >= 0 && high < c, index, "nll_loss: Target ", low < 0 ? low : high,
                " is out of bounds (classes are 0 to ", c - 1, ").");
  }
  Tensor picked = squeeze(gather(input, 1, unsqueeze(classes, 1)), 1);
  Tensor loss = where(counted, neg(picked), wrapped(0.0));
  if (weight.defined()) loss = mul(loss, row_weights(target, weight, ignore_index, loss.dtype()));
  return loss;
}
}  // namespace

TensorPair _nll_loss_composite(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index,
                               int64_t reduction) {
  check_nll_loss(input, target, weight, reduction);
  const Tensor losses = nll_of_rows(input, target, weight, ignore_index, ne(target, ignore_index));
  if (Reduce(reduction) == Reduce::none) return {losses, Tensor()};
  if (Reduce(reduction) == Reduce::sum) return {sum(losses), Tensor()};
  const DType wide = compute_type(losses.dtype());
  const Tensor total = total_weight(target, weight, ignore_index, wide);
  return {div(sum(losses, MaybeDims(), false, wide), total).to(losses.dtype()), total};
}

/// Each row's gradient is in the place of its class.
Tensor _nll_loss_backward_composite(const Tensor& grad, const Tensor& target, MaybeTensor weight, MaybeTensor total,
                                    int64_t ignore_index, IntList sizes) {
  check_nll_loss_backward(grad, target, sizes);
  const Tensor counted = ne(target, ignore_index);
  Tensor of_rows = neg(total.defined() ? div(grad, *total).to(grad.dtype()) : grad);
  if (weight.defined()) of_rows = mul(of_rows, row_weights(target, weight, ignore_index, grad.dtype()));
  of_rows = where(counted, expand(of_rows, IntList(target.sizes())), wrapped(0.0));
  const Tensor classes = where(counted, target, wrapped(int64_t(0)));
  return scatter_add(zeros(sizes, grad.dtype(), grad.device()), 1, unsqueeze(classes, 1), unsqueeze(of_rows, 1));
}

Tensor nll_loss_composite(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index,
                          Text reduction) {
  Reduce r = reduction_of(reduction, "nll_loss");
  check_floating(input, "nll_loss");
  ClassRows rows(input, target, "nll_loss");
  check_class_target(rows.input, rows.target, weight, rows.input.dtype(), "nll_loss");
  rows.target = rows.target.to(DType::int64);  // of uint8 too, as cross_entropy has them
  const bool learned = weight.defined() && layer_state.grad_enabled && weight->requires_grad();
  if (ops::_nll_loss.is_fused_on(rows.input.device().type()) && !learned) {
    const Tensor loss = std::get<0>(_nll_loss(rows.input, rows.target, weight, ignore_index, int64_t(r)));
    return flat_step(r == Reduce::none ? reshape(loss, rows.shape) : loss, class_step(input, 0));
  }
  const Tensor counted = ne(rows.target, ignore_index);
  const Tensor loss = nll_of_rows(rows.input, rows.target, weight, ignore_index, counted);
  return flat_step(class_loss(loss, rows, weight, ignore_index, r, counted), class_step(input, 0));
}

Tensor mse_loss_composite(const Tensor& input, const Tensor& target, Text reduction) {
  Reduce r = reduction_of(reduction, "mse_loss");
  VESTA_CHECK(is_differentiable(input.dtype()) && is_differentiable(target.dtype()), type,
              "mse_loss: expected floating-point dtypes, got ", input.dtype(), " and ", target.dtype(), ".");
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), value,
              "mse_loss: expected input and target of the same shape, got ", input.sizes(), " and ", target.sizes(),
              ". Reshape one; broadcasting here is nearly always a mistake.");
  if (input.is_complex() || target.is_complex()) {
    return named_step(reduced(square(sub(input, target)), r), "MseLossBackward0");
  }
  return named_step(loss_of_terms(input, target, LossTerm::squared_difference, r), "MseLossBackward0");
}

// ---- Of differences ----

namespace {

/// Differences and products of integers are losses too: a margin or a logarithm makes them floating-point.
void check_number(const Tensor& t, const char* op) {
  VESTA_CHECK(!is_bool(t.dtype()) && !t.is_complex(), not_implemented, op, ": expected a real dtype other than bool, ",
              "got ", t.dtype(), ".");
}

void check_loss(const Tensor& input, const Tensor& target, const char* op) {
  VESTA_CHECK(is_differentiable(input.dtype()) || is_differentiable(target.dtype()), not_implemented, op,
              ": expected floating-point dtypes, got ", input.dtype(), " (input) and ", target.dtype(), " (target).");
}

}  // namespace

Tensor l1_loss_composite(const Tensor& input, const Tensor& target, Text reduction) {
  check_loss(input, target, "l1_loss");
  const Reduce r = reduction_of(reduction, "l1_loss");
  if (input.is_complex() || target.is_complex()) return reduced(abs(sub(input, target)), r);
  return loss_of_terms(input, target, LossTerm::absolute_difference, r);
}

Tensor smooth_l1_loss_composite(const Tensor& input, const Tensor& target, Text reduction, double beta) {
  constexpr const char* op = "smooth_l1_loss";
  const Reduce r = reduction_of(reduction, op);
  VESTA_CHECK(beta >= 0, runtime, op, " does not support negative values for beta, got ", beta, ".");
  check_floating(input, op);
  // 1 / beta must be a number of the type that the loss is computed in: a smaller beta is taken as 0.
  const bool is_double = input.dtype() == DType::float64 || target.dtype() == DType::float64;
  const double largest = is_double ? std::numeric_limits<double>::max() : double(std::numeric_limits<float>::max());
  const bool straight = beta < 2 / largest;
  const LossTerm term = straight ? LossTerm::absolute_difference : LossTerm::huber_difference;
  const double scale = straight ? 0 : 1 / beta;
  return named_step(loss_of_terms(input, target, term, r, beta, scale), "SmoothL1LossBackward0");
}

Tensor huber_loss_composite(const Tensor& input, const Tensor& target, Text reduction, double delta) {
  constexpr const char* op = "huber_loss";
  const Reduce r = reduction_of(reduction, op);
  VESTA_CHECK(delta > 0, runtime, op, " does not support non-positive values for delta, got ", delta, ".");
  check_floating(input, op);
  return named_step(loss_of_terms(input, target, LossTerm::huber_difference, r, delta, 1), "HuberLossBackward0");
}

// ---- Of probabilities ----

Tensor binary_cross_entropy_composite(const Tensor& input, const Tensor& target, MaybeTensor weight, Text reduction) {
  constexpr const char* op = "binary_cross_entropy";
  const Reduce r = reduction_of(reduction, op);
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), value, op, ": Using a target size (", target.sizes(),
              ") that is different to the input size (", input.sizes(), ") is deprecated. Please ensure they have the ",
              "same size.");
  check_floating(input, op);
  check_floating(target, op);
  if (input.numel() > 0 && input.device().type() == DeviceType::cpu) {  // elsewhere it would wait for the device
    NoGrad off;
    const double low = amin(input).item<double>(), high = amax(input).item<double>();
    VESTA_CHECK(low >= 0 && high <= 1, runtime, op, ": all elements of input should be between 0 and 1, got ", low,
                " to ", high, ".");
  }
  constexpr LossTerm term = LossTerm::binary_cross_entropy;
  const Tensor loss = weight.defined() ? reduced(mul(_binary_cross_entropy(input, target), *weight), r)
                                       : loss_of_terms(input, target, term, r);
  return named_step(loss, "BinaryCrossEntropyBackward0");
}

Tensor kl_div_composite(const Tensor& input, const Tensor& target, Text reduction, bool log_target) {
  constexpr const char* op = "kl_div";
  const Reduce r = reduction_of(reduction, op);
  check_loss(input, target, op);
  if (is_float(input.dtype()) && is_float(target.dtype())) {
    return loss_of_terms(input, target, log_target ? LossTerm::log_divergence : LossTerm::divergence, r);
  }
  if (log_target) return reduced(mul(exp(target), sub(target, input)), r);
  const Tensor known = log(where(eq(target, 0), 1.0, target));  // 0 log 0 is 0
  return reduced(mul(target, sub(known, input)), r);
}

Tensor poisson_nll_loss_composite(const Tensor& input, const Tensor& target, bool log_input, bool full, double eps,
                                  Text reduction) {
  constexpr const char* op = "poisson_nll_loss";
  const Reduce r = reduction_of(reduction, op);
  check_number(input, op);
  if (log_input && !full && is_float(input.dtype()) && is_float(target.dtype())) {
    return loss_of_terms(input, target, LossTerm::exp_difference, r);
  }
  Tensor loss = log_input ? sub(exp(input), mul(target, input)) : sub(input, mul(target, log(add(input, eps))));
  if (full) {  // Stirling's formula for log(target!)
    const Tensor t = where(gt(target, 1), target, 1.0);
    const Tensor stirling = add(sub(mul(t, log(t)), t), mul(log(mul(t, 2 * std::numbers::pi)), 0.5));
    loss = add(loss, where(gt(target, 1), stirling, 0.0));
  }
  return reduced(loss, r);
}

// ---- Of margins ----

Tensor hinge_embedding_loss_composite(const Tensor& input, const Tensor& target, double margin, Text reduction) {
  constexpr const char* op = "hinge_embedding_loss";
  const Reduce r = reduction_of(reduction, op);
  check_floating(input, op);
  const Tensor apart = where(ne(target, 1), clamp_min(sub(wrapped(margin), input), wrapped(0.0)), 0.0);
  return reduced(add(apart, where(ne(target, -1), input, 0.0)), r);
}

Tensor soft_margin_loss_composite(const Tensor& input, const Tensor& target, Text reduction) {
  constexpr const char* op = "soft_margin_loss";
  const Reduce r = reduction_of(reduction, op);
  check_floating(input, op);
  return named_step(loss_of_terms(input, target, LossTerm::soft_margin, r), "SoftMarginLossBackward0");
}

Tensor margin_ranking_loss_composite(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                                     Text reduction) {
  constexpr const char* op = "margin_ranking_loss";
  const Reduce r = reduction_of(reduction, op);
  check_number(input1, op);
  VESTA_CHECK(input1.dim() == input2.dim() && input1.dim() == target.dim(), runtime, op, ": All input tensors should ",
              "have same dimension but got sizes: input1: ", input1.sizes(), ", input2: ", input2.sizes(),
              ", target: ", target.sizes(), ".");
  const Tensor difference = sub(input1, input2);
  if (is_float(difference.dtype())) {
    return loss_of_terms(difference, target, LossTerm::margin_difference, r, margin);
  }
  return reduced(clamp_min(sub(wrapped(margin), mul(target, difference)), wrapped(0.0)), r);
}

Tensor cosine_embedding_loss_composite(const Tensor& input1, const Tensor& input2, const Tensor& target, double margin,
                                       Text reduction) {
  constexpr const char* op = "cosine_embedding_loss";
  constexpr double kEps = 1e-12;
  const Reduce r = reduction_of(reduction, op);
  check_real(input1, op);
  const int64_t d = target.dim();
  VESTA_CHECK(d == 0 || d == 1, runtime, op, ": 0D or 1D target tensor expected, multi-target not supported, got ",
              target.sizes(), ".");
  VESTA_CHECK(input1.dim() == d + 1 && input2.dim() == d + 1, runtime, op, ": ", d, "D target tensor expects ", d + 1,
              "D input tensors, but found inputs with sizes ", input1.sizes(), " and ", input2.sizes(), ".");
  const Tensor dot = sum(mul(input1, input2), d);
  const Tensor squares = mul(add(sum(square(input1), d), kEps), add(sum(square(input2), d), kEps));
  const Tensor cosine = div(dot, sqrt(squares));
  const Tensor close = where(eq(target, 1), sub(wrapped(1.0), cosine), 0.0);
  const Tensor apart = where(eq(target, -1), clamp_min(sub(cosine, margin), wrapped(0.0)), 0.0);
  return reduced(add(close, apart), r);
}

Tensor triplet_margin_loss_composite(const Tensor& anchor, const Tensor& positive, const Tensor& negative,
                                     double margin, double p, double eps, bool swap, Text reduction) {
  constexpr const char* op = "triplet_margin_loss";
  const Reduce r = reduction_of(reduction, op);
  check_number(anchor, op);
  VESTA_CHECK(margin > 0, runtime, op, ": expected margin to be greater than 0, got ", margin, ".");
  VESTA_CHECK(anchor.dim() == positive.dim() && anchor.dim() == negative.dim(), runtime, op, ": The anchor, positive, ",
              "and negative tensors are expected to have the same number of dimensions, but got: anchor ",
              anchor.sizes(), ", positive ", positive.sizes(), ", and negative ", negative.sizes(), ".");
  auto distance = [&](const Tensor& a, const Tensor& b) { return norm(add(sub(a, b), eps), p, -1); };
  Tensor far = distance(anchor, negative);
  if (swap) far = minimum(far, distance(positive, negative));
  return reduced(clamp_min(add(sub(distance(anchor, positive), far), margin), wrapped(0.0)), r);
}

namespace {

/// Checks scores [N, C], [C] or one score; returns them as rows.
Tensor score_rows(const Tensor& input, const char* op) {
  check_floating(input, op);
  VESTA_CHECK(input.dim() == 0 || (input.dim() <= 2 && input.size(-1) > 0), runtime, op,
              ": Expected non-empty vector or matrix with optional 0-dim batch size, but got: ", input.sizes(), ".");
  return input.dim() < 2 ? reshape(input, {1, -1}) : input;
}

}  // namespace

Tensor multi_margin_loss_composite(const Tensor& input, const Tensor& target, double p, double margin,
                                   MaybeTensor weight, Text reduction) {
  constexpr const char* op = "multi_margin_loss";
  const Reduce r = reduction_of(reduction, op);
  VESTA_CHECK(p == 1 || p == 2, value, op, ": only p == 1 and p == 2 supported, got ", p, ".");
  const Tensor x = score_rows(input, op), t = reshape(target, {-1});
  const int64_t classes = x.size(1);
  VESTA_CHECK(t.numel() == x.size(0) && (input.dim() == 2 ? target.dim() == 1 : target.dim() <= 1), runtime, op,
              ": inconsistent target size, expected ", x.size(0), " but got ", target.sizes(), ".");
  check_class_target(x, t, weight, x.dtype(), op);
  const Tensor right = unsqueeze(t, 1);
  Tensor terms = clamp_min(add(sub(x, gather(x, 1, right)), margin), wrapped(0.0));
  if (p == 2) terms = square(terms);
  if (weight.defined()) terms = mul(terms, unsqueeze(index_select(*weight, 0, t), 1));
  const Tensor others = ne(arange(0, classes, 1, DType::int64, x.device()), right);
  const Tensor loss = div(sum(where(others, terms, 0.0), 1), double(classes));
  return r == Reduce::none ? reshape(loss, target.sizes()) : reduced(loss, r);
}

Tensor multilabel_margin_loss_composite(const Tensor& input, const Tensor& target, Text reduction) {
  constexpr const char* op = "multilabel_margin_loss";
  const Reduce r = reduction_of(reduction, op);
  const Tensor x = score_rows(input, op);
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), runtime, op,
              ": inconsistent target size: ", target.sizes(), " for input of size: ", input.sizes(), ".");
  VESTA_CHECK(target.dtype() == DType::int64, runtime, op, ": expected an int64 target, got ", target.dtype(), ".");
  const Tensor t = input.dim() < 2 ? reshape(target, {1, -1}) : target;
  const int64_t classes = x.size(1);
  // Labels count up to the first that is negative.
  const Tensor valid = std::get<0>(cummin(ge(t, 0).to(DType::int64), 1));
  const Tensor labels = mul(t, valid);
  const Tensor is_label = gt(scatter_add(zeros_like(t), 1, labels, valid), 0);
  const Tensor scores = gather(x, 1, labels);
  const Tensor terms = clamp_min(add(sub(unsqueeze(x, 1), unsqueeze(scores, 2)), 1), wrapped(0.0));
  const Tensor counted = logical_and(unsqueeze(valid.to(DType::bool_), 2), unsqueeze(logical_not(is_label), 1));
  const Tensor loss = div(sum(where(counted, terms, 0.0), {1, 2}), double(classes));
  return r == Reduce::none && input.dim() < 2 ? squeeze(loss, 0) : reduced(loss, r);
}

// ---- Of alignments ----

namespace {

/// Connectionist temporal classification (Graves et al. 2006): the sum over all alignments, by their forward variables
/// over the labels with blanks between them, of the whole batch at once.
struct Alignments {
  static constexpr double kImpossible = -1e30;  // a log-probability whose gradient is a number

  Tensor log_probs;  // [T, N, C]
  std::vector<std::vector<int64_t>> targets;
  IntSpan input_lengths;
  int64_t blank;

  int64_t batch() const { return log_probs.size(1); }
  Tensor length_column(Device device) const {
    Tensor t = empty({batch(), 1}, DType::int64);
    std::ranges::copy(input_lengths, t.data_ptr<int64_t>());
    return t.to(device);
  }

  /// Returns -log p of each target, [N]; infinite where there is no alignment.
  Tensor losses() const {
    const int64_t n = batch(), steps = log_probs.size(0);
    size_t longest = 0;
    for (const auto& t : targets) longest = std::max(longest, t.size());
    const int64_t width = 2 * int64_t(longest) + 1;
    Tensor labels = full({n, width}, blank, DType::int64), skips = zeros({n, width}, DType::bool_),
           ends = zeros({n, width}, DType::bool_);
    for (int64_t i = 0; i < n; ++i) {
      const auto& t = targets[size_t(i)];
      const int64_t length = int64_t(t.size());
      for (int64_t k = 0; k < length; ++k) {
        labels.data_ptr<int64_t>()[i * width + 2 * k + 1] = t[size_t(k)];
        skips.data_ptr<bool>()[i * width + 2 * k + 1] = k > 0 && t[size_t(k)] != t[size_t(k - 1)];
      }
      ends.data_ptr<bool>()[i * width + 2 * length] = true;
      if (length > 0) ends.data_ptr<bool>()[i * width + 2 * length - 1] = true;
    }
    Tensor starts = zeros({1, width}, DType::bool_), start = zeros({1, width}, DType::bool_);
    for (int64_t k = 0; k < std::min<int64_t>(width, 2); ++k) starts.data_ptr<bool>()[k] = true;
    start.data_ptr<bool>()[0] = true;
    const Device device = log_probs.device();
    labels = labels.to(device), skips = skips.to(device), ends = ends.to(device), starts = starts.to(device);
    const Tensor lengths = length_column(device);
    // before the first step: nothing has been read
    Tensor alpha = where(expand(start.to(device), {n, width}), zeros({}, log_probs.dtype(), device), kImpossible);
    for (int64_t t = 0; t < steps; ++t) {
      // Beyond float16 the bound is -infinity: a bound of clamp_min() would be refused.
      const Tensor emitted = _clamp_min(gather(select(log_probs, 0, t), 1, labels), wrapped(kImpossible));
      Tensor next;
      if (t == 0) {
        next = where(starts, emitted, kImpossible);
      } else {
        const Tensor before = shifted(alpha, 1), skipped = where(skips, shifted(alpha, 2), kImpossible);
        next = _clamp_min(add(logsumexp(stack({alpha, before, skipped}, 0), 0), emitted), wrapped(kImpossible));
      }
      alpha = where(gt(lengths, t), next, alpha);
    }
    const Tensor loss = neg(logsumexp(where(ends, alpha, kImpossible), 1));
    return where(gt(loss, -kImpossible / 2), std::numeric_limits<double>::infinity(), loss);
  }

 private:
  /// Moves columns to the right by k.
  static Tensor shifted(const Tensor& alpha, int64_t k) {
    return narrow(constant_pad_nd(alpha, {k, 0}, as_element(kImpossible, alpha.dtype())), 1, 0, alpha.size(1));
  }
};

}  // namespace

Tensor ctc_loss_in_ops(const Tensor& log_probs, const Tensor& targets, IntSpan input_lengths, IntSpan target_lengths,
                       int64_t blank) {
  const std::vector<int64_t> begins = check_ctc_loss(log_probs, targets, input_lengths, target_lengths, blank);
  const Tensor host = contiguous(targets.to(Device(DeviceType::cpu)));
  Alignments a{log_probs, {}, input_lengths, blank};
  for (size_t i = 0; i < begins.size(); ++i) {
    const int64_t* from = host.data_ptr<int64_t>() + begins[i];
    a.targets.emplace_back(from, from + target_lengths[i]);
  }
  const Tensor loss = a.losses();
  // PyTorch's gradient: that of scores whose sum is 1
  const Tensor step = unsqueeze(arange(0, log_probs.size(0), 1, DType::int64, log_probs.device()), 1);
  const Tensor counted = lt(step, squeeze(a.length_column(log_probs.device()), 1));
  const Tensor mass = sum(where(counted, sum(exp(log_probs), 2), 0.0), 0);
  return add(loss, sub(mass, mass.detach()));
}

Tensor ctc_loss_composite(const Tensor& log_probs, const Tensor& targets, IntList input_lengths, IntList target_lengths,
                          int64_t blank, Text reduction, bool zero_infinity) {
  constexpr const char* op = "ctc_loss";
  const Reduce r = reduction_of(reduction, op);
  check_floating(log_probs, op);
  VESTA_CHECK(log_probs.dim() == 3 || log_probs.dim() == 2, runtime, op, ": expected log_probs [T, N, C] or [T, C], ",
              "got ", log_probs.sizes(), ".");
  VESTA_CHECK(!is_differentiable(targets.dtype()) && targets.dtype() != DType::bool_, runtime, op,
              ": targets must be integral, got ", targets.dtype(), ".");
  const bool one = log_probs.dim() == 2;
  const Tensor batch = one ? unsqueeze(log_probs, 1) : log_probs;
  const Tensor probs = batch.to(compute_type(batch.dtype()));  // 16-bit floats would be rounded after every step
  Tensor loss;
  if (!has_values(targets)) {  // a loss for each, which depends on all its scores
    loss = sum(sum(probs, MaybeDims(2)), MaybeDims(0));
  } else {
    const Tensor labels = (one ? reshape(targets, {1, -1}) : targets).to(DType::int64).to(probs.device());
    loss = std::get<0>(_ctc_loss(probs, labels, input_lengths, target_lengths, blank));
    if (zero_infinity) loss = where(isinf(loss), 0.0, loss);
    if (r == Reduce::mean) {
      Tensor lengths = empty({loss.numel()}, DType::int64);
      for (int64_t i = 0; i < loss.numel(); ++i) {
        lengths.data_ptr<int64_t>()[i] = std::max<int64_t>(target_lengths[size_t(i)], 1);
      }
      loss = div(loss, lengths.to(loss.device()));
    }
  }
  loss = r == Reduce::none && one ? squeeze(loss, 0) : reduced(loss, r);
  return loss.to(log_probs.dtype());
}

}  // namespace vesta
