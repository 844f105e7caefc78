// Tensors out of Python data: numbers, nested lists, arrays.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// Makes a tensor of a copy of `data`: a tensor, a number, nested sequences, or anything with the buffer protocol. The
/// dtype follows the data unless given. Errors name `op` and the path of the element that does not fit.
Tensor make_tensor(PyObject* data, MaybeDType dtype, MaybeDevice device, const char* op);

/// Wraps the memory of an object with the buffer protocol without copying; it lives as long as the tensor.
Tensor from_buffer(PyObject* object, const char* op);
/// Fills `view` for a copy of a buffer's values; returns the dtype of its format. Error for formats without a dtype.
DType dtype_of_format(const Py_buffer& view, const char* op);
/// Makes a tensor of a NumPy array (or scalar): shared memory where `share`.
Tensor from_array(PyObject* array, bool share, const char* op);

/// Makes a tensor over the memory of an object with `__dlpack__`, or of a DLPack capsule.
Tensor from_dlpack(PyObject* exporter);

/// Returns the only element as a Python number.
PyObject* number_object(const Tensor& t);

bool add_factories(PyObject* module);
bool add_methods_by_hand(PyObject* module);
bool add_conversions(PyObject* module);
bool add_numpy(PyObject* module);
bool add_dlpack(PyObject* module);
bool add_random(PyObject* module);
bool add_sample_seeds(PyObject* module);
bool add_autograd(PyObject* module);
bool add_functions_of_autograd(PyObject* module);
bool add_settings(PyObject* module);
bool add_autocast(PyObject* module);
bool add_profiler(PyObject* module);
bool add_io(PyObject* module);
bool add_extension_api(PyObject* module);

}  // namespace vesta::python
