#include <vesta/nn/layers/conv.h>

#include <algorithm>
#include <cmath>
#include <typeinfo>

#include <vesta/autograd/engine.h>
#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/resample.h>
#include <vesta/nn/init.h>
#include <vesta/nn/layers/activation.h>

namespace vesta::nn::detail {
namespace {

template <class Options>
inline constexpr bool is_transposed = requires(Options o) { o.output_padding; };

template <size_t n>
void check_padding(const std::string& op, const ConvOptions<n>& o) {
  const std::string& word = o.padding.word;
  VESTA_CHECK(word.empty() || word == "same" || word == "valid", value, op, ": Invalid padding string '", word,
              "', should be 'same' or 'valid'.");
  VESTA_CHECK(word != "same" || o.stride == Ints<n>(1), value, op,
              ": padding='same' is not supported for strided convolutions.");
  const std::string& mode = o.padding_mode;
  VESTA_CHECK(mode == "zeros" || mode == "reflect" || mode == "replicate" || mode == "circular", value, op,
              ": padding_mode must be 'zeros', 'reflect', 'replicate' or 'circular', but got '", mode, "'.");
}
template <size_t n>
void check_padding(const std::string&, const ConvTransposeOptions<n>&) {}

void check_at_least(const std::string& op, const char* what, int64_t least, IntSpan given) {
  const bool fits = std::ranges::all_of(given, [&](int64_t n) { return n >= least; });
  VESTA_CHECK(fits, value, op, ": expected ", what, " >= ", least, ", got ", given, ".");
}

/// Returns the padding of every side in the order of pad(): the last dimension first.
template <size_t n>
Dims all_sides(const ConvOptions<n>& o) {
  Dims sides;
  for (size_t d = n; d-- > 0;) {
    const int64_t same = o.dilation.v[d] * (o.kernel_size.v[d] - 1);
    const int64_t before = o.padding.word == "same" ? same / 2 : o.padding.amount.v[d];
    sides.push_back(before);
    sides.push_back(o.padding.word == "same" ? same - before : before);
  }
  return sides;
}

template <size_t n, class Padding>
Tensor convolution(const Tensor& x, const Tensor& w, const Tensor& b, const ConvOptions<n>& o, const Padding& padding) {
  if constexpr (n == 1) return conv1d(x, w, b, o.stride, padding, o.dilation, o.groups);
  else if constexpr (n == 2) return conv2d(x, w, b, o.stride, padding, o.dilation, o.groups);
  else return conv3d(x, w, b, o.stride, padding, o.dilation, o.groups);
}

/// Returns the padding of the output that gives `wanted`, with or without batch and channels.
template <size_t n>
Ints<n> output_padding(const Tensor& input, const ConvTransposeOptions<n>& o, const std::vector<int64_t>& wanted) {
  const auto dims = size_t(input.dim());
  VESTA_CHECK(dims == n + 1 || dims == n + 2, runtime, "ConvTranspose", n, "d: expected ", n + 1, "D (unbatched) or ",
              n + 2, "D (batched) input, but got input of size: ", input.sizes(), ".");
  const size_t lead = dims - n;
  VESTA_CHECK(wanted.size() == n || wanted.size() == n + lead, value, "ConvTranspose", n, "d: for ", input.dim(),
              "D input, output_size must have ", n, " or ", n + lead, " elements (got ", wanted.size(), ").");
  Ints<n> extra;
  for (size_t d = 0; d < n; ++d) {
    const int64_t size = wanted[wanted.size() - n + d];
    const int64_t least = (input.size(int64_t(d + lead)) - 1) * o.stride.v[d] - 2 * o.padding.v[d] +
                          o.dilation.v[d] * (o.kernel_size.v[d] - 1) + 1;
    VESTA_CHECK(size >= least && size < least + o.stride.v[d], value, "ConvTranspose", n,
                "d: requested an output size of ", IntSpan(wanted), ", but valid sizes of dimension ", d,
                " range from ", least, " to ", least + o.stride.v[d] - 1, ".");
    extra.v[d] = size - least;
  }
  return extra;
}

}  // namespace

template <class Options>
std::pair<Tensor, Tensor> make_convolution(Module& module, const std::string& op, const Options& o) {
  constexpr bool transposed = is_transposed<Options>;
  VESTA_CHECK(o.groups > 0, value, op, ": groups must be a positive integer, got ", o.groups, ".");
  check_at_least(op, "in_channels", 0, IntSpan(&o.in_channels, 1));
  check_at_least(op, "out_channels", 0, IntSpan(&o.out_channels, 1));
  check_at_least(op, "kernel_size", 1, o.kernel_size.v);
  check_at_least(op, "stride", 1, o.stride.v);
  check_at_least(op, "dilation", 1, o.dilation.v);
  if constexpr (transposed) {
    check_at_least(op, "padding", 0, o.padding.v);
    check_at_least(op, "output_padding", 0, o.output_padding.v);
  } else {
    check_at_least(op, "padding", 0, o.padding.amount.v);
  }
  VESTA_CHECK(o.in_channels % o.groups == 0, value, op, ": in_channels must be divisible by groups, got ",
              o.in_channels, " and ", o.groups, ".");
  VESTA_CHECK(o.out_channels % o.groups == 0, value, op, ": out_channels must be divisible by groups, got ",
              o.out_channels, " and ", o.groups, ".");
  check_padding(op, o);
  Dims sizes{transposed ? o.in_channels : o.out_channels, (transposed ? o.out_channels : o.in_channels) / o.groups};
  for (int64_t k : o.kernel_size.v) sizes.push_back(k);
  Tensor weight = module.register_parameter("weight", empty(sizes, o.dtype));
  Tensor bias = module.register_parameter("bias", o.bias ? empty({o.out_channels}, o.dtype) : Tensor());
  reset_convolution(weight, bias);
  return {weight, bias};
}

void reset_convolution(const Tensor& weight, const Tensor& bias) {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  auto [in, out] = init::fans(weight);
  if (in == 0) return;
  const double bound = 1 / std::sqrt(double(in));
  init::uniform_(bias, -bound, bound);
}

template <size_t n>
Tensor convolved(const Tensor& input, const Tensor& weight, const Tensor& bias, const ConvOptions<n>& o) {
  if (o.padding_mode != "zeros") {
    return convolution(pad(input, all_sides(o), o.padding_mode), weight, bias, o, IntList(IntSpan(Ints<n>(0).v)));
  }
  if (!o.padding.word.empty()) return convolution(input, weight, bias, o, TextOnly(o.padding.word));
  return convolution(input, weight, bias, o, IntList(o.padding.amount));
}

template <size_t n>
Tensor convolved(const Tensor& x, const Tensor& w, const Tensor& b, const ConvTransposeOptions<n>& o,
                 const std::optional<std::vector<int64_t>>& output_size) {
  const Ints<n> extra = output_size ? output_padding(x, o, *output_size) : o.output_padding;
  if constexpr (n == 1) return conv_transpose1d(x, w, b, o.stride, o.padding, extra, o.groups, o.dilation);
  else if constexpr (n == 2) return conv_transpose2d(x, w, b, o.stride, o.padding, extra, o.groups, o.dilation);
  else return conv_transpose3d(x, w, b, o.stride, o.padding, extra, o.groups, o.dilation);
}

#define VESTA_INSTANTIATE(n)                                                                                          \
  template VESTA_API std::pair<Tensor, Tensor> make_convolution(Module&, const std::string&, const ConvOptions<n>&); \
  template VESTA_API std::pair<Tensor, Tensor> make_convolution(Module&, const std::string&,                         \
                                                                const ConvTransposeOptions<n>&);                     \
  template VESTA_API Tensor convolved(const Tensor&, const Tensor&, const Tensor&, const ConvOptions<n>&);           \
  template VESTA_API Tensor convolved(const Tensor&, const Tensor&, const Tensor&, const ConvTransposeOptions<n>&,   \
                                      const std::optional<std::vector<int64_t>>&)
VESTA_INSTANTIATE(1);
VESTA_INSTANTIATE(2);
VESTA_INSTANTIATE(3);

bool joins_relu(const Module& layer, const Tensor& weight, const Tensor& bias, const ConvOptions<2>& o,
                const Module& activation, const Tensor& input) {
  if (!input.defined() || input.device().type() != DeviceType::cuda || autograd::detect_anomaly()) return false;
  if (typeid(layer) != typeid(Conv2d) || typeid(activation) != typeid(ReLU)) return false;
  if (layer.has_hooks() || activation.has_hooks() || !bias.defined()) return false;
  if (GradMode::enabled() && (input.requires_grad() || weight.requires_grad() || bias.requires_grad())) return false;
  if (o.padding_mode != "zeros" || !o.padding.word.empty()) return false;
  if (input.dim() != 4 || weight.dim() != 4 || input.size(1) != o.in_channels) return false;
  return autocast::active() || (input.dtype() == weight.dtype() && input.dtype() == bias.dtype());
}

Tensor convolved_with_relu(const Tensor& input, const Tensor& weight, const Tensor& bias, const ConvOptions<2>& o) {
  return cudnn_convolution_relu(input, weight, bias, o.stride, o.padding.amount, o.dilation, o.groups);
}

}  // namespace vesta::nn::detail
