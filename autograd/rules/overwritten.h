// The rule of ops that overwrite their argument by something that does not depend on it.
#pragma once
#include <vesta/autograd/record.h>
#include <vesta/core/ops/factory.h>

namespace vesta::autograd::rules {

/// A rule whose gradients are zero: the old value had no influence.
struct OverwrittenRule {
  Tensor operator()(const Tensor& g, Needs) const { return zeros_like(g); }
};

}  // namespace vesta::autograd::rules
