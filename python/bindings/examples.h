// Examples of what help() shows: Python, so they stand with the bindings and not with the ops' texts.
#pragma once
#include <string>
#include <string_view>

namespace vesta::python {

/// Returns the example of a function, as a section of its docstring; empty if there is none.
///
/// `home`: "Tensor." of a method, "fft.", "linalg.", "special." or "F." (nn.functional) of a function, or empty. A name
/// without an example of its own there has that of the function of `vesta`.
std::string example_of(std::string_view home, std::string_view name);

}  // namespace vesta::python
