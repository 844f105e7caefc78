// The record in which a kernel reports what it may not do. Plain data, for both sides.
#pragma once
#include <cstdint>

namespace vesta::cuda {

/// What was wrong. `element_index` is an index of gather or scatter, which is a RuntimeError there;
/// of a `condition` the text in `op` says everything.
enum class FaultKind : int {
  index = 1,
  class_number = 3,
  probability = 4,
  negative_exponent = 5,
  element_index = 6,
  condition = 7,
};

/// Lies in page-locked host memory. Only the first report is kept until the host has raised it.
struct Fault {
  unsigned set;    // 0: none, 1: being written, 2: there
  int kind;        // FaultKind
  const char* op;  // the host's text; the device only passes it on
  int64_t value, bound;
  int dim;  // the dimension that an index belongs to; -1: not said
};

}  // namespace vesta::cuda
