#include <vesta/core/ops/norm.h>

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

}  // namespace vesta
