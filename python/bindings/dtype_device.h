// The small value types of Python: dtype, device, Size, layout, memory_format.
#pragma once
#include "python_tensor.h"

namespace vesta::python {

/// Returns the object `vesta.float32` (a new reference).
PyObject* wrap_dtype(DType d);
/// Returns a new `vesta.device`.
PyObject* wrap_device(Device d);
/// Returns a new `vesta.Size`.
PyObject* wrap_sizes(IntSpan sizes);
/// Returns whether `o` is a `vesta.Size`.
bool is_size(PyObject* o);

/// Returns whether `o` stands for a dtype: a dtype object, or Python's bool, int, float or complex. Fills `d`.
bool to_dtype(PyObject* o, DType& d);
/// Returns whether `o` stands for a device: a device object, a string ("cuda:0") or the number of a CUDA device. Fills
/// `d`; raises Error if the string names none.
bool to_device(PyObject* o, Device& d);

/// The number of a memory format or layout object; -1 for anything else.
enum class Format : int { none = -1, contiguous, preserve, channels_last, channels_last_3d };
Format to_format(PyObject* o);
bool is_layout(PyObject* o);
/// Returns a layout object (a new reference): 0 for `vesta.strided`, then sparse_coo, sparse_csr, sparse_csc.
PyObject* layout_object(int number);
/// Returns the number of a tensor's layout.
int layout_number(const Tensor& t);

/// Creates the types and constants and adds them to the module.
bool add_value_types(PyObject* module);

}  // namespace vesta::python
