#include <vesta/core/ops/pool.h>

#include <algorithm>

#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/define.h>
#include <vesta/core/ops/docs/pool.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {

VESTA_DEFINE_OPS(VESTA_OPS_POOL)

Window check_max_pool(const Tensor& input, IntList kernel, IntList stride, IntList padding, IntList dilation,
                      bool ceil_mode) {
  constexpr const char* kNames[] = {"max_pool1d", "max_pool2d", "max_pool3d"};
  const char* op = input.dim() >= 3 && input.dim() <= 5 ? kNames[input.dim() - 3] : "_max_pool";
  const Window w = pool_window(input.sizes(), kernel, stride, padding, dilation, ceil_mode, op);
  VESTA_CHECK(kReals.has(input.dtype()), type, op, ": expected a real dtype, got ", input.dtype(), " (input).");
  return w;
}

int64_t check_max_pool_backward(const Tensor& grad, const Tensor& indices, IntList input_size) {
  constexpr const char* op = "_max_pool_backward";
  VESTA_CHECK(std::ranges::equal(grad.sizes(), indices.sizes()), value, op, ": expected indices of the shape of grad ",
              grad.sizes(), ", got ", indices.sizes(), ".");
  VESTA_CHECK(int64_t(input_size.size()) == grad.dim() && grad.dim() >= 3 && grad.dim() <= 5 &&
                  std::ranges::equal(grad.sizes().first(2), input_size.first(2)),
              value, op, ": expected an input_size [N, C, ...] of grad's dimensions ", grad.sizes(), ", got ",
              IntSpan(input_size), ".");
  VESTA_CHECK(indices.dtype() == DType::int64, type, op, ": expected int64 indices, got ", indices.dtype(), ".");
  VESTA_CHECK(kFloats.has(grad.dtype()), not_implemented, op, ": expected a floating-point dtype, got ", grad.dtype(),
              ".");
  return numel_of(input_size.subspan(2), op);
}

