#include <vesta/nn/layers/conv.h>

#include <cmath>

#include <vesta/nn/init.h>
#include <vesta/nn/python_repr.h>

namespace vesta::nn {
namespace {

std::string tuple(const Pair& p) { return text("(", p.v[0], ", ", p.v[1], ")"); }
/// Prints one number if both are equal, as a Python layer that was given one number does.
std::string number(const Pair& p) { return p.v[0] == p.v[1] ? text(p.v[0]) : tuple(p); }
bool is(const Pair& p, int64_t both) { return p.v[0] == both && p.v[1] == both; }

}  // namespace

Conv2d::Conv2d(Conv2dOptions o) : options(o) {
  VESTA_CHECK(o.groups > 0, value, "Conv2d: groups must be a positive integer, got ", o.groups, ".");
  VESTA_CHECK(o.in_channels % o.groups == 0, value, "Conv2d: in_channels must be divisible by groups, got ",
              o.in_channels, " and ", o.groups, ".");
  VESTA_CHECK(o.out_channels % o.groups == 0, value, "Conv2d: out_channels must be divisible by groups, got ",
              o.out_channels, " and ", o.groups, ".");
  const auto& k = o.kernel_size.v;
  weight = register_parameter("weight", empty({o.out_channels, o.in_channels / o.groups, k[0], k[1]}, o.dtype));
  bias = register_parameter("bias", o.bias ? empty({o.out_channels}, o.dtype) : Tensor());
  reset_parameters();
}

void Conv2d::reset_parameters() {
  init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  auto [in, out] = init::fans(weight);
  if (in == 0) return;
  double bound = 1 / std::sqrt(double(in));
  init::uniform_(bias, -bound, bound);
}

Tensor Conv2d::forward(const Tensor& input) {
  return conv2d(input, weight, bias, options.stride, options.padding, options.dilation, options.groups);
}

std::string Conv2d::extra_repr() const {
  std::string s = text(options.in_channels, ", ", options.out_channels, ", kernel_size=", tuple(options.kernel_size),
                       ", stride=", tuple(options.stride));
  if (!is(options.padding, 0)) s += ", padding=" + tuple(options.padding);
  if (!is(options.dilation, 1)) s += ", dilation=" + tuple(options.dilation);
  if (options.groups != 1) s += text(", groups=", options.groups);
  if (!options.bias) s += ", bias=False";
  return s;
}

std::shared_ptr<Module> Conv2d::clone() const { return copy_of(*this, options); }

Tensor MaxPool2d::forward(const Tensor& input) {
  return max_pool2d(input, options.kernel_size, options.stride.value_or(options.kernel_size), options.padding,
                    options.dilation, options.ceil_mode);
}

std::string MaxPool2d::extra_repr() const {
  return text("kernel_size=", number(options.kernel_size),
              ", stride=", number(options.stride.value_or(options.kernel_size)), ", padding=", number(options.padding),
              ", dilation=", number(options.dilation), ", ceil_mode=", python_repr(options.ceil_mode));
}

BatchNorm2d::BatchNorm2d(BatchNorm2dOptions o) : options(o) {
  const IntList sizes(options.num_features);
  weight = register_parameter("weight", o.affine ? ones(sizes, o.dtype) : Tensor());
  bias = register_parameter("bias", o.affine && o.bias ? zeros(sizes, o.dtype) : Tensor());
  const bool track = o.track_running_stats;
  running_mean = register_buffer("running_mean", track ? zeros(sizes, o.dtype) : Tensor());
  running_var = register_buffer("running_var", track ? ones(sizes, o.dtype) : Tensor());
  num_batches_tracked = register_buffer("num_batches_tracked", track ? zeros(IntList(), DType::int64) : Tensor());
}

Tensor BatchNorm2d::forward(const Tensor& input) {
  VESTA_CHECK(input.dim() == 4, value, "BatchNorm2d: expected 4D input (got ", input.dim(), "D input).");
  double momentum = options.momentum.value_or(0);
  if (is_training() && num_batches_tracked.defined()) {
    NoGrad off;
    num_batches_tracked.add_(1);
    if (!options.momentum) momentum = 1.0 / double(num_batches_tracked.item<int64_t>());
  }
  return batch_norm(input, running_mean, running_var, weight, bias, is_training() || !running_mean.defined(), momentum,
                    options.eps);
}

std::string BatchNorm2d::extra_repr() const {
  return text(options.num_features, ", eps=", python_repr(options.eps),
              ", momentum=", options.momentum ? python_repr(*options.momentum) : "None",
              ", affine=", python_repr(options.affine), ", bias=", python_repr(bias.defined()),
              ", track_running_stats=", python_repr(options.track_running_stats));
}

std::shared_ptr<Module> BatchNorm2d::clone() const { return copy_of(*this, options); }

}  // namespace vesta::nn
