// The gradient of ops that move elements along a dimension and return where each one came from.
#pragma once
#include <vesta/autograd/record.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>

namespace vesta::autograd::rules {

/// The part that rules with results (values, indices) of one shape share: each value's gradient goes to its index.
struct PlacesRule {
  int64_t dim = 0;
  Saved places;
  static constexpr unsigned results = 0b01;
  Tensor operator()(const GradList& g, Needs) const {
    if (!g[0].defined() || g[0].dim() == 0) return g[0];
    const Tensor at = places();
    return scatter_add_(zeros(Dims(at.sizes()), g[0].dtype(), g[0].device()), dim, at, g[0]);
  }
};

}  // namespace vesta::autograd::rules
