// The record in which a kernel reports an error in its operands. Plain data, for both sides.
#pragma once
#include <cstdint>

namespace vesta::cuda {

/// The kind of error. `element_index` is an index of gather or scatter, where it is a RuntimeError; for a `condition`
/// the text in `op` is complete.
enum class FaultKind : int {
  index = 1,
  class_number = 3,
  probability = 4,
  negative_exponent = 5,
  element_index = 6,
  condition = 7,
};

/// A report in page-locked host memory. Only the first one is kept until the host has raised it.
struct Fault {
  unsigned set;    // 0: none, 1: being written, 2: there
  int kind;        // FaultKind
  const char* op;  // the host's text; the device only passes it back
  int64_t value, bound;
  int dim;  // the dimension that an index belongs to; -1: unknown
};

}  // namespace vesta::cuda
