// The native part of vesta.nn.parallel.DistributedDataParallel, as vesta._C._ddp.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// Adds the submodule _ddp; false with an exception set. The types of process groups must be there already.
bool add_ddp(PyObject* module);

}  // namespace vesta::python