namespace {

/// A pooling function: its name and how many dimensions its windows have.
struct Pooling {
  const char* op;
  int64_t dims;
  /// Checks that an input is an image or a batch of images; returns it as a batch.
  Tensor batch(const Tensor& input) const {
    VESTA_CHECK(input.dim() == dims + 1 || input.dim() == dims + 2, runtime, op, ": Expected ", dims + 1, "D or ",
                dims + 2, "D input, but got ", input.sizes(), ".");
    VESTA_CHECK(input.dim() == dims + 2 || input.size(0) > 0, runtime, op, ": Expected ", dims + 1, "D or ", dims + 2,
                "D (batch mode) tensor with optional 0 dim batch size for input, but got ", input.sizes(), ".");
    return input.dim() == dims + 1 ? unsqueeze(input, 0) : input;
  }
  /// Brings the result of a batch to the form of the input.
  Tensor unbatch(const Tensor& input, const Tensor& result) const {
    return input.dim() == dims + 1 ? squeeze(result, 0) : result;
  }
  /// Returns what averages and adaptive poolings are computed of: as in PyTorch, those of three dimensions give rows
  /// (but the mean of whole images).
  Tensor averaged(const Tensor& input) const {
    const Tensor x = batch(input);
    return dims == 3 ? to_rows(x) : x;
  }
  TensorPair unbatch(const Tensor& input, const TensorPair& r) const {
    return {unbatch(input, std::get<0>(r)), unbatch(input, std::get<1>(r))};
  }
};

/// Returns a result, or a copy of it if nothing was computed and it shares the input's memory.
Tensor own_memory(const Tensor& result, const Tensor& input) {
  return result.impl()->storage() == input.impl()->storage() ? clone_image(result) : result;
}

TensorPair max_pool(const Pooling& p, const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                    IntList dilation, bool ceil_mode) {
  const Tensor x = p.batch(input);
  return flat_step(p.unbatch(input, _max_pool(x, kernel_size, stride, padding, dilation, ceil_mode)), nullptr);
}

/// Averages windows, one dimension after the other: the mean over a box is the mean of means.
Tensor avg_pool(const Pooling& p, const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                bool ceil_mode, bool count_include_pad, MaybeInt divisor) {
  Tensor x = p.averaged(input);
  const DType dtype = x.dtype();
  const bool integers = is_integral(dtype) && !is_bool(dtype);
  if (!integers) check_floating(x, p.op);
  VESTA_CHECK(!divisor || *divisor != 0, runtime, p.op, ": divisor must be not zero.");
  const Window w = pool_window(x.sizes(), kernel_size, stride, padding, 1, ceil_mode, p.op);
  const Dims result = w.result_sizes(x.size(0), x.size(1));
  if (!has_elements(result, x)) return p.unbatch(input, without_elements(x, result));
  Tensor counts = wrapped(double(divisor.value_or(1)));  // of integers, whose quotient is cut off once, at the end
  const auto windows_along = [&](int64_t d) {
    const size_t at = place_of(d, p.dims);
    Rows rows(w.in[at]);
    Tensor count_along = empty(integers ? w.out[at] : 0, DType::float64);
    for (int64_t o = 0; o < w.out[at]; ++o) {
      const int64_t start = o * w.stride[at] - w.padding[at];
      const int64_t room = w.in[at] + w.padding[at] - start;  // to the end of the padded input
      const int64_t end = start + std::min(w.kernel[at], room);
      const int64_t first = std::max<int64_t>(start, 0), last = std::min(end, w.in[at]);
      const double count = divisor ? 1 : double(std::max<int64_t>(count_include_pad ? end - start : last - first, 1));
      rows.add_range(first, last, integers ? 1 : 1 / count);
      if (integers) count_along.data_ptr<double>()[o] = count;
    }
    if (integers) counts = mul(unsqueeze(counts, -1), count_along);
    return rows;
  };
  if (p.dims == 2 && !integers && !divisor) {
    return p.unbatch(input, resample_planes(x, 2, windows_along(0), windows_along(1)));
  }
  x = x.to(integers ? DType::float64 : compute_type(dtype));
  for (int64_t d = 0; d < p.dims; ++d) x = resample(x, d + 2, windows_along(d));
  if (integers) x = trunc(div(x, table_on(counts, x.device())));
  else if (divisor) x = div(x, double(*divisor));
  return own_memory(p.unbatch(input, x.to(dtype)), input);
}

/// The windows of an adaptive pooling: [floor(o in / out), ceil((o + 1) in / out)).
struct AdaptiveWindow {
  int64_t in, out;
  int64_t start(int64_t o) const { return int64_t(Wide(o) * in / out); }
  int64_t end(int64_t o) const { return int64_t((Wide(o + 1) * in + out - 1) / out); }

