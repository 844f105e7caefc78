// Convolution is linear in input and weight, and its gradients are convolutions again: the three ops are each other's
// gradients, so every order exists.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/conv.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

/// Keeps the arguments that say how a window moves.
struct Moves {
  Dims stride, padding, dilation;
  int64_t groups = 1;
  bool channels_last = false;  // the layout of the gradients
};

/// Returns the gradient of a bias.
Tensor sum_of_channels(const Tensor& g) {
  Dims all_but_channels{0};
  for (int64_t d = 2; d < g.dim(); ++d) all_but_channels.push_back(d);
  return sum(contiguous(g), all_but_channels);  // a sum's order goes by the strides
}

struct ConvolutionRule {
  Saved input, weight;
  Dims input_size, weight_size;
  Moves m;
  static ConvolutionRule save(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor&, IntList stride,
                              IntList padding, IntList dilation, int64_t groups, Needs needs) {
    return {needs[1] ? Saved(input) : Saved(),
            needs[0] ? Saved(weight) : Saved(),
            Dims(input.sizes()),
            Dims(weight.sizes()),
            {Dims(stride), Dims(padding), Dims(dilation), groups, convolution_is_channels_last(input, weight)}};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    Tensor of_input, of_weight, of_bias;
    if (needs[0])
      of_input = _convolution_backward_input(g, weight(), input_size, m.stride, m.padding, m.dilation, m.groups,
                                             m.channels_last);
    if (needs[1])
      of_weight = _convolution_backward_weight(g, input(), weight_size, m.stride, m.padding, m.dilation, m.groups,
                                               m.channels_last);
    if (needs[2]) of_bias = sum_of_channels(g);
    return {of_input, of_weight, of_bias};
  }
};

/// Convolves, and keeps the windows that a gradient of these sizes has: fewer than fit, behind a transposed convolution
/// with an output padding.
Tensor convolve_as(IntSpan sizes, const Tensor& input, const Tensor& weight, const Moves& m) {
  Tensor r = _convolution(input, weight, {}, m.stride, m.padding, m.dilation, m.groups);
  for (int64_t d = 2; d < r.dim(); ++d) {
    if (r.size(d) > sizes[size_t(d)]) r = narrow(r, d, 0, sizes[size_t(d)]);
  }
  return m.channels_last ? to_channels_last(r) : r;
}

struct InputGradientRule {  // of _convolution_backward_input(grad, weight, bias)
  Saved grad, weight;
  Dims grad_size, weight_size;
  Moves m;
  static InputGradientRule save(const Tensor&, const Tensor& grad, const Tensor& weight, IntList, IntList stride,
                                IntList padding, IntList dilation, int64_t groups, bool channels_last, const Tensor&,
                                Needs) {
    return {Saved(grad),
            Saved(weight),
            Dims(grad.sizes()),
            Dims(weight.sizes()),
            {Dims(stride), Dims(padding), Dims(dilation), groups, channels_last}};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    Tensor of_grad, of_weight, of_bias;
    if (needs[0]) of_grad = convolve_as(grad_size, m.channels_last ? g : contiguous(g), weight(), m);
    if (needs[1])
      of_weight = _convolution_backward_weight(grad(), g, weight_size, m.stride, m.padding, m.dilation, m.groups,
                                               m.channels_last);
    if (needs[2]) of_bias = sum_of_channels(g);
    return {of_grad, of_weight, of_bias};
  }
};

struct WeightGradientRule {  // of _convolution_backward_weight(grad, input)
  Saved grad, input;
  Dims grad_size, input_size;
  Moves m;
  static WeightGradientRule save(const Tensor&, const Tensor& grad, const Tensor& input, IntList, IntList stride,
                                 IntList padding, IntList dilation, int64_t groups, bool channels_last, Needs) {
    return {Saved(grad),
            Saved(input),
            Dims(grad.sizes()),
            Dims(input.sizes()),
            {Dims(stride), Dims(padding), Dims(dilation), groups, channels_last}};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    Tensor of_grad, of_input;
    if (needs[0]) of_grad = convolve_as(grad_size, input(), m.channels_last ? g : contiguous(g), m);
    if (needs[1])
      of_input = _convolution_backward_input(grad(), g, input_size, m.stride, m.padding, m.dilation, m.groups,
                                             m.channels_last);
    return {of_grad, of_input};
  }
};

}  // namespace

void register_conv() {
  record<ops::_convolution, ConvolutionRule>();
  record<ops::_convolution_backward_input, InputGradientRule>();
  record<ops::_convolution_backward_weight, WeightGradientRule>();
}

}  // namespace vesta::autograd::rules
