#include <vesta/core/ops/conv.h>

#include <algorithm>

#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/conv.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_CONV)

std::array<int64_t, 2> pair_of(IntList v, const char* op, const char* argument) {
  VESTA_CHECK(v.size() == 1 || v.size() == 2, value, op, ": expected one or two integers for ", argument, ", got ",
              IntSpan(v), ".");
  return {v[0], v[v.size() - 1]};
}

namespace {
void check_at_least(const std::array<int64_t, 2>& v, int64_t low, const char* op, const char* argument) {
  VESTA_CHECK(v[0] >= low && v[1] >= low, value, op, ": expected ", argument, " >= ", low, ", got [", v[0], ", ", v[1],
              "].");
}
}  // namespace

Window2d conv2d_window(IntSpan input, IntSpan weight, IntList stride, IntList padding, IntList dilation, int64_t groups,
                       const char* op) {
  VESTA_CHECK(input.size() == 4, value, op,
              ": Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: ", input, ".");
  VESTA_CHECK(weight.size() == 4, value, op, ": expected a 4-d weight [out, in / groups, kh, kw], got ", weight, ".");
  Window2d w{{weight[2], weight[3]},
             pair_of(stride, op, "stride"),
             pair_of(padding, op, "padding"),
             pair_of(dilation, op, "dilation"),
             {input[2], input[3]},
             {}};
  check_at_least(w.kernel, 1, op, "a kernel size");
  check_at_least(w.stride, 1, op, "stride");
  check_at_least(w.padding, 0, op, "padding");
  check_at_least(w.dilation, 1, op, "dilation");
  VESTA_CHECK(groups >= 1, value, op, ": expected groups >= 1, got ", groups, ".");
  VESTA_CHECK(weight[0] % groups == 0 && weight[0] >= 0, value, op, ": expected out_channels divisible by groups, got ",
              weight[0], " and ", groups, ".");
  VESTA_CHECK(input[1] == weight[1] * groups, value, op, ": Given groups=", groups, ", weight of size ", weight,
              ", expected input", input, " to have ", weight[1] * groups, " channels, but got ", input[1],
              " channels instead.");
  for (size_t d = 0; d < 2; ++d) {
    int64_t reach = checked_add(checked_mul(w.dilation[d], w.kernel[d] - 1, op), 1, op);
    int64_t padded = checked_add(w.in[d], checked_mul(2, w.padding[d], op), op);
    VESTA_CHECK(padded >= reach, value, op, ": Calculated padded input size per channel: (", w.in[0] + 2 * w.padding[0],
                " x ", w.in[1] + 2 * w.padding[1], "). Kernel size: (", w.kernel[0], " x ", w.kernel[1],
                "). Kernel size can't be greater than actual input size.");
    w.out[d] = (padded - reach) / w.stride[d] + 1;
  }
  return w;
}

Window2d pool2d_window(IntSpan input, IntList kernel, IntList stride, IntList padding, IntList dilation, bool ceil_mode,
                       const char* op) {
  VESTA_CHECK(input.size() == 4, value, op, ": expected a 3-d or 4-d input, got ", input, ".");
  Window2d w;
  w.kernel = pair_of(kernel, op, "kernel_size");
  w.stride = stride.empty() ? w.kernel : pair_of(stride, op, "stride");
  w.padding = pair_of(padding, op, "padding");
  w.dilation = pair_of(dilation, op, "dilation");
  w.in = {input[2], input[3]};
  check_at_least(w.kernel, 1, op, "kernel_size");
  check_at_least(w.stride, 1, op, "stride");
  check_at_least(w.padding, 0, op, "padding");
  check_at_least(w.dilation, 1, op, "dilation");
  for (size_t d = 0; d < 2; ++d) {
    VESTA_CHECK(w.padding[d] <= w.kernel[d] / 2, value, op,
                ": pad should be at most half of effective kernel size, but got pad=", w.padding[d],
                ", kernel_size=", w.kernel[d], ".");
    int64_t reach = checked_add(checked_mul(w.dilation[d], w.kernel[d] - 1, op), 1, op);
    int64_t room = w.in[d] + 2 * w.padding[d] - reach;
    VESTA_CHECK(w.in[d] > 0 && room >= 0, value, op, ": Output size is too small: input ", input, ", kernel_size [",
                w.kernel[0], ", ", w.kernel[1], "].");
    w.out[d] = (room + (ceil_mode ? w.stride[d] - 1 : 0)) / w.stride[d] + 1;
    // a window that starts in the padding behind the input has no element
    if (ceil_mode && (w.out[d] - 1) * w.stride[d] >= w.in[d] + w.padding[d]) --w.out[d];
  }
  return w;
}

