// vesta.Generator: the state of random numbers as a Python object.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

bool is_generator(PyObject* o);
/// Returns the generator inside; valid as long as the object.
Generator* unwrap_generator(PyObject* o);

}  // namespace vesta::python
