// Where the examples of a batch lie in memory, while a function of one example runs on them (vmap).
#pragma once
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta {

/// An example of a batch: a view of the batch, whose elements lie `shift` elements behind those of the first example.
struct Example {
  Tensor view;
  int64_t shift = 0;
};

/// Makes these the examples that this thread's innermost function runs on.
VESTA_API void enter_examples(std::vector<Example> examples);
/// Ends that.
VESTA_API void leave_examples() noexcept;

/// Returns how much further a tensor that lies within an example is than it would be in the first one; 0 for others.
/// PyTorch, which runs a function once for all examples, knows offsets in memory of the first only.
VESTA_API int64_t shift_of_example(const Tensor& t);
/// Returns the offset that a program gives for a view of `t`, or that of `t`, as one in the memory under it.
/// Error(runtime): `t` is of an example, and a view of these sizes would reach beyond `t`; examples with different
/// shifts share the memory.
VESTA_API int64_t offset_in_memory(const Tensor& t, IntSpan size, IntSpan stride, MaybeInt given, const char* op);

}  // namespace vesta
