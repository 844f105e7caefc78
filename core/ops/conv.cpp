#include <vesta/core/ops/conv.h>

#include <algorithm>

#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/conv.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/ops/trigonometric.h>
#include <vesta/core/ops/view.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_CONV)

namespace {

/// Returns the function that has `dims` spatial dimensions, for messages.
const char* conv_name(int64_t dims) {
  constexpr const char* kNames[] = {"conv1d", "conv2d", "conv3d"};
  return dims >= 1 && dims <= 3 ? kNames[dims - 1] : "convolution";
}

void check_same_dtype(const Tensor& a, const char* whose, const Tensor& b, const char* what, const char* op) {
  if (!b.defined()) return;
  VESTA_CHECK(a.dtype() == b.dtype(), runtime, op, ": expected ", what, " of the ", whose, "'s dtype ", a.dtype(),
              ", got ", b.dtype(), ". Convert one with .to().");
}
/// Takes the windows that a gradient has, of those that fit.
void take_windows_of(Window& w, const Tensor& grad, int64_t batch, int64_t channels, const char* op) {
  const Dims all = w.result_sizes(batch, channels);
  bool fits = grad.dim() == int64_t(all.size()) && grad.sizes()[0] == batch && grad.sizes()[1] == channels;
  for (int64_t d = 0; fits && d < w.dims; ++d) {
    int64_t& out = w.out[place_of(d, w.dims)];
    const int64_t n = grad.sizes()[size_t(d + 2)];
    fits = n <= out;
    out = n;
  }
  VESTA_CHECK(fits, runtime, op, ": expected a grad of shape ", IntSpan(all), ", got ", grad.sizes(), ".");
}

}  // namespace

namespace {

/// Checks what integers have in common with floats.
Window check_shapes(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
                    IntList dilation, int64_t groups) {
  const char* op = conv_name(input.dim() - 2);
  Window w = conv_window(input.sizes(), weight.sizes(), stride, padding, dilation, groups, op);
  check_same_dtype(input, "input", weight, "a weight", op);
  check_same_dtype(input, "input", bias, "a bias", op);
  VESTA_CHECK(!bias.defined() || (bias.dim() == 1 && bias.sizes()[0] == weight.sizes()[0]), runtime, op,
              ": expected a bias [", weight.sizes()[0], "], got ", bias.defined() ? bias.sizes() : IntSpan(), ".");
  return w;
}

}  // namespace

Window check_convolution(const Tensor& input, const Tensor& weight, const Tensor& bias, IntList stride, IntList padding,
                         IntList dilation, int64_t groups) {
  const Window w = check_shapes(input, weight, bias, stride, padding, dilation, groups);
  check_floating(input, conv_name(input.dim() - 2));
  return w;
}

Window check_convolution_backward_input(const Tensor& grad, const Tensor& weight, IntList input_size, IntList stride,
                                        IntList padding, IntList dilation, int64_t groups, const Tensor& bias) {
  constexpr const char* op = "convolution_backward";
  Window w = conv_window(input_size, weight.sizes(), stride, padding, dilation, groups, op);
  check_same_dtype(grad, "grad", weight, "a weight", op);
  check_same_dtype(grad, "grad", bias, "a bias", op);
  VESTA_CHECK(!bias.defined() || (bias.dim() == 1 && bias.size(0) == input_size[1]), runtime, op, ": expected a bias [",
              input_size[1], "], got ", bias.defined() ? bias.sizes() : IntSpan(), ".");
  take_windows_of(w, grad, input_size[0], weight.sizes()[0], op);
  check_floating(grad, op);
  return w;
}

Window check_convolution_backward_weight(const Tensor& grad, const Tensor& input, IntList weight_size, IntList stride,
                                         IntList padding, IntList dilation, int64_t groups) {
  constexpr const char* op = "convolution_backward";
  Window w = conv_window(input.sizes(), weight_size, stride, padding, dilation, groups, op);
  check_same_dtype(grad, "grad", input, "an input", op);
  take_windows_of(w, grad, input.sizes()[0], weight_size[0], op);
  check_floating(grad, op);
  return w;
}

// ---- The functions, made of _convolution and its gradients ----

Tensor with_bias(const Tensor& y, MaybeTensor bias) {
  if (!bias.defined()) return y;
  Dims column(size_t(y.dim() - 1), 1);
  column[0] = y.size(1);
  return add(y, view(*bias, column));
}

