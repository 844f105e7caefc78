// The C++ layers in Python, as vesta._C.cpp_nn.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// Adds the submodule cpp_nn; false with an exception set.
bool add_cpp_modules(PyObject* module);
/// Adds the submodule _shared.
bool add_shared(PyObject* module);

}  // namespace vesta::python
