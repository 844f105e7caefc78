#include <vesta/nn/layers/norm.h>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/pool.h>
#include <vesta/core/ops/view.h>

namespace vesta::nn {
namespace detail {

template <class Options>
ChannelStatistics make_channel_statistics(Module& m, const Options& o) {
  VESTA_CHECK(o.num_features >= 0, value, "normalization: expected num_features >= 0, got ", o.num_features, ".");
  const IntList sizes(o.num_features);
  const bool track = o.track_running_stats;
  return {.weight = m.register_parameter("weight", o.affine ? ones(sizes, o.dtype) : Tensor()),
          .bias = m.register_parameter("bias", o.bias ? zeros(sizes, o.dtype) : Tensor()),
          .running_mean = m.register_buffer("running_mean", track ? zeros(sizes, o.dtype) : Tensor()),
          .running_var = m.register_buffer("running_var", track ? ones(sizes, o.dtype) : Tensor()),
          .num_batches_tracked =
              m.register_buffer("num_batches_tracked", track ? zeros(IntList(), DType::int64) : Tensor())};
}
template VESTA_API ChannelStatistics make_channel_statistics(Module&, const BatchNormOptions&);
template VESTA_API ChannelStatistics make_channel_statistics(Module&, const InstanceNormOptions&);

Tensor batch_normalized(const std::string& op, size_t n, const Tensor& x, const ChannelStatistics& s,
                        const BatchNormOptions& o, bool training) {
  VESTA_CHECK(x.dim() == int64_t(n) + 2 || (n == 1 && x.dim() == 2), value, op, ": expected ",
              n == 1   ? "2D or 3D"
              : n == 2 ? "4D"
                       : "5D",
              " input (got ", x.dim(), "D input).");
  double momentum = o.momentum.value_or(0);
  if (training && s.num_batches_tracked.defined()) {
    NoGrad off;
    ops::add(s.num_batches_tracked, wrapped(1), 1, Out{&s.num_batches_tracked, Out::inplace});
    if (!o.momentum) {
      const bool counted = has_values(s.num_batches_tracked);
      momentum = counted ? 1.0 / double(s.num_batches_tracked.item<int64_t>()) : 1.0;
    }
  }
  VESTA_CHECK(!training || x.numel() != x.size(1), value, op,
              ": Expected more than 1 value per channel when training, got input size ", x.sizes(), ".");
  return batch_norm(x, s.running_mean, s.running_var, s.weight, s.bias, training || !s.running_mean.defined(), momentum,
                    o.eps);
}

Tensor instance_normalized(const std::string& op, size_t n, const Tensor& input, const ChannelStatistics& s,
                           const InstanceNormOptions& o, bool training) {
  const int64_t unbatched = int64_t(n) + 1, place = input.dim() - unbatched;
  VESTA_CHECK(place == 0 || place == 1, value, op, ": expected ", unbatched, "D or ", unbatched + 1, "D input (got ",
              input.dim(), "D input).");
  VESTA_CHECK(!o.affine || input.size(place) == o.num_features, value, op, ": expected input's size at dim=", place,
              " to match num_features (", o.num_features, "), but got: ", input.size(place), ".");
  const Tensor x = place == 0 ? unsqueeze(input, 0) : input;
  const bool own = training || !o.track_running_stats;
  int64_t places = 1;
  for (int64_t d = 2; d < x.dim(); ++d) places *= x.size(d);
  VESTA_CHECK(!own || places != 1, value, op, ": Expected more than 1 spatial element when training, got input size ",
              x.sizes(), ".");
  const Tensor y =
      instance_norm(x, s.weight, s.bias, s.running_mean, s.running_var, own, o.momentum.value_or(0), o.eps, false);
  return place == 0 ? squeeze(y, 0) : y;
}

/// Raises if a normalised shape is empty or has a negative size.
void check_shape(const char* op, const Shape& shape) {
  for (int64_t size : shape.v) {
    VESTA_CHECK(size >= 0, value, op, ": expected sizes >= 0, got ", IntSpan(shape.v), " (normalized_shape).");
  }
}

}  // namespace detail

LayerNorm::LayerNorm(Options o)
    : LayerOf([&] {
        detail::check_shape("LayerNorm", o.normalized_shape);
        o.bias = o.bias && o.elementwise_affine;
        return o;
      }()) {
  const IntList sizes(options.normalized_shape);
  weight = register_parameter("weight", o.elementwise_affine ? ones(sizes, o.dtype) : Tensor());
  bias = register_parameter("bias", options.bias ? zeros(sizes, o.dtype) : Tensor());
}

RMSNorm::RMSNorm(Options o) : LayerOf(o) {
  detail::check_shape("RMSNorm", o.normalized_shape);
  weight = register_parameter("weight", o.elementwise_affine ? ones(o.normalized_shape, o.dtype) : Tensor());
}

GroupNorm::GroupNorm(Options o) : LayerOf(detail::with_affine_bias(o)) {
  VESTA_CHECK(o.num_groups > 0 && o.num_channels >= 0 && o.num_channels % o.num_groups == 0, value,
              "GroupNorm: num_channels (", o.num_channels, ") must be divisible by num_groups (", o.num_groups, ").");
  const IntList sizes(o.num_channels);
  weight = register_parameter("weight", o.affine ? ones(sizes, o.dtype) : Tensor());
  bias = register_parameter("bias", options.bias ? zeros(sizes, o.dtype) : Tensor());
}

Tensor GroupNorm::forward(const Tensor& input) {
  VESTA_CHECK(input.dim() >= 2, runtime, "GroupNorm: Expected at least 2 dimensions for input tensor but received ",
              input.dim(), ".");
  VESTA_CHECK(input.numel() != options.num_groups, value,
              "GroupNorm: Expected more than 1 value per channel when training, got input size ", input.sizes(), ".");
  return group_norm(input, options.num_groups, weight, bias, options.eps);
}

Tensor LocalResponseNorm::forward(const Tensor& input) {
  const int64_t size = options.size;
  VESTA_CHECK(input.dim() >= 3, value, "LocalResponseNorm: Expected 3D or higher dimensionality input (got ",
              input.dim(), " dimensions).");
  VESTA_CHECK(size >= 1, value, "LocalResponseNorm: expected size >= 1, got ", size, " (size).");
  if (input.numel() == 0) return input;
  const Tensor square = unsqueeze(flatten(mul(input, input), 2), 1);  // channels are the lines of an image
  const Tensor zero = zeros(IntList(), square.dtype(), square.device());
  const auto lines = [&](int64_t count) { return expand(zero, {square.size(0), 1, count, square.size(3)}); };
  const Tensor padded = cat({lines(size / 2), square, lines((size - 1) / 2)}, 2);
  const Tensor mean = view(squeeze(avg_pool2d(padded, {size, 1}, 1), 1), input.sizes());
  return div(input, pow(add(mul(mean, options.alpha), options.k), options.beta));
}

Tensor CrossMapLRN2d::forward(const Tensor& input) {
  VESTA_CHECK(input.dim() == 4, value, "CrossMapLRN2d: Expected input to be 4D, got ", input.dim(), "D instead.");
  const int64_t channels = input.size(1), reach = (options.size - 1) / 2 + 1;
  const Tensor square = mul(input, input);
  Tensor total = square;
  for (int64_t shift = 1; shift < std::min(reach, channels); ++shift) {  // windows end at the first and last channel
    const Tensor zero = zeros_like(narrow(square, 1, 0, shift));
    const Tensor after = cat({narrow(square, 1, shift, channels - shift), zero}, 1);
    const Tensor before = cat({zero, narrow(square, 1, 0, channels - shift)}, 1);
    total = add(add(total, after), before);
  }
  return mul(input, pow(add(mul(total, options.alpha / double(options.size)), options.k), -options.beta));
}

}  // namespace vesta::nn
