// Ops of neural networks that are made of other ops: their gradients come from those.
#include <algorithm>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/loss.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/random.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/core/ops/view.h>

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

/// Brings [C] and [N, C, d1, ...] to rows [M, C], and class numbers to [M].
struct Rows {
  Tensor input, target;
  Dims shape;  // of the losses
  Rows(const Tensor& x, const Tensor& t, const char* op) : input(x), target(t), shape(t.sizes()) {
    VESTA_CHECK(x.dim() >= 1, value, op, ": expected an input of at least 1 dimension, got a 0-d tensor.");
    if (x.dim() == 1) {
      VESTA_CHECK(t.dim() == 0, value, op, ": expected a 0-d target for input ", x.sizes(), ", got ", t.sizes(), ".");
      input = unsqueeze(x, 0), target = unsqueeze(t, 0);
    } else if (x.dim() > 2) {
      Dims want(x.sizes());
      want.erase(1);
      VESTA_CHECK(std::ranges::equal(IntSpan(want), t.sizes()), value, op, ": expected a target of shape ",
                  IntSpan(want), " for input ", x.sizes(), ", got ", t.sizes(), ".");
      Dims order;
      for (int64_t d = 0; d < x.dim(); ++d) {
        if (d != 1) order.push_back(d);
      }
      order.push_back(1);
      input = reshape(permute(x, order), {numel_of(want, op), x.sizes()[1]});
      target = reshape(t, {-1});
    }
  }
};

/// Returns the weight of each row's class: 0 where the class is ignored.
Tensor row_weights(const Tensor& target, const Tensor& weight, int64_t ignore_index, DType dtype) {
  Tensor counted = ne(target, ignore_index);
  if (!weight.defined()) return counted.to(dtype);
  Tensor w = index_select(weight, 0, where(counted, target, wrapped(int64_t(0))));
  return mul(w, counted.to(dtype));
}

Tensor class_loss(const Tensor& rows_loss, const Rows& rows, const Tensor& weight, int64_t ignore_index, Reduce r) {
  if (r == Reduce::sum) return sum(rows_loss);
  if (r == Reduce::none) return reshape(rows_loss, rows.shape);
  NoGrad off;
  bool plain = !weight.defined();
  if (plain && rows.target.device().type == DeviceType::cpu) {  // a count on the host, where that needs no wait
    Tensor counted = sum(ne(rows.target, ignore_index));
    EnableGrad on;
    return div(sum(rows_loss), Scalar(double(counted.item<int64_t>())));
  }
  Tensor total = sum(row_weights(rows.target, weight, ignore_index, rows_loss.dtype()));
  EnableGrad on;
  return div(sum(rows_loss), total);
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

Tensor softmax_composite(const Tensor& input, int64_t dim, MaybeDType dtype) {
  if (!dtype) return _softmax(input, dim);
  autocast::Pause as_asked;
  return _softmax(input.to(*dtype), dim);
}

Tensor log_softmax_composite(const Tensor& input, int64_t dim, MaybeDType dtype) {
  if (!dtype) return _log_softmax(input, dim);
  autocast::Pause as_asked;
  return _log_softmax(input.to(*dtype), dim);
}

Tensor _dropout_composite(const Tensor& input, double p, bool training) {
  VESTA_CHECK(p >= 0 && p <= 1, value, "dropout: dropout probability has to be between 0 and 1, but got ", p, ".");
  if (!training || p == 0 || input.numel() == 0) return input;
  return std::get<0>(native_dropout(input, p, true));
}

Tensor batch_norm_composite(const Tensor& input, MaybeTensor running_mean, MaybeTensor running_var, MaybeTensor weight,
                            MaybeTensor bias, bool training, double momentum, double eps) {
  VESTA_CHECK(training ? eps > 0 : eps >= 0, value, "batch_norm: expected a positive eps",
              training ? " in training" : " or 0", ", got ", eps, " (eps).");
  return std::get<0>(native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps));
}

namespace {

/// Checks layer_norm's arguments; returns how many elements a row has that is brought to mean 0 and variance 1.
int64_t check_layer_norm(const Tensor& input, IntSpan shape, const Tensor& weight, const Tensor& bias) {
  VESTA_CHECK(is_float(input.dtype()), not_implemented, "layer_norm: expected a floating-point dtype, got ",
              input.dtype(), " (input).");
  VESTA_CHECK(!shape.empty(), runtime, "layer_norm: expected a normalized_shape of at least one dimension, got [].");
  const int64_t lead = input.dim() - int64_t(shape.size());
  VESTA_CHECK(lead >= 0 && std::ranges::equal(input.sizes().subspan(size_t(lead)), shape), runtime,
              "layer_norm: expected an input of shape [*, normalized_shape], got ", input.sizes(),
              " and normalized_shape ", shape, ".");
  for (const Tensor* t : {&weight, &bias}) {
    const char* which = t == &weight ? "weight" : "bias";
    VESTA_CHECK(!t->defined() || std::ranges::equal(t->sizes(), shape), runtime, "layer_norm: expected a ", which,
                " of the shape of normalized_shape ", shape, ", got ", t->sizes(), " (", which, ").");
    VESTA_CHECK(!t->defined() || t->dtype() == input.dtype() || t->dtype() == DType::float32, runtime,
                "layer_norm: expected a ", which, " of input's dtype ", input.dtype(), " or float32, got ", t->dtype(),
                " (", which, ").");
  }
  return numel_of(shape, "layer_norm");
}

}  // namespace

