// A leaf and its accumulator (AccumulateGrad in node.h): each knows the other, the leaf weakly.
#pragma once
#include <vesta/autograd/node.h>

namespace vesta::autograd {

/// Returns the accumulator of a leaf, the same one as long as anybody holds it.
VESTA_API intrusive_ptr<AccumulateGrad> grad_accumulator(const Tensor& leaf);

}  // namespace vesta::autograd
