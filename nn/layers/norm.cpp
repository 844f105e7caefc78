#include <vesta/nn/layers/norm.h>

#include <vesta/nn/functional.h>
#include <vesta/nn/python_repr.h>

namespace vesta::nn {

LayerNorm::LayerNorm(LayerNormOptions o) : options(std::move(o)) {
  const IntList sizes(options.normalized_shape);
  weight = register_parameter("weight", options.elementwise_affine ? ones(sizes, options.dtype) : Tensor());
  const bool with_bias = options.elementwise_affine && options.bias;
  bias = register_parameter("bias", with_bias ? zeros(sizes, options.dtype) : Tensor());
}

Tensor LayerNorm::forward(const Tensor& input) {
  return layer_norm(input, options.normalized_shape, weight, bias, options.eps);
}

std::string LayerNorm::extra_repr() const {
  std::string shape;
  for (int64_t n : options.normalized_shape) shape += (shape.empty() ? "" : ", ") + std::to_string(n);
  if (options.normalized_shape.size() == 1) shape += ",";
  return text("(", shape, "), eps=", python_repr(options.eps),
              ", elementwise_affine=", python_repr(options.elementwise_affine), ", bias=", python_repr(bias.defined()));
}

std::shared_ptr<Module> LayerNorm::clone() const { return copy_of(*this, options); }

}  // namespace vesta::nn
