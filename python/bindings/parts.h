// Parts of vesta._C, made by pybind11 when they are first asked for: few programs need them, and import does not wait.
#pragma once
#include "python_tensor.h"

namespace pybind11 { class module_; }

namespace vesta::python {

/// Adds the functions by which vesta._C makes its parts; false with an exception set.
bool add_parts(PyObject* module);

/// The C++ layers and optimizers, for comparison: vesta._C.cpp_nn.
void fill_cpp_nn(pybind11::module_& m);
/// Memory that processes share: vesta._C._shared.
void fill_shared(pybind11::module_& m);
/// Stores, process groups and Work: vesta._C._distributed.
void fill_distributed(pybind11::module_& m);
/// The native part of vesta.nn.parallel.DistributedDataParallel, vesta._C._ddp; needs the types of _distributed.
void fill_ddp(pybind11::module_& m);

}  // namespace vesta::python
