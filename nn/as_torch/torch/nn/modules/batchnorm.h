// Batch normalisation as layers, and the base that it shares with instance normalisation.
#pragma once
#include <torch/nn/functional/batchnorm.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// The parameters and running statistics of a normalisation of each channel.
template <size_t D, class Derived, class DerivedOptions>
class NormImplBase : public Cloneable<Derived> {
 public:
  explicit NormImplBase(const DerivedOptions& given) : options(given) { NormImplBase::reset(); }
  void reset() override {
    const std::initializer_list<int64_t> sizes{options.num_features()};
    const bool affine = options.affine(), track = options.track_running_stats();
    weight = this->register_parameter("weight", affine ? vesta::empty(sizes) : Tensor(), affine);
    bias = this->register_parameter("bias", affine ? vesta::empty(sizes) : Tensor(), affine);
    running_mean = this->register_buffer("running_mean", track ? vesta::zeros(sizes) : Tensor());
    running_var = this->register_buffer("running_var", track ? vesta::ones(sizes) : Tensor());
    num_batches_tracked = this->register_buffer("num_batches_tracked",
                                                track ? vesta::zeros(vesta::IntList(), vesta::DType::int64) : Tensor());
    reset_parameters();
  }
  void reset_running_stats() {
    if (!options.track_running_stats()) return;
    init::zeros_(running_mean), init::ones_(running_var), init::zeros_(num_batches_tracked);
  }
  void reset_parameters() {
    reset_running_stats();
    if (options.affine()) init::ones_(weight), init::zeros_(bias);
  }

  DerivedOptions options;
  Tensor weight, bias, running_mean, running_var, num_batches_tracked;
};

/// The normalisation of each channel by the statistics of the batch (training) or the running ones.
template <size_t D, class Derived>
class BatchNormImplBase : public NormImplBase<D, Derived, BatchNormOptions> {
 public:
  using NormImplBase<D, Derived, BatchNormOptions>::NormImplBase;
  Tensor forward(const Tensor& input) {
    const int64_t dims = input.dim();
    TORCH_CHECK(dims == int64_t(D) + 2 || (D == 1 && dims == 2), "expected ",
                D == 1   ? "2D or 3D"
                : D == 2 ? "4D"
                         : "5D",
                " input (got ", dims, "D input)");
    const bool track = this->options.track_running_stats(), training = this->is_training();
    double momentum = this->options.momentum().value_or(0);
    if (training && track) {
      const vesta::NoGrad off;
      vesta::copy_(this->num_batches_tracked, vesta::add(this->num_batches_tracked, 1));
      if (!this->options.momentum()) momentum = 1.0 / this->num_batches_tracked.template item<double>();
    }
    return functional::batch_norm(input, this->running_mean, this->running_var,
                                  functional::BatchNormFuncOptions()
                                      .weight(this->weight)
                                      .bias(this->bias)
                                      .training(training || !track)
                                      .momentum(momentum)
                                      .eps(this->options.eps()));
  }
  void pretty_print(std::ostream& stream) const override {
    const auto& o = this->options;
    stream << std::boolalpha << "torch::nn::BatchNorm" << D << "d(" << o.num_features() << ", eps=" << o.eps()
           << ", momentum=";
    if (o.momentum()) stream << *o.momentum();
    else stream << "None";
    stream << ", affine=" << o.affine() << ", track_running_stats=" << o.track_running_stats() << ')';
  }
};
TORCH_LAYERS_OF_DIMENSIONS(BatchNorm, BatchNormImplBase);

}  // namespace torch::nn
