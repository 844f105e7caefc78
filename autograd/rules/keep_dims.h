// The expansion of a reduction's result to the shape of its input.
#pragma once
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {

/// The shape of a reduction: the input's sizes, and which dimensions were reduced.
struct Reduced {
  Dims sizes;
  uint64_t mask = 0;
  Reduced() = default;
  Reduced(const Tensor& input, const MaybeDims& dim, const char* op)
      : sizes(input.sizes()), mask(dim ? dim_mask(*dim, input.dim(), op) : ~uint64_t(0)) {}
  bool reduces(size_t d) const { return (mask >> d & 1) != 0; }
  /// Counts the elements that were combined into one.
  int64_t count() const {
    int64_t n = 1;
    for (size_t d = 0; d < sizes.size(); ++d) n *= reduces(d) ? sizes[d] : 1;
    return n;
  }
  /// Returns the dimensions that were reduced.
  Dims dims() const {
    Dims gone;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (reduces(d)) gone.push_back(int64_t(d));
    }
    return gone;
  }
  /// Views a result (whether it kept its dimensions or not) with 1 for the reduced ones.
  Tensor keep(const Tensor& result) const {
    Dims kept(sizes);
    for (size_t d = 0; d < kept.size(); ++d) kept[d] = reduces(d) ? 1 : kept[d];
    return view(result, kept);
  }
  /// Repeats a result over the input's shape.
  Tensor spread(const Tensor& result) const {
    bool spreads = result.dim() == 0 || size_t(result.dim()) == sizes.size();
    return spreads ? expand(result, sizes) : expand(keep(result), sizes);
  }
};

}  // namespace vesta::autograd::rules