// Rows as the channels of one image: batch normalisation in training is what they need. It computes x * scale + shift,
// which loses the digits of a large mean, so that the mean goes first; being a constant, it has no part in gradients.
Tensor layer_norm_composite(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeTensor bias,
                            double eps) {
  const int64_t n = check_layer_norm(input, normalized_shape, weight, bias);
  const bool half = input.dtype() == DType::float16 || input.dtype() == DType::bfloat16;
  const DType wide = half ? DType::float32 : input.dtype();
  Tensor r = input.to(wide);
  if (input.numel() > 0) {
    Tensor rows = reshape(r, {1, input.numel() / n, n});
    rows = sub(rows, mean(rows.detach(), 2, true));
    if (n > 1) rows = std::get<0>(native_batch_norm(rows, {}, {}, {}, {}, true, 0, eps));
    r = reshape(n > 1 ? rows : mul(rows, wrapped(0.0)), input.sizes());
  }
  if (weight.defined()) r = mul(r, weight->to(wide));
  if (bias.defined()) r = add(r, bias->to(wide));
  return r.to(input.dtype());
}

Tensor normalize_composite(const Tensor& input, double p, IntList dim, double eps) {
  VESTA_CHECK(is_differentiable(input.dtype()), not_implemented,
              "normalize: expected a floating-point or complex dtype, got ", input.dtype(), " (input).");
  return div(input, clamp_min(norm(input, p, MaybeDims(IntSpan(dim)), true), wrapped(eps)));
}

Tensor binary_cross_entropy_with_logits_composite(const Tensor& input, const Tensor& target, MaybeTensor weight,
                                                  Text reduction, MaybeTensor pos_weight) {
  constexpr const char* op = "binary_cross_entropy_with_logits";
  Reduce how = reduction_of(reduction, op);
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), value, op, ": Target size (", target.sizes(),
              ") must be the same as input size (", input.sizes(), ").");
  VESTA_CHECK(is_float(input.dtype()) && is_float(target.dtype()), not_implemented, op,
              ": expected floating-point dtypes, got ", input.dtype(), " (input) and ", target.dtype(), " (target).");
  Tensor log_one = logsigmoid(input), rest = sub(wrapped(1.0), target);
  if (pos_weight.defined()) log_one = mul(log_one, add(mul(sub(*pos_weight, wrapped(1.0)), target), wrapped(1.0)));
  Tensor loss = sub(mul(rest, input), log_one);
  if (weight.defined()) loss = mul(loss, *weight);
  return reduced(loss, how);
}

Tensor cross_entropy_composite(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index,
                               Text reduction, double label_smoothing) {
  Reduce r = reduction_of(reduction, "cross_entropy");
  if (std::ranges::equal(input.sizes(), target.sizes()) && is_float(target.dtype())) {
    return soft_cross_entropy(input, target, weight, r, label_smoothing);
  }
  Rows rows(input, target, "cross_entropy");
  Tensor loss = std::get<0>(_cross_entropy(rows.input, rows.target, weight, ignore_index, label_smoothing));
  return class_loss(loss, rows, weight, ignore_index, r);
}

Tensor nll_loss_composite(const Tensor& input, const Tensor& target, MaybeTensor weight, int64_t ignore_index,
                          Text reduction) {
  Reduce r = reduction_of(reduction, "nll_loss");
  check_floating(input, "nll_loss");
  Rows rows(input, target, "nll_loss");
  check_class_target(rows.input, rows.target, weight, "nll_loss");
  Tensor counted = ne(rows.target, ignore_index);
  Tensor classes = where(counted, rows.target, wrapped(int64_t(0)));
  const bool on_host = classes.device().type == DeviceType::cpu;  // elsewhere the gather below reports, without a wait
  if (const int64_t c = rows.input.sizes()[1]; on_host && classes.numel() > 0) {
    const int64_t low = amin(classes).item<int64_t>(), high = amax(classes).item<int64_t>();
    VESTA_CHECK(low >= 0 && high < c, index, "nll_loss: Target ", low < 0 ? low : high,
                " is out of bounds (classes are 0 to ", c - 1, ").");
  }
  Tensor picked = squeeze(gather(rows.input, 1, unsqueeze(classes, 1)), 1);
  Tensor loss = where(counted, neg(picked), wrapped(0.0));
  if (weight.defined()) loss = mul(loss, row_weights(rows.target, weight, ignore_index, loss.dtype()));
  return class_loss(loss, rows, weight, ignore_index, r);
}

Tensor mse_loss_composite(const Tensor& input, const Tensor& target, Text reduction) {
  Reduce r = reduction_of(reduction, "mse_loss");
  VESTA_CHECK(is_differentiable(input.dtype()) && is_differentiable(target.dtype()), type,
              "mse_loss: expected floating-point dtypes, got ", input.dtype(), " and ", target.dtype(), ".");
  VESTA_CHECK(std::ranges::equal(input.sizes(), target.sizes()), value,
              "mse_loss: expected input and target of the same shape, got ", input.sizes(), " and ", target.sizes(),
              ". Reshape one; broadcasting here is nearly always a mistake.");
  return reduced(square(sub(input, target)), r);
}

}  // namespace vesta