namespace {

/// Checks that an input is an image or a batch of images; returns it as a batch.
Tensor batch_of(const Tensor& input, int64_t dims, const char* op) {
  VESTA_CHECK(input.dim() == dims + 1 || input.dim() == dims + 2, runtime, op, ": Expected ", dims + 1,
              "D (unbatched) or ", dims + 2, "D (batched) input to ", op, ", but got input of size: ", input.sizes(),
              ".");
  return input.dim() == dims + 1 ? unsqueeze(input, 0) : input;
}

/// Convolutions of integers, exact: for each place of the kernel, what lies under it times a matrix.
/// Both ways see the same part of an image: places[k] is a view of it for element k of the kernel.
class IntegerConvolution {
 public:
  IntegerConvolution(const Window& w, const Tensor& weight, int64_t groups) : w_(w), groups_(groups) {
    // [K, G, O, C] for a weight [G O, C, kernel...]
    const int64_t taps = numel_of(weight.sizes().subspan(2), "convolution");
    matrices_ = permute(reshape(weight, {groups, weight.size(0) / groups, weight.size(1), taps}), {3, 0, 1, 2});
  }
  Tensor forward(const Tensor& x) const {
    Dims pad;
    for (int64_t d = w_.dims - 1; d >= 0; --d)
      pad.push_back(w_.padding[place_of(d, w_.dims)]), pad.push_back(pad.back());
    const Tensor wide = constant_pad_nd(x, pad);
    Tensor y;
    for (int64_t k = 0; k < matrices_.size(0); ++k) {
      const Tensor part = matmul(select(matrices_, 0, k), columns(under(wide, k)));
      y = y.defined() ? add(y, part) : part;
    }
    return reshape(y, w_.result_sizes(x.size(0), matrices_.size(1) * matrices_.size(2)));
  }
  /// The transposed convolution of x [N, G O, out...] to an image of these sizes.
  Tensor transposed(const Tensor& x, IntList sizes) const {
    Dims wide_sizes(sizes);
    for (int64_t d = 0; d < w_.dims; ++d) wide_sizes[size_t(d + 2)] += 2 * w_.padding[place_of(d, w_.dims)];
    const Tensor wide = zeros(wide_sizes, x.dtype(), x.device());
    for (int64_t k = 0; k < matrices_.size(0); ++k) {
      const Tensor place = under(wide, k);
      const Tensor part = matmul(mT(select(matrices_, 0, k)), columns(x));
      copy_(place, add(place, reshape(part, IntList(place.sizes()))));
    }
    Tensor r = wide;
    for (int64_t d = 0; d < w_.dims; ++d) r = narrow(r, d + 2, w_.padding[place_of(d, w_.dims)], sizes[size_t(d + 2)]);
    return contiguous(r);
  }

 private:
  /// Returns what element k of the kernel sees of a padded image.
  Tensor under(Tensor t, int64_t k) const {
    for (int64_t d = w_.dims - 1; d >= 0; --d) {
      const size_t at = place_of(d, w_.dims);
      const int64_t first = k % w_.kernel[at] * w_.dilation[at];
      t = slice(t, d + 2, first, first + (w_.out[at] - 1) * w_.stride[at] + 1, w_.stride[at]);
      k /= w_.kernel[at];
    }
    return t;
  }
  /// Returns images [N, G C, *] as matrices [N, G, C, L].
  Tensor columns(const Tensor& t) const {
    const int64_t plane = numel_of(t.sizes().subspan(2), "convolution");
    return reshape(t, {t.size(0), groups_, t.size(1) / groups_, plane});
  }

