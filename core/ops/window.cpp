#include <vesta/core/ops/window.h>

#include <vesta/core/base/error.h>

namespace vesta {

Dims Window::result_sizes(int64_t n, int64_t c) const {
  Dims sizes{n, c};
  for (int64_t d = 0; d < dims; ++d) sizes.push_back(out[place_of(d, dims)]);
  return sizes;
}

Spatial spatial_strides(const Tensor& t) {
  Spatial s{0, 0, 0};
  const int64_t dims = t.dim() - 2;
  for (int64_t d = 0; d < dims; ++d) s[place_of(d, dims)] = t.strides()[size_t(d + 2)];
  return s;
}

Spatial spatial_of(IntList v, int64_t dims, int64_t neutral, int64_t least, const char* op, const char* argument) {
  VESTA_CHECK(v.size() == 1 || int64_t(v.size()) == dims, runtime, op, ": expected one integer or ", dims, " for ",
              argument, ", got ", IntSpan(v), ".");
  Spatial s{neutral, neutral, neutral};
  for (int64_t d = 0; d < dims; ++d) {
    const int64_t n = v[v.size() == 1 ? 0 : size_t(d)];
    VESTA_CHECK(n >= least, runtime, op, ": expected ", argument, " >= ", least, ", got ", IntSpan(v), ".");
    s[place_of(d, dims)] = n;
  }
  return s;
}

namespace {

/// Puts the sizes of a batch's spatial dimensions into `to`.
void set_sizes(Spatial& to, IntSpan batch) {
  const int64_t dims = int64_t(batch.size()) - 2;
  for (int64_t d = 0; d < dims; ++d) to[place_of(d, dims)] = batch[size_t(d + 2)];
}

/// Raises if the elements of a plane are more than int64 counts: afterwards plane_of() needs no check.
void check_plane(const Spatial& s, const char* op) { checked_mul(checked_mul(s[0], s[1], op), s[2], op); }

/// Returns the spatial numbers of `s`, for messages.
Dims shown(const Spatial& s, int64_t dims) {
  Dims r;
  for (int64_t d = 0; d < dims; ++d) r.push_back(s[place_of(d, dims)]);
  return r;
}

}  // namespace

Window conv_window(IntSpan input, IntSpan weight, IntList stride, IntList padding, IntList dilation, int64_t groups,
                   const char* op) {
  Window w;
  const int64_t dims = w.dims = int64_t(input.size()) - 2;
  VESTA_CHECK(dims >= 1 && dims <= 3, runtime, op, ": expected a batch of 1 to 3 spatial dimensions, got ", input, ".");
  VESTA_CHECK(weight.size() == input.size(), runtime, op, ": expected a ", dims + 2,
              "-d weight [out, in / groups, kernel...], got ", weight, ".");
  set_sizes(w.kernel, weight);
  set_sizes(w.in, input);
  for (int64_t k : w.kernel) VESTA_CHECK(k >= 1, runtime, op, ": expected a kernel size >= 1, got ", weight, ".");
  w.stride = spatial_of(stride, dims, 1, 1, op, "stride");
  w.padding = spatial_of(padding, dims, 0, 0, op, "padding");
  w.dilation = spatial_of(dilation, dims, 1, 1, op, "dilation");
  VESTA_CHECK(groups >= 1, runtime, op, ": expected groups >= 1, got ", groups, ".");
  VESTA_CHECK(weight[0] % groups == 0 && weight[0] >= 0, runtime, op,
              ": expected out_channels divisible by groups, got ", weight[0], " and ", groups, ".");
  VESTA_CHECK(input[1] == weight[1] * groups, runtime, op, ": Given groups=", groups, ", weight of size ", weight,
              ", expected input", input, " to have ", weight[1] * groups, " channels, but got ", input[1],
              " channels instead.");
  for (size_t d = 0; d < 3; ++d) {
    const int64_t reach = checked_add(checked_mul(w.dilation[d], w.kernel[d] - 1, op), 1, op);
    const int64_t padded = checked_add(w.in[d], checked_mul(2, w.padding[d], op), op);
    VESTA_CHECK(padded >= reach, runtime, op, ": the kernel ", IntSpan(shown(w.kernel, dims)), " with dilation ",
                IntSpan(shown(w.dilation, dims)), " is larger than the input ", IntSpan(shown(w.in, dims)),
                " with padding ", IntSpan(shown(w.padding, dims)),
                " (Kernel size can't be greater than actual input size).");
    w.out[d] = (padded - reach) / w.stride[d] + 1;
  }
  for (const Spatial& s : {w.kernel, w.in, w.out}) check_plane(s, op);
  return w;
}

Window pool_window(IntSpan input, IntList kernel, IntList stride, IntList padding, IntList dilation, bool ceil_mode,
                   const char* op) {
  Window w;
  const int64_t dims = w.dims = int64_t(input.size()) - 2;
  VESTA_CHECK(dims >= 1 && dims <= 3, runtime, op, ": expected a batch of 1 to 3 spatial dimensions, got ", input, ".");
  w.kernel = spatial_of(kernel, dims, 1, 1, op, "kernel_size");
  w.stride = stride.empty() ? w.kernel : spatial_of(stride, dims, 1, 1, op, "stride");
  w.padding = spatial_of(padding, dims, 0, 0, op, "padding");
  w.dilation = spatial_of(dilation, dims, 1, 1, op, "dilation");
  set_sizes(w.in, input);
  for (size_t d = 0; d < 3; ++d) {
    VESTA_CHECK(w.padding[d] <= w.kernel[d] / 2, runtime, op,
                ": pad should be at most half of effective kernel size, but got pad=", w.padding[d],
                ", kernel_size=", w.kernel[d], ".");
    const int64_t reach = checked_add(checked_mul(w.dilation[d], w.kernel[d] - 1, op), 1, op);
    const int64_t room = checked_add(w.in[d], 2 * w.padding[d], op) - reach;
    VESTA_CHECK(w.in[d] > 0 && room >= (ceil_mode ? 1 - w.stride[d] : 0), runtime, op,
                ": Output size is too small: input ", input, ", kernel_size ", IntSpan(shown(w.kernel, dims)), ".");
    w.out[d] = room / w.stride[d] + 1;
    if (ceil_mode && room > 0 && room % w.stride[d] > 0) ++w.out[d];  // without a sum that may be too large
    // A window that starts in the padding behind the input has no element.
    if (ceil_mode && w.out[d] - 1 > (w.in[d] + w.padding[d] - 1) / w.stride[d]) --w.out[d];
    VESTA_CHECK(w.out[d] > 0, runtime, op, ": Output size is too small: input ", input, ", kernel_size ",
                IntSpan(shown(w.kernel, dims)), ".");
  }
  for (const Spatial& s : {w.in, w.out}) check_plane(s, op);
  return w;
}

}  // namespace vesta
