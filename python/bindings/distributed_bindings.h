// Stores, process groups and Work in Python, as vesta._C._distributed.
#pragma once
#include "python_tensor.h"

namespace pybind11 { class module_; }

namespace vesta::python {

/// Adds the stores.
void add_stores(pybind11::module_& m);

/// Adds ProcessGroup and what makes one. Work and ReduceOp have to be there.
void add_groups(pybind11::module_& m);

}  // namespace vesta::python
