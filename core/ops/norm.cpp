#include <vesta/core/ops/norm.h>

#include <algorithm>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/norm.h>
#include <vesta/core/ops/pointwise.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_NORM)

BatchNormShape::BatchNormShape(const Tensor& x) : batch(x.sizes()[0]), channels(x.sizes()[1]), inner(1), update(false) {
  for (int64_t d = 2; d < x.dim(); ++d) inner *= x.sizes()[size_t(d)];
}

namespace {
void check_channel_vector(const Tensor& t, int64_t channels, const char* name) {
  if (!t.defined()) return;
  VESTA_CHECK(t.dim() == 1 && t.sizes()[0] == channels, value, "batch_norm: expected ", name, " to contain ", channels,
              " elements (one per channel), got ", t.sizes(), ".");
  VESTA_CHECK(is_float(t.dtype()), type, "batch_norm: expected ", name, " of a floating-point dtype, got ", t.dtype(),
              ".");
}
}  // namespace

BatchNormShape batch_norm_shape(const Tensor& input, const Tensor& weight, const Tensor& bias,
                                const Tensor& running_mean, const Tensor& running_var, bool training) {
  VESTA_CHECK(is_float(input.dtype()), type, "batch_norm: expected a floating-point input, got ", input.dtype(), ".");
  VESTA_CHECK(input.dim() >= 2, value, "batch_norm: expected an input [N, C, ...] of at least 2 dimensions, got ",
              input.sizes(), ".");
  BatchNormShape shape(input);
  check_channel_vector(weight, shape.channels, "weight");
  check_channel_vector(bias, shape.channels, "bias");
  check_channel_vector(running_mean, shape.channels, "running_mean");
  check_channel_vector(running_var, shape.channels, "running_var");
  VESTA_CHECK(
      training || (running_mean.defined() && running_var.defined()), value,
      "batch_norm: expected running_mean and running_var in evaluation, got None. Train first or pass training=True.");
  VESTA_CHECK(!training || shape.count() > 1 || input.numel() == 0, value,
              "batch_norm: Expected more than 1 value per channel when training, got input size ", input.sizes(), ".");
  shape.update = training && running_mean.defined() && running_var.defined() && shape.count() > 0;
  if (shape.update) {
    check_writable(running_mean, "batch_norm");
    check_writable(running_var, "batch_norm");
  }
  return shape;
}

int64_t check_row_norm(const char* op, const Tensor& input, IntSpan shape, const Tensor& weight, const Tensor& bias) {
  check_floating(input, op);
  VESTA_CHECK(!shape.empty(), runtime, op, ": expected a normalized_shape of at least one dimension, got [].");
  const int64_t lead = input.dim() - int64_t(shape.size());
  VESTA_CHECK(lead >= 0 && std::ranges::equal(input.sizes().subspan(size_t(lead)), shape), runtime, op,
              ": expected an input of shape [*, normalized_shape], got ", input.sizes(), " and normalized_shape ",
              shape, ".");
  for (const Tensor* t : {&weight, &bias}) {
    const char* which = t == &weight ? "weight" : "bias";
    VESTA_CHECK(!t->defined() || std::ranges::equal(t->sizes(), shape), runtime, op, ": expected a ", which,
                " of the shape of normalized_shape ", shape, ", got ", t->sizes(), " (", which, ").");
    VESTA_CHECK(!t->defined() || t->dtype() == input.dtype() || t->dtype() == DType::float32, runtime, op,
                ": expected a ", which, " of input's dtype ", input.dtype(), " or float32, got ", t->dtype(), " (",
                which, ").");
  }
  return numel_of(shape, op);
}

double rms_norm_eps(DType d) { return d == DType::float64 ? 0x1p-52 : 0x1p-23; }

GroupNormShape::GroupNormShape(const char* op, const Tensor& input, const Tensor& weight, const Tensor& bias, int64_t n,
                               int64_t c, int64_t hxw, int64_t group)
    : images(n), channels(c), inner(hxw), groups(group), depth(0) {
  check_floating(input, op);
  VESTA_CHECK(group > 0 && c > 0 && c % group == 0, runtime, op,
              ": Expected number of channels in input to be divisible by num_groups, but got input of shape ",
              input.sizes(), " with ", c, " channels and num_groups=", group, ".");
  VESTA_CHECK(n >= 0 && hxw > 0 && numel_of(Dims{n, c, hxw}, op) == input.numel(), runtime, op,
              ": expected an input of N * C * HxW elements, got ", input.sizes(), ", N=", n, ", C=", c, ", HxW=", hxw,
              ".");
  for (const Tensor* t : {&weight, &bias}) {
    VESTA_CHECK(!t->defined() || (t->dim() == 1 && t->size(0) == c), runtime, op, ": Expected ",
                t == &weight ? "weight" : "bias", " to be a vector of size equal to the number of channels in input, ",
                c, ", but got ", t->defined() ? t->sizes() : IntSpan(), ".");
  }
  depth = c / group;
}

}  // namespace vesta
