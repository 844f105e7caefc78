// Windows of images as columns, and back.
#pragma once
#include <torch/nn/functional/arguments.h>
#include <torch/nn/options/fold.h>

namespace torch::nn::functional {

inline Tensor fold(const Tensor& input, const FoldFuncOptions& o) {
  return vesta::col2im(input, detail::list(o.output_size()), detail::list(o.kernel_size()), detail::list(o.dilation()),
                       detail::list(o.padding()), detail::list(o.stride()));
}
inline Tensor unfold(const Tensor& input, const UnfoldFuncOptions& o) {
  return vesta::im2col(input, detail::list(o.kernel_size()), detail::list(o.dilation()), detail::list(o.padding()),
                       detail::list(o.stride()));
}

}  // namespace torch::nn::functional
