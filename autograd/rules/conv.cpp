// Convolution and pooling. Convolution is linear in input and weight, and its gradients are convolutions again: the
// three ops are each other's gradients, so every order exists.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/ops.h>

namespace vesta::autograd::rules {
namespace {

/// Keeps the arguments that say how a window moves.
struct Moves {
  Dims stride, padding, dilation;
  int64_t groups = 1;
};

struct Conv2dRule {
  Saved input, weight;
  Dims input_size, weight_size;
  Moves m;
  static Conv2dRule save(const Tensor&, const Tensor& input, const Tensor& weight, const Tensor&, IntList stride,
                         IntList padding, IntList dilation, int64_t groups, Needs needs) {
    return {needs[1] ? Saved(input) : Saved(),
            needs[0] ? Saved(weight) : Saved(),
            Dims(input.sizes()),
            Dims(weight.sizes()),
            {Dims(stride), Dims(padding), Dims(dilation), groups}};
  }
  Grads<3> operator()(const Tensor& g, Needs needs) const {
    Tensor of_input, of_weight, of_bias;
    if (needs[0]) of_input = _conv2d_backward_input(g, weight(), input_size, m.stride, m.padding, m.dilation, m.groups);
    if (needs[1])
      of_weight = _conv2d_backward_weight(g, input(), weight_size, m.stride, m.padding, m.dilation, m.groups);
    if (needs[2]) of_bias = g.dim() == 4 ? g.sum({0, 2, 3}) : g.sum({1, 2});
    return {of_input, of_weight, of_bias};
  }
};

struct InputGradientRule {  // of _conv2d_backward_input(grad, weight)
  Saved grad, weight;
  Dims weight_size;
  Moves m;
  static InputGradientRule save(const Tensor&, const Tensor& grad, const Tensor& weight, IntList, IntList stride,
                                IntList padding, IntList dilation, int64_t groups, Needs) {
    return {Saved(grad), Saved(weight), Dims(weight.sizes()), {Dims(stride), Dims(padding), Dims(dilation), groups}};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    Tensor of_grad, of_weight;
    if (needs[0]) of_grad = conv2d(g, weight(), {}, m.stride, m.padding, m.dilation, m.groups);
    if (needs[1])
      of_weight = _conv2d_backward_weight(grad(), g, weight_size, m.stride, m.padding, m.dilation, m.groups);
    return {of_grad, of_weight};
  }
};

struct WeightGradientRule {  // of _conv2d_backward_weight(grad, input)
  Saved grad, input;
  Dims input_size;
  Moves m;
  static WeightGradientRule save(const Tensor&, const Tensor& grad, const Tensor& input, IntList, IntList stride,
                                 IntList padding, IntList dilation, int64_t groups, Needs) {
    return {Saved(grad), Saved(input), Dims(input.sizes()), {Dims(stride), Dims(padding), Dims(dilation), groups}};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    Tensor of_grad, of_input;
    if (needs[0]) of_grad = conv2d(input(), g, {}, m.stride, m.padding, m.dilation, m.groups);
    if (needs[1]) of_input = _conv2d_backward_input(grad(), g, input_size, m.stride, m.padding, m.dilation, m.groups);
    return {of_grad, of_input};
  }
};

struct MaxPoolRule {
  Saved indices;
  Dims input_size;
  static constexpr unsigned results = 0b01;
  static MaxPoolRule save(const TensorPair& r, const Tensor& input, IntList, IntList, IntList, IntList, bool, Needs) {
    return {Saved(std::get<1>(r)), Dims(input.sizes())};
  }
  Tensor operator()(const GradList& g, Needs) const {
    return g[0].defined() ? _max_pool2d_backward(g[0], indices(), input_size) : Tensor{};
  }
};

struct MaxPoolGradientRule {  // reads what _max_pool2d_backward wrote to, plane by plane
  Saved indices;
  static MaxPoolGradientRule save(const Tensor&, const Tensor&, const Tensor& indices, IntList, Needs) {
    return {Saved(indices)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    Tensor at = indices();
    return g.flatten(-2, -1).gather(-1, at.flatten(-2, -1)).reshape(at.sizes());
  }
};

}  // namespace

void register_conv() {
  record<ops::conv2d, Conv2dRule>();
  record<ops::_conv2d_backward_input, InputGradientRule>();
  record<ops::_conv2d_backward_weight, WeightGradientRule>();
  record<ops::max_pool2d_with_indices, MaxPoolRule>();
  record<ops::_max_pool2d_backward, MaxPoolGradientRule>();
}

}  // namespace vesta::autograd::rules
