#include <vesta/autograd/flat_gradient.h>

#include <string>
#include <utility>

#include <vesta/autograd/views.h>
#include <vesta/core/ops/factory.h>

namespace vesta::autograd {
namespace {

/// The node of a gradient that does not change with the operand it was computed from: it passes its own gradient on to
/// the first edge, and zeros to the second.
class FlatNode final : public Node {
 public:
  FlatNode(const Tensor& gradient, const Edge& operand)
      : shape_(gradient.sizes()), dtype_(gradient.dtype()), device_(gradient.device()) {
    set_num_edges(2);
    edge(0) = gradient_edge(gradient);
    edge(1) = operand;
  }
  GradList apply(GradList grads, Needs needs) override {
    GradList result(2);
    if (needs[1]) result[1] = zeros(shape_, dtype_, device_);
    result[0] = std::move(grads[0]);
    return result;
  }
  std::string name() const override { return "FlatBackward"; }

 private:
  Dims shape_;
  DType dtype_;
  Device device_;
};

}  // namespace

Tensor flat_gradient(const Tensor& gradient, const Edge& operand) {
  Tensor result = gradient.detach();
  auto* node = new FlatNode(gradient, operand);
  auto owner = NodePtr::first(node);
  node->set_input_meta(0, 1, result);
  set_history(result, std::move(owner));
  return result;
}

}  // namespace vesta::autograd