  Window w_;
  int64_t groups_;
  Tensor matrices_;
};

bool is_integer(const Tensor& t) { return is_integral(t.dtype()) && !is_bool(t.dtype()); }

/// Convolves complex tensors by four convolutions of their real and imaginary parts. `convolve_parts` is linear in
/// both.
template <class ConvolveParts>
Tensor convolve_complex(int64_t dims, const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
                        const char* op, ConvolveParts convolve_parts) {
  check_same_dtype(input, "input", weight, "a weight", op);
  check_same_dtype(input, "input", bias, "a bias", op);
  const Tensor a = real(input), b = imag(input), c = real(weight), d = imag(weight);
  Tensor y = complex(sub(convolve_parts(a, c), convolve_parts(b, d)), add(convolve_parts(a, d), convolve_parts(b, c)));
  if (!bias.defined()) return y;
  const int64_t channels = y.size(-dims - 1);
  VESTA_CHECK(bias->dim() == 1 && bias->size(0) == channels, runtime, op, ": expected a bias [", channels, "], got ",
              bias->sizes(), ".");
  Dims column(size_t(dims + 1), 1);
  column[0] = channels;
  return add(y, reshape(*bias, column));
}

Tensor convolve(int64_t dims, const Tensor& input, const Tensor& weight, const MaybeTensor& bias, IntList stride,
                IntList padding, IntList dilation, int64_t groups) {
  if (input.is_complex()) {
    return convolve_complex(dims, input, weight, bias, conv_name(dims), [&](const Tensor& x, const Tensor& w) {
      return convolve(dims, x, w, {}, stride, padding, dilation, groups);
    });
  }
  if (is_integer(input)) {
    const Tensor x = batch_of(input, dims, conv_name(dims));
    const Window w = check_shapes(x, weight, bias, stride, padding, dilation, groups);
    const Tensor y = with_bias(IntegerConvolution(w, weight, groups).forward(x), bias);
    return input.dim() == dims + 1 ? squeeze(y, 0) : y;
  }
  if (input.dim() == dims + 2) return _convolution(input, weight, bias, stride, padding, dilation, groups);
  return squeeze(_convolution(batch_of(input, dims, conv_name(dims)), weight, bias, stride, padding, dilation, groups),
                 0);
}

/// Convolves with as much padding as keeps the size. The op pads both sides alike; where the total is odd the input
/// gets one more on the far side before.
Tensor convolve_padding(int64_t dims, const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
                        IntList stride, TextOnly padding, IntList dilation, int64_t groups) {
  const char* op = conv_name(dims);
  if (padding == "valid") return convolve(dims, input, weight, bias, stride, 0, dilation, groups);
  VESTA_CHECK(padding == "same", value, op, ": expected padding 'valid', 'same' or integers, got '", padding,
              "' (padding).");
  VESTA_CHECK(std::ranges::all_of(stride, [](int64_t s) { return s == 1; }), runtime, op,
              ": padding='same' is not supported for strided convolutions.");
  VESTA_CHECK(weight.dim() == dims + 2, value, op, ": expected a ", dims + 2,
              "-d weight [out, in / groups, kernel...], got ", weight.sizes(), ".");
  const Spatial steps = spatial_of(dilation, dims, 1, 1, op, "dilation");
  Dims both, behind(size_t(2 * dims));
  bool odd = false;
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t total = steps[place_of(d, dims)] * (weight.sizes()[size_t(d + 2)] - 1);
    both.push_back(total / 2);
    behind[size_t(2 * (dims - 1 - d) + 1)] = total % 2;
    odd = odd || total % 2;
  }
  return convolve(dims, odd ? constant_pad_nd(input, behind) : input, weight, bias, stride, both, dilation, groups);
}

/// The transposed convolution: the gradient of a convolution's input, for a gradient `input`.
Tensor convolve_transposed(int64_t dims, const Tensor& input, const Tensor& weight, const MaybeTensor& bias,
                           IntList stride, IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
  constexpr const char* kNames[] = {"conv_transpose1d", "conv_transpose2d", "conv_transpose3d"};
  const char* op = kNames[dims - 1];
  if (input.is_complex()) {
    return convolve_complex(dims, input, weight, bias, op, [&](const Tensor& x, const Tensor& w) {
      return convolve_transposed(dims, x, w, {}, stride, padding, output_padding, groups, dilation);
    });
  }
  const Tensor x = batch_of(input, dims, op);
  VESTA_CHECK(weight.dim() == dims + 2, runtime, op, ": expected a ", dims + 2,
              "-d weight [in, out / groups, kernel...], got ", weight.sizes(), ".");
  if (!is_integer(x)) check_floating(x, op);
  check_same_dtype(x, "input", weight, "a weight", op);
  check_same_dtype(x, "input", bias, "a bias", op);
  VESTA_CHECK(groups >= 1, runtime, op, ": expected groups >= 1, got ", groups, ".");
  VESTA_CHECK(x.size(1) == weight.size(0) && weight.size(0) % groups == 0, runtime, op, ": Given transposed=True, ",
              "weight of size ", weight.sizes(), ", expected input ", x.sizes(), " to have ", weight.size(0),
              " channels, divisible by groups=", groups, ".");
  const int64_t channels = checked_mul(weight.size(1), groups, op);
  VESTA_CHECK(!bias.defined() || (bias->dim() == 1 && bias->size(0) == channels), runtime, op, ": expected a bias [",
              channels, "], got ", bias.defined() ? bias->sizes() : IntSpan(), ".");
  const Spatial s = spatial_of(stride, dims, 1, 1, op, "stride"), p = spatial_of(padding, dims, 0, 0, op, "padding"),
                more = spatial_of(output_padding, dims, 0, 0, op, "output_padding"),
                step = spatial_of(dilation, dims, 1, 1, op, "dilation");
  Dims sizes{x.size(0), channels};
  bool none = false;
  for (int64_t d = 0; d < dims; ++d) {
    const size_t at = place_of(d, dims);
    VESTA_CHECK(more[at] < std::max(s[at], step[at]), runtime, op,
                ": output padding must be smaller than either stride or dilation, but got output_padding ",
                IntSpan(output_padding), ", stride ", IntSpan(stride), " and dilation ", IntSpan(dilation), ".");
    const int64_t reach = checked_mul(step[at], weight.size(d + 2) - 1, op) + 1;
    const int64_t n = checked_mul(x.size(d + 2) - 1, s[at], op) - 2 * p[at] + reach + more[at];
    VESTA_CHECK(x.size(d + 2) > 0 && n >= 0, runtime, op, ": Output size is too small: input ", x.sizes(), ", weight ",
                weight.sizes(), ", padding ", IntSpan(padding), ".");
    sizes.push_back(n);
    none = none || n == 0;
  }
  if (none) {  // no place of a larger result: with less padding, which alone makes it so small
    Dims less;
    for (int64_t d = 0; d < dims; ++d) less.push_back(p[place_of(d, dims)] - (sizes[size_t(d + 2)] == 0 ? 1 : 0));
    Tensor y = convolve_transposed(dims, input, weight, bias, stride, less, output_padding, groups, dilation);
    for (int64_t d = 0; d < dims; ++d) {
      if (sizes[size_t(d + 2)] == 0) y = narrow(y, d - dims, 0, 0);
    }
    return contiguous(y);
  }
  Tensor y;
  if (is_integer(x)) {
    Window w = conv_window(sizes, weight.sizes(), stride, padding, dilation, groups, op);
    take_windows_of(w, x, x.size(0), weight.size(0), op);
    y = with_bias(IntegerConvolution(w, weight, groups).transposed(x, sizes), bias);
    if (bias.defined() && convolution_is_channels_last(x, weight)) y = to_channels_last(y);
  } else {
    y = _convolution_backward_input(x, weight, sizes, stride, padding, dilation, groups,
                                    convolution_is_channels_last(x, weight), bias);
  }
  return input.dim() == dims + 1 ? squeeze(y, 0) : y;
}

}  // namespace

