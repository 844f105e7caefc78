// The registry of ops in Python: their functions and methods, and what `vesta._C._registry()` returns about them.
#pragma once
#include <Python.h>

namespace vesta::python {

/// Creates all functions and methods of ops: functions in modules `_ops`, `_nn`, `_linalg`, `_fft`, `_special` and
/// `_private`, methods in the Tensor type, named results in `_return_types`.
bool add_ops(PyObject* module);

}  // namespace vesta::python
