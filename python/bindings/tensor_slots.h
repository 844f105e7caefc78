// Parts of the tensor type that stand in files of their own: each appends its slots and returns the new count.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

int add_number_slots(PyType_Slot* slots, int n);
int add_subscript_slots(PyType_Slot* slots, int n);
int add_buffer_slots(PyType_Slot* slots, int n);

/// Implements Tensor(...): of a shape, of data, or empty; `type` may be a subclass.
PyObject* construct_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs);

}  // namespace vesta::python
