// A leaf and its accumulator (AccumulateGrad in node.h): each refers to the other, the leaf by a weak reference.
#pragma once
#include <vesta/autograd/node.h>

namespace vesta::autograd {

/// Returns the accumulator of a leaf, the same one as long as it is referenced.
VESTA_API intrusive_ptr<AccumulateGrad> grad_accumulator(const Tensor& leaf);

/// Gives `t` the memory of `from`, with its geometry, dtype and device; `op` is the name of the writer. Graphs that
/// hold the leaf in its old form keep their accumulator, whose gradients have that form; the next graph gets a new one.
VESTA_API void replace_memory(const Tensor& t, const Tensor& from, const char* op);

}  // namespace vesta::autograd