 private:
  using Wide = __int128;  // an expanded input may be longer than any memory
};

Dims adaptive_sizes(const Pooling& p, const Tensor& x, IntList output_size) {
  VESTA_CHECK(output_size.size() == 1 || int64_t(output_size.size()) == p.dims, runtime, p.op,
              ": output_size must be one integer or ", p.dims, ", got ", IntSpan(output_size), ".");
  Dims sizes;
  for (int64_t d = 0; d < p.dims; ++d) {
    sizes.push_back(output_size[output_size.size() == 1 ? 0 : size_t(d)]);
    VESTA_CHECK(sizes[size_t(d)] >= 0, runtime, p.op,
                ": elements of output_size must be greater than or equal to 0, got ", IntSpan(output_size), ".");
    VESTA_CHECK(x.size(d + 2) > 0, runtime, p.op,
                ": Expected input to have non-zero size for non-batch dimensions, but input has sizes ", x.sizes(),
                ".");
  }
  return sizes;
}

/// Returns the sizes of the batch of results.
Dims result_sizes(const Tensor& x, IntSpan sizes) {
  Dims result{x.size(0), x.size(1)};
  for (int64_t n : sizes) result.push_back(n);
  return result;
}

Tensor adaptive_avg_pool(const Pooling& p, const Tensor& input, IntList output_size) {
  constexpr const char* kSteps[] = {"SqueezeBackward1", "AdaptiveAvgPool2DBackward0", "AdaptiveAvgPool3DBackward0"};
  Tensor x = p.batch(input);
  const Dims sizes = adaptive_sizes(p, x, output_size), result = result_sizes(x, sizes);
  check_floating(x, p.op);
  const bool of_images = std::ranges::all_of(sizes, [](int64_t n) { return n == 1; });
  if (!of_images) x = p.averaged(input);
  if (!has_elements(result, x)) return p.unbatch(input, without_elements(x, result));
  if (of_images) {
    Dims spatial;
    for (int64_t d = 2; d < x.dim(); ++d) spatial.push_back(d);
    // A sum's order goes by the strides: that of rows gives the bits of every layout. Planes are small here.
    const Tensor r = mean(contiguous(x), spatial, true);
    return p.unbatch(input, suggests_channels_last(x) ? to_channels_last(r) : r);
  }
  const auto window = [&](int64_t d) { return AdaptiveWindow{x.size(d + 2), sizes[size_t(d)]}; };
  const auto windows_along = [&](int64_t d) {
    const AdaptiveWindow w = window(d);
    Rows rows(w.in);
    for (int64_t o = 0; o < w.out; ++o) rows.add_range(w.start(o), w.end(o), 1 / double(w.end(o) - w.start(o)));
    return rows;
  };
  const auto changes = [&](int64_t d) { return window(d).in != window(d).out; };
  if (p.dims == 2 && changes(0) && changes(1)) {
    return flat_step(p.unbatch(input, resample_planes(x, 2, windows_along(0), windows_along(1))), kSteps[1]);
  }
  const DType dtype = x.dtype();
  bool unchanged = true;
  for (int64_t d = 0; d < p.dims; ++d) unchanged = unchanged && !changes(d);
  if (unchanged) return own_memory(p.unbatch(input, x), input);
  x = x.to(compute_type(dtype));
  for (int64_t d = 0; d < p.dims; ++d) {
    if (changes(d)) x = resample(x, d + 2, windows_along(d));
  }
  return flat_step(p.unbatch(input, x.to(dtype)), kSteps[p.dims - 1]);
}

/// Windows differ by at most one element, so that each is read as one of the longest, its last element again: the same
/// maximum, and the first index of it.
TensorPair adaptive_max_pool(const Pooling& p, const Tensor& input, IntList output_size) {
  Tensor x = p.averaged(input);
  const Dims sizes = adaptive_sizes(p, x, output_size), result = result_sizes(x, sizes);
  VESTA_CHECK(kReals.has(x.dtype()), not_implemented, p.op, ": expected a real dtype, got ", x.dtype(), ".");
  if (!has_elements(result, x)) {
    return p.unbatch(input, {without_elements(x, result), empty(result, DType::int64, x.device())});
  }
  const Dims planes(x.sizes().subspan(2));
  Dims longest;
  bool even = true;
  for (int64_t d = 0; d < p.dims; ++d) {
    even = even && sizes[size_t(d)] > 0 && planes[size_t(d)] % sizes[size_t(d)] == 0;
    longest.push_back(even ? planes[size_t(d)] / sizes[size_t(d)] : 0);
  }
  if (even) return p.unbatch(input, _max_pool(x, longest, {}, 0, 1, false));
  std::vector<Tensor> places;
  longest.clear();
  for (int64_t d = 0; d < p.dims; ++d) {
    const AdaptiveWindow w{x.size(d + 2), sizes[size_t(d)]};
    int64_t most = 1;
    for (int64_t o = 0; o < w.out; ++o) most = std::max(most, w.end(o) - w.start(o));
    Tensor at = empty({checked_mul(w.out, most, p.op)}, DType::int64);
    for (int64_t o = 0; o < w.out; ++o) {
      for (int64_t k = 0; k < most; ++k) {
        at.data_ptr<int64_t>()[o * most + k] = std::min(w.start(o) + k, w.end(o) - 1);
      }
    }
    places.push_back(table_on(at, x.device()));
    longest.push_back(most);
  }
  const bool last = suggests_channels_last(x), records = layer_state.grad_enabled && x.requires_grad();
  const auto pooled = [&] {
    NoGrad off;
    Tensor copies = last ? channels_behind(x) : x;
    for (int64_t d = 0; d < p.dims; ++d) copies = index_select(copies, d + (last ? 1 : 2), places[size_t(d)]);
    return _max_pool(last ? channels_second(copies) : copies, longest, {}, 0, 1, false);
  };
  auto [values, indices] = pooled();
  // From an index among the copies to that of the input, by a table of a plane of copies.
  Tensor table = places[0];
  for (int64_t d = 1; d < p.dims; ++d) {
    table = add(unsqueeze(mul(table, wrapped(planes[size_t(d)])), -1), places[size_t(d)]);
  }
  Tensor at = reshape(index_select(flatten(table), 0, flatten(indices)), indices.sizes());
  if (last) at = to_channels_last(at);
  // The gradient goes to where the maxima were: that of the copies would be written and added up again.
  if (records && last) {  // a gradient with channels last, too
    const Tensor by_pixels = channels_behind(at);
    const Tensor chosen = gather(flatten(channels_behind(x), 1, p.dims), 1, flatten(by_pixels, 1, p.dims));
    values = channels_second(reshape(chosen, by_pixels.sizes()));
  } else if (records) {
    values = reshape(gather(flatten(x, 2), 2, flatten(at, 2)), at.sizes());
  }
  return p.unbatch(input, TensorPair{values, at});
}

}  // namespace

