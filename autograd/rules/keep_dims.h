// Bringing what a reduction made back to the shape it came from.
#pragma once
#include <vesta/core/ops/reduce.h>
#include <vesta/core/tensor.h>

namespace vesta::autograd::rules {

/// Remembers a reduction: the input's sizes, and its result's with 1 for every reduced dimension.
struct Reduced {
  Dims sizes, kept;
  int64_t count = 1;
  Reduced() = default;
  Reduced(const Tensor& input, const MaybeDims& dim, const char* op) : sizes(input.sizes()) {
    ReduceShape s = reduce_shape(input, dim, true, op);
    kept = s.sizes;
    count = s.count;
  }
  /// Views a result (whether it kept its dimensions or not) with 1 for the reduced ones.
  Tensor keep(const Tensor& result) const { return result.view(kept); }
  /// Repeats a result over the input's shape.
  Tensor spread(const Tensor& result) const {
    bool spreads = result.dim() == 0 || result.dim() == int64_t(kept.size());
    return (spreads ? result : keep(result)).expand(sizes);
  }
};

}  // namespace vesta::autograd::rules
