#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/softmax.h>
#include <vesta/nn/layers/activation.h>

namespace vesta::nn {

Tensor Softmax::forward(const Tensor& input) { return softmax(input, options.dim_of(input)); }
Tensor Softmin::forward(const Tensor& input) { return softmax(neg(input), options.dim_of(input)); }
Tensor LogSoftmax::forward(const Tensor& input) { return log_softmax(input, options.dim_of(input)); }

Tensor Softmax2d::forward(const Tensor& input) {
  VESTA_CHECK(input.dim() == 3 || input.dim() == 4, value, "Softmax2d: expected input to be 3D or 4D, got ",
              input.dim(), "D instead");
  return softmax(input, -3);
}

Tensor RReLU::forward(const Tensor& input) {
  return (options.inplace ? rrelu_ : rrelu)(input, options.lower, options.upper, is_training(), {});
}

PReLU::PReLU(const Options& o) : LayerOf(o) {
  weight = register_parameter("weight", full(options.num_parameters, options.init, options.dtype));
}

}  // namespace vesta::nn
