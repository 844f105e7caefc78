// torch::indexing: subscripts as in Python, x.index({Slice(1, None), "...", None, mask}).
#pragma once
#include <torch/tensor.h>

namespace torch::indexing {

using Slice = vesta::Slice;
using TensorIndex = vesta::Index;
inline constexpr std::nullopt_t None = std::nullopt;
inline constexpr vesta::EllipsisIndex Ellipsis;
using EllipsisIndexType = vesta::EllipsisIndex;

}  // namespace torch::indexing

namespace torch {
using indexing::TensorIndex;
}
namespace at::indexing {
using namespace torch::indexing;
}
