// Pooling as layers.
#pragma once
#include <optional>
#include <tuple>
#include <vector>

#include <torch/nn/functional/pooling.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// Defines the base of a pooling layer of D dimensions; what follow are the parts of its text.
#define TORCH_POOL_BASE(Name, ...)                                                                           \
  template <size_t D, class Derived>                                                                         \
  class Name##Impl : public detail::PlainLayer<Derived, Name##Options<D>> {                                  \
   public:                                                                                                   \
    using detail::PlainLayer<Derived, Name##Options<D>>::PlainLayer;                                         \
    Name##Impl(ExpandingArray<D> kernel_size)                                                                \
      requires(std::constructible_from<Name##Options<D>, ExpandingArray<D>>)                                 \
        : Name##Impl(Name##Options<D>(kernel_size)) {}                                                       \
    void pretty_print(std::ostream& stream) const override {                                                 \
      const auto& o = this->options;                                                                         \
      detail::print_layer(stream, (#Name + std::to_string(D) + "d").c_str(), __VA_ARGS__);                   \
    }                                                                                                        \
  }
TORCH_POOL_BASE(AvgPool, "kernel_size=", o.kernel_size(), ", stride=", o.stride(), ", padding=", o.padding());
TORCH_POOL_BASE(MaxPool, "kernel_size=", o.kernel_size(), ", stride=", o.stride(), ", padding=", o.padding(),
                ", dilation=", o.dilation(), ", ceil_mode=", o.ceil_mode());
TORCH_POOL_BASE(MaxUnpool, "kernel_size=", o.kernel_size(), ", stride=", o.stride(), ", padding=", o.padding());
TORCH_POOL_BASE(LPPool, "norm_type=", o.norm_type(), ", kernel_size=", o.kernel_size(), ", stride=", o.stride(),
                ", ceil_mode=", o.ceil_mode());
#undef TORCH_POOL_BASE

/// Defines the base of an adaptive pooling layer: windows of which there are `output_size`.
#define TORCH_ADAPTIVE_POOL_BASE(Name)                                                                            \
  template <size_t D, class output_size_t, class Derived>                                                         \
  class Name##Impl : public detail::PlainLayer<Derived, Name##Options<output_size_t>> {                           \
   public:                                                                                                        \
    using detail::PlainLayer<Derived, Name##Options<output_size_t>>::PlainLayer;                                  \
    Name##Impl(output_size_t output_size) : Name##Impl(Name##Options<output_size_t>(std::move(output_size))) {}   \
    void pretty_print(std::ostream& stream) const override {                                                      \
      stream << "torch::nn::" #Name << D << "d(output_size=" << this->options.output_size() << ')';               \
    }                                                                                                             \
  }
TORCH_ADAPTIVE_POOL_BASE(AdaptiveMaxPool);
TORCH_ADAPTIVE_POOL_BASE(AdaptiveAvgPool);
#undef TORCH_ADAPTIVE_POOL_BASE

/// Defines the pooling layers of D dimensions; Sizes are the sizes of results.
#define TORCH_POOL_LAYERS(D, Sizes)                                                                              \
  class AvgPool##D##dImpl : public AvgPoolImpl<D, AvgPool##D##dImpl> {                                           \
   public:                                                                                                       \
    using AvgPoolImpl<D, AvgPool##D##dImpl>::AvgPoolImpl;                                                        \
    Tensor forward(const Tensor& input) { return functional::avg_pool##D##d(input, options); }                   \
  };                                                                                                             \
  TORCH_MODULE(AvgPool##D##d);                                                                                   \
  class MaxPool##D##dImpl : public MaxPoolImpl<D, MaxPool##D##dImpl> {                                           \
   public:                                                                                                       \
    using MaxPoolImpl<D, MaxPool##D##dImpl>::MaxPoolImpl;                                                        \
    Tensor forward(const Tensor& input) { return functional::max_pool##D##d(input, options); }                   \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input) {                                       \
      return functional::max_pool##D##d_with_indices(input, options);                                            \
    }                                                                                                            \
  };                                                                                                             \
  TORCH_MODULE(MaxPool##D##d);                                                                                   \
  class MaxUnpool##D##dImpl : public MaxUnpoolImpl<D, MaxUnpool##D##dImpl> {                                     \
   public:                                                                                                       \
    using MaxUnpoolImpl<D, MaxUnpool##D##dImpl>::MaxUnpoolImpl;                                                  \
    Tensor forward(const Tensor& input, const Tensor& indices,                                                   \
                   const std::optional<std::vector<int64_t>>& output_size = std::nullopt) {                      \
      const auto o = functional::MaxUnpool##D##dFuncOptions(options.kernel_size())                               \
                         .stride(options.stride())                                                               \
                         .padding(options.padding())                                                             \
                         .output_size(output_size);                                                              \
      return functional::max_unpool##D##d(input, indices, o);                                                    \
    }                                                                                                            \
  };                                                                                                             \
  TORCH_MODULE(MaxUnpool##D##d);                                                                                 \
  class LPPool##D##dImpl : public LPPoolImpl<D, LPPool##D##dImpl> {                                              \
   public:                                                                                                       \
    using LPPoolImpl<D, LPPool##D##dImpl>::LPPoolImpl;                                                           \
    LPPool##D##dImpl(double norm_type, ExpandingArray<D> kernel_size)                                            \
        : LPPool##D##dImpl(LPPoolOptions<D>(norm_type, kernel_size)) {}                                          \
    Tensor forward(const Tensor& input) { return functional::lp_pool##D##d(input, options); }                    \
  };                                                                                                             \
  TORCH_MODULE(LPPool##D##d);                                                                                    \
  class AdaptiveAvgPool##D##dImpl : public AdaptiveAvgPoolImpl<D, Sizes<D>, AdaptiveAvgPool##D##dImpl> {         \
   public:                                                                                                       \
    using AdaptiveAvgPoolImpl<D, Sizes<D>, AdaptiveAvgPool##D##dImpl>::AdaptiveAvgPoolImpl;                      \
    Tensor forward(const Tensor& input) { return functional::adaptive_avg_pool##D##d(input, options); }          \
  };                                                                                                             \
  TORCH_MODULE(AdaptiveAvgPool##D##d);                                                                           \
  class AdaptiveMaxPool##D##dImpl : public AdaptiveMaxPoolImpl<D, Sizes<D>, AdaptiveMaxPool##D##dImpl> {         \
   public:                                                                                                       \
    using AdaptiveMaxPoolImpl<D, Sizes<D>, AdaptiveMaxPool##D##dImpl>::AdaptiveMaxPoolImpl;                      \
    Tensor forward(const Tensor& input) { return functional::adaptive_max_pool##D##d(input, options); }          \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input) {                                       \
      return functional::adaptive_max_pool##D##d_with_indices(input, options);                                   \
    }                                                                                                            \
  };                                                                                                             \
  TORCH_MODULE(AdaptiveMaxPool##D##d)
TORCH_POOL_LAYERS(1, ExpandingArray);
TORCH_POOL_LAYERS(2, ExpandingArrayWithOptionalElem);
TORCH_POOL_LAYERS(3, ExpandingArrayWithOptionalElem);
#undef TORCH_POOL_LAYERS

/// Defines the pooling whose windows are drawn for each channel (Graham 2014).
#define TORCH_FRACTIONAL_POOL_LAYER(D)                                                                                \
  class FractionalMaxPool##D##dImpl : public Cloneable<FractionalMaxPool##D##dImpl> {                                 \
   public:                                                                                                            \
    TORCH_LAYER_OPTIONS(FractionalMaxPool##D##dImpl, FractionalMaxPool##D##dOptions);                                 \
    void reset() override {                                                                                           \
      TORCH_CHECK(!options.output_size() || !options.output_ratio(),                                                  \
                  "only one of output_size and output_ratio may be specified");                                       \
      TORCH_CHECK(options.output_size() || options.output_ratio(),                                                    \
                  "FractionalMaxPool" #D "d requires specifying either an output size, or a pooling ratio");          \
      _random_samples = register_buffer("_random_samples", options._random_samples());                                \
    }                                                                                                                 \
    Tensor forward(const Tensor& input) { return std::get<0>(forward_with_indices(input)); }                          \
    std::tuple<Tensor, Tensor> forward_with_indices(const Tensor& input) {                                            \
      const auto o = FractionalMaxPool##D##dOptions(options)._random_samples(_random_samples);                        \
      return functional::fractional_max_pool##D##d_with_indices(input, o);                                            \
    }                                                                                                                 \
    TORCH_LAYER_TEXT("FractionalMaxPool" #D "d")                                                                      \
    Tensor _random_samples;                                                                                           \
  };                                                                                                                  \
  TORCH_MODULE(FractionalMaxPool##D##d)
TORCH_FRACTIONAL_POOL_LAYER(2);
TORCH_FRACTIONAL_POOL_LAYER(3);
#undef TORCH_FRACTIONAL_POOL_LAYER

}  // namespace torch::nn
