// Resizing as a layer.
#pragma once
#include <torch/nn/functional/upsampling.h>
#include <torch/nn/modules/common.h>

namespace torch::nn {

/// A grid [N, C, L], [N, C, H, W] or [N, C, D, H, W], resized.
class UpsampleImpl : public detail::PlainLayer<UpsampleImpl, UpsampleOptions> {
 public:
  using PlainLayer::PlainLayer;
  Tensor forward(const Tensor& input) {
    functional::InterpolateFuncOptions o;
    o.size(options.size()).scale_factor(options.scale_factor()).align_corners(options.align_corners());
    std::visit([&](auto mode) { o.mode(mode); }, options.mode());
    return functional::interpolate(input, o);
  }
  void pretty_print(std::ostream& stream) const override {
    const auto list = [&](const char* name, const auto& values) {
      stream << name << "=[";
      for (size_t i = 0; i < values.size(); ++i) stream << (i ? ", " : "") << values[i];
      stream << ']';
    };
    stream << "torch::nn::Upsample(";
    if (options.scale_factor()) list("scale_factor", *options.scale_factor());
    else if (options.size()) list("size", *options.size());
    stream << ", mode=" << enumtype::get_enum_name(options.mode()) << ')';
  }
};
TORCH_MODULE(Upsample);

}  // namespace torch::nn
