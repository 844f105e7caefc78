// Printing in PyTorch's form: four digits, one format for all elements, only the edges of large tensors.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include <vesta/core/tensor.h>

namespace vesta {

/// PyTorch's print options.
struct PrintOptions {
  int precision = 4;         // digits after the point
  int64_t threshold = 1000;  // more elements than this are summarised
  int64_t edgeitems = 3;     // what a summary shows at each end of a dimension
  int64_t linewidth = 80;
  std::optional<bool> sci_mode;  // unset: chosen from the values
};
/// Returns the options that repr() uses; set_print_options replaces them for the process.
VESTA_API PrintOptions print_options();
VESTA_API void set_print_options(const PrintOptions& options);

/// Prints `t` after `prefix`, whose width indents the lines. Dtype, device and `suffix` follow where needed (a caller
/// that depends on autograd gives a suffix such as `grad_fn=<AddBackward0>`).
VESTA_API std::string repr(const Tensor& t, std::string_view suffix, std::string_view prefix = "tensor(");

}  // namespace vesta