// The indices are what the gradient needs: where nothing is recorded, a kernel need not write them.
Tensor _max_pool_values_composite(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,
                                  IntList dilation, bool ceil_mode) {
  return std::get<0>(_max_pool(input, kernel_size, stride, padding, dilation, ceil_mode));
}

// The functions of 1 to 3 dimensions.
#define VESTA_POOLING(n)                                                                                             \
  Tensor max_pool##n##d_composite(const Tensor& input, IntList kernel_size, IntList stride, IntList padding,         \
                                  IntList dilation, bool ceil_mode) {                                                \
    const Pooling p{"max_pool" #n "d", n};                                                                           \
    const Tensor x = p.batch(input);                                                                                 \
    return flat_step(p.unbatch(input, _max_pool_values(x, kernel_size, stride, padding, dilation, ceil_mode)),       \
                     nullptr);                                                                                       \
  }                                                                                                                  \
  TensorPair max_pool##n##d_with_indices_composite(const Tensor& input, IntList kernel_size, IntList stride,         \
                                                   IntList padding, IntList dilation, bool ceil_mode) {              \
    return max_pool({"max_pool" #n "d", n}, input, kernel_size, stride, padding, dilation, ceil_mode);               \
  }                                                                                                                  \
  Tensor adaptive_avg_pool##n##d_composite(const Tensor& input, IntList output_size) {                               \
    return adaptive_avg_pool({"adaptive_avg_pool" #n "d", n}, input, output_size);                                   \
  }                                                                                                                  \
  TensorPair adaptive_max_pool##n##d_composite(const Tensor& input, IntList output_size) {                           \
    return flat_step(adaptive_max_pool({"adaptive_max_pool" #n "d", n}, input, output_size),                        \
                      n == 1 ? "SqueezeBackward1" : "AdaptiveMaxPool" #n "DBackward0");                              \
  }
VESTA_POOLING(1)
VESTA_POOLING(2)
VESTA_POOLING(3)
#undef VESTA_POOLING

Tensor avg_pool1d_composite(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                            bool count_include_pad) {
  return flat_step(avg_pool({"avg_pool1d", 1}, input, kernel_size, stride, padding, ceil_mode, count_include_pad, {}),
                   "SqueezeBackward1");
}
Tensor avg_pool2d_composite(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                            bool count_include_pad, MaybeInt divisor_override) {
  return flat_step(
      avg_pool({"avg_pool2d", 2}, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override),
      "AvgPool2DBackward0");
}
Tensor avg_pool3d_composite(const Tensor& input, IntList kernel_size, IntList stride, IntList padding, bool ceil_mode,
                            bool count_include_pad, MaybeInt divisor_override) {
  return flat_step(
      avg_pool({"avg_pool3d", 3}, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override),
      "AvgPool3DBackward0");
}

// ---- windows at random ----

void check_fractional_max_pool(const Tensor& input, const Tensor& samples, IntList outputs, IntList kernel) {
  const int64_t dims = input.dim() - 2;
  VESTA_CHECK((dims == 2 || dims == 3) && int64_t(outputs.size()) == dims && int64_t(kernel.size()) == dims, value,
              "_fractional_max_pool: expected a batch of 2 or 3 spatial dimensions, and as many sizes, got ",
              input.sizes(), ", ", IntSpan(outputs), " and ", IntSpan(kernel), ".");
  const std::string op = "fractional_max_pool" + std::to_string(dims) + "d";
  VESTA_CHECK(is_float(input.dtype()) && is_float(samples.dtype()), not_implemented, op,
              ": expected floating-point dtypes, got ", input.dtype(), " (input) and ", samples.dtype(),
              " (_random_samples).");
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t size = input.size(i + 2), output = outputs[size_t(i)], taps = kernel[size_t(i)];
    VESTA_CHECK(output >= 1 && taps >= 1, value, op, ": expected sizes of at least 1, got ", IntSpan(outputs), " and ",
                IntSpan(kernel), " (output_size, kernel_size).");
    VESTA_CHECK(output <= size && taps <= size - output + 1, runtime, op, ": pool size (", taps,
                ") too large relative to input size (", size, ").");
  }
  VESTA_CHECK(samples.dim() == 3 && samples.size(0) >= input.size(0) && samples.size(1) == input.size(1) &&
                  samples.size(2) == dims,
              runtime, op, ": expected [at least ", input.size(0), ", ", input.size(1), ", ", dims, "] numbers, got ",
              samples.sizes(), " (_random_samples).");
}

namespace {

/// Returns where each window begins [N, C, output], from one number of [0, 1) for each channel [N, C] (Graham,
/// "Fractional max-pooling", 2014): floor((i + u) * alpha) - floor(u * alpha), the last window at the end.
Tensor window_starts(const Tensor& samples, int64_t size, int64_t output, int64_t kernel) {
  const Scalar alpha = double(size - kernel) / double(std::max<int64_t>(output - 1, 1));
  const Tensor steps = arange(0, output, 1, samples.dtype(), samples.device()), u = unsqueeze(samples, -1);
  const Tensor starts = sub(floor(mul(add(steps, u), wrapped(alpha))), floor(mul(u, wrapped(alpha)))).to(DType::int64);
  fill_(select(starts, -1, output - 1), size - kernel);
  return starts;
}

}  // namespace

TensorPair _fractional_max_pool_composite(const Tensor& input, const Tensor& samples, IntList outputs, IntList kernel) {
  check_fractional_max_pool(input, samples, outputs, kernel);
  const int64_t dims = input.dim() - 2, batch = input.size(0), channels = input.size(1);
  const Tensor numbers = narrow(samples.detach(), 0, 0, batch);
  Tensor places = zeros(Dims(size_t(2 * dims + 2), 1), DType::int64, input.device());
  int64_t taps = 1, windows = 1;
  for (int64_t i = 0; i < dims; ++i) {
    const int64_t size = input.size(i + 2), output = outputs[size_t(i)], k = kernel[size_t(i)];
    // The order of the numbers is PyTorch's: width, height for images, but depth, height, width for volumes.
    const Tensor starts = window_starts(select(numbers, -1, dims == 2 ? 1 - i : i), size, output, k);
    const Tensor line = add(unsqueeze(starts, -1), arange(0, k, 1, DType::int64, input.device()));
    Dims shape(size_t(2 * dims + 2), 1);
    shape[0] = batch, shape[1] = channels, shape[size_t(2 + i)] = output, shape[size_t(2 + dims + i)] = k;
    places = add(mul(places, wrapped(size)), reshape(line, shape));
    taps *= k, windows *= output;
  }
  places = flatten(places, 2 + dims);  // [N, C, outputs..., taps]
  const Tensor flat = reshape(places, {batch, channels, windows * taps});
  const Tensor values = reshape(gather(flatten(input, 2), 2, flat), places.sizes());
  const auto [best, first] = max(values.detach(), -1, true);
  const Tensor nan = flip(isnan(values.detach()), -1).to(DType::uint8);  // of several NaNs the last, as PyTorch has it
  const Tensor last_nan = sub(wrapped(taps - 1), argmax(nan, -1, true));
  const Tensor tap = where(isnan(best), last_nan, first);
  return {squeeze(gather(values, -1, tap), -1), squeeze(gather(places, -1, tap), -1)};
}

}  // namespace vesta
