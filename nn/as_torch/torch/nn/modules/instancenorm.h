// Instance normalisation as layers.
#pragma once
#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/batchnorm.h>

namespace torch::nn {

/// The normalisation of each channel of each example.
template <size_t D, class Derived>
class InstanceNormImpl : public NormImplBase<D, Derived, InstanceNormOptions> {
 public:
  using NormImplBase<D, Derived, InstanceNormOptions>::NormImplBase;
  Tensor forward(const Tensor& input) {
    const bool single = input.dim() == int64_t(D) + 1;
    TORCH_CHECK(single || input.dim() == int64_t(D) + 2, "expected ", D + 1, "D or ", D + 2, "D input (got ",
                input.dim(), "D input)");
    const Tensor y =
        functional::instance_norm(single ? vesta::unsqueeze(input, 0) : input,
                                  functional::InstanceNormFuncOptions()
                                      .running_mean(this->running_mean)
                                      .running_var(this->running_var)
                                      .weight(this->weight)
                                      .bias(this->bias)
                                      .use_input_stats(this->is_training() || !this->options.track_running_stats())
                                      .momentum(this->options.momentum())
                                      .eps(this->options.eps()));
    return single ? vesta::squeeze(y, 0) : y;
  }
  void pretty_print(std::ostream& stream) const override {
    const auto& o = this->options;
    stream << std::boolalpha << "torch::nn::InstanceNorm" << D << "d(" << o.num_features() << ", eps=" << o.eps()
           << ", momentum=" << o.momentum() << ", affine=" << o.affine()
           << ", track_running_stats=" << o.track_running_stats() << ')';
  }
};
TORCH_LAYERS_OF_DIMENSIONS(InstanceNorm, InstanceNormImpl);

}  // namespace torch::nn