Tensor conv1d_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                        IntList dilation, int64_t groups) {
  return convolve(1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                        IntList dilation, int64_t groups) {
  return convolve(2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, IntList padding,
                        IntList dilation, int64_t groups) {
  return convolve(3, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv1d(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, TextOnly padding,
              IntList dilation, int64_t groups) {
  return convolve_padding(1, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv2d(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, TextOnly padding,
              IntList dilation, int64_t groups) {
  return convolve_padding(2, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv3d(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride, TextOnly padding,
              IntList dilation, int64_t groups) {
  return convolve_padding(3, input, weight, bias, stride, padding, dilation, groups);
}
Tensor conv_transpose1d_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride,
                                  IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
  return convolve_transposed(1, input, weight, bias, stride, padding, output_padding, groups, dilation);
}
Tensor conv_transpose2d_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride,
                                  IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
  return convolve_transposed(2, input, weight, bias, stride, padding, output_padding, groups, dilation);
}
Tensor conv_transpose3d_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride,
                                  IntList padding, IntList output_padding, int64_t groups, IntList dilation) {
  return convolve_transposed(3, input, weight, bias, stride, padding, output_padding, groups, dilation);
}

Tensor convolution_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride,
                             IntList padding, IntList dilation, bool transposed, IntList output_padding,
                             int64_t groups) {
  const int64_t dims = weight.dim() - 2;
  VESTA_CHECK(dims >= 1 && dims <= 3, runtime, "convolution: expected a weight of 1 to 3 spatial dimensions, got ",
              weight.sizes(), ".");
  return transposed ? convolve_transposed(dims, input, weight, bias, stride, padding, output_padding, groups, dilation)
                    : convolve(dims, input, weight, bias, stride, padding, dilation, groups);
}

Tensor cudnn_convolution_relu_composite(const Tensor& input, const Tensor& weight, MaybeTensor bias, IntList stride,
                                        IntList padding, IntList dilation, int64_t groups) {
  return relu(convolution(input, weight, bias, stride, padding, dilation, false, IntList(0), groups));
}
Tensor cudnn_convolution_add_relu_composite(const Tensor& input, const Tensor& weight, const Tensor& z,
                                            MaybeDouble alpha, MaybeTensor bias, IntList stride, IntList padding,
                                            IntList dilation, int64_t groups) {
  const Tensor y = convolution(input, weight, bias, stride, padding, dilation, false, IntList(0), groups);
  return relu(add(y, z, alpha.value_or(1)));
}

}  // namespace vesta