namespace {
void check_same_dtype(const Tensor& a, const Tensor& b, const char* op, const char* what) {
  if (!b.defined()) return;
  VESTA_CHECK(a.dtype() == b.dtype(), type, op, ": expected ", what, " of the input's dtype ", a.dtype(), ", got ",
              b.dtype(), ". Convert one with .to().");
}
/// Checks that a gradient has the shape of the result it belongs to.
void check_grad(const Tensor& grad, int64_t batch, int64_t channels, const Window2d& w, const char* op) {
  Dims out{batch, channels, w.out[0], w.out[1]};
  VESTA_CHECK(std::ranges::equal(grad.sizes(), IntSpan(out)), value, op, ": expected a grad of shape ", IntSpan(out),
              ", got ", grad.sizes(), ".");
}
}  // namespace

Window2d check_conv2d(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
                      IntList dilation, int64_t groups) {
  constexpr const char* op = "conv2d";
  Window2d w = conv2d_window(input.sizes(), weight.sizes(), stride, padding, dilation, groups, op);
  check_same_dtype(input, weight, op, "a weight");
  check_same_dtype(input, bias, op, "a bias");
  VESTA_CHECK(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == weight.sizes()[0]), value, op,
              ": expected a bias [", weight.sizes()[0], "], got ", bias.defined() ? bias.sizes() : IntSpan(), ".");
  check_floating(input, op);
  return w;
}

Window2d check_conv2d_backward_input(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride,
                                     IntList padding, IntList dilation, int64_t groups) {
  constexpr const char* op = "_conv2d_backward_input";
  Window2d w = conv2d_window(input_size, weight.sizes(), stride, padding, dilation, groups, op);
  check_same_dtype(grad, weight, op, "a weight");
  check_grad(grad, input_size[0], weight.sizes()[0], w, op);
  check_floating(grad, op);
  return w;
}

Window2d check_conv2d_backward_weight(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride,
                                      IntList padding, IntList dilation, int64_t groups) {
  constexpr const char* op = "_conv2d_backward_weight";
  Window2d w = conv2d_window(input.sizes(), weight_size, stride, padding, dilation, groups, op);
  check_same_dtype(grad, input, op, "an input");
  check_grad(grad, input.sizes()[0], weight_size[0], w, op);
  check_floating(grad, op);
  return w;
}

Window2d check_max_pool2d(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                          bool ceil_mode) {
  Window2d w = pool2d_window(input.sizes(), kernel, stride, padding, dilation, ceil_mode, "max_pool2d");
  VESTA_CHECK(kReals.has(input.dtype()), type, "max_pool2d: expected a real dtype, got ", input.dtype(), " (input).");
  return w;
}

void check_max_pool2d_backward(const Tensor& grad, const Tensor& indices, IntList input_size) {
  constexpr const char* op = "_max_pool2d_backward";
  VESTA_CHECK(std::ranges::equal(grad.sizes(), indices.sizes()), value, op, ": expected indices of the shape of grad ",
              grad.sizes(), ", got ", indices.sizes(), ".");
  VESTA_CHECK(input_size.size() == size_t(grad.dim()) && grad.dim() >= 2, value, op, ": expected an input_size of ",
              grad.dim(), " numbers, got ", IntSpan(input_size), ".");
  VESTA_CHECK(indices.dtype() == DType::int64, type, op, ": expected int64 indices, got ", indices.dtype(), ".");
  VESTA_CHECK(kFloats.has(grad.dtype()), not_implemented, op, ": expected a floating-point dtype, got ", grad.dtype(),
              ".");
  if (grad.numel() == 0) return;
  const size_t nd = input_size.size();
  const int64_t in = input_size[nd - 1] * input_size[nd - 2], out = grad.size(-1) * grad.size(-2);
  VESTA_CHECK(in > 0 && numel_of(input_size, op) / in == grad.numel() / out, value, op, ": expected grad ",
              grad.sizes(), " to have the planes of the input ", IntSpan(input_size), ".");
}

}  // namespace vesta
