// Stores, process groups and Work in Python, as vesta._C._distributed.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// Adds the submodule _distributed; false with an exception set.
bool add_distributed(PyObject* module);

}  // namespace vesta::python
