// What vesta._C offers to extensions that its users compile: the capsule `vesta._C._extension_api`.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <vesta/core/tensor.h>

namespace vesta::python {

/// The functions behind the Python objects of values. All are called under the GIL.
struct ExtensionApi {
  const char* build;  // VESTA_BUILD_IDENTITY: another build's objects are laid out otherwise
  /// Returns whether `o` is a tensor, a parameter or another subclass.
  bool (*is_tensor)(PyObject* o);
  /// Returns the tensor of such an object; valid as long as the object.
  const Tensor& (*unwrap)(PyObject* o);
  /// Returns the object of a tensor (a new reference), the same one every time; None for an undefined tensor.
  PyObject* (*wrap)(Tensor t);
  /// Returns whether `o` stands for a dtype or a device, and fills the second argument. May throw Error.
  bool (*to_dtype)(PyObject* o, DType& d);
  bool (*to_device)(PyObject* o, Device& d);
  PyObject* (*wrap_dtype)(DType d);
  PyObject* (*wrap_device)(Device d);
  /// Turns the C++ exception in flight into the current Python exception; for use inside `catch (...)`.
  void (*translate_exception)() noexcept;
};

inline constexpr char kExtensionApi[] = "vesta._C._extension_api";

}  // namespace vesta::python
