// The __torch_function__ protocol: an argument whose class overrides it takes over the whole call.
#pragma once
#include <span>

#include "python_tensor.h"

namespace vesta::python {

/// The flag that is set once a class with its own __torch_function__ exists; until then nobody looks for one.
extern bool torch_function_seen;

/// Tells whether arguments of this type take calls over: a subclass whose __torch_function__ is not the disabled one.
bool overrides(PyTypeObject* type);

/// Tells whether the object, or one of the tensors in the list or tuple, takes calls over.
bool overrides_in(PyObject* o);

/// Calls the first overriding argument's __torch_function__(func, types, args, kwargs), subclasses first; a new
/// reference, or null with an exception set. `args` is a tuple, `kwargs` a dict or null.
PyObject* call_override(PyObject* func, PyObject* args, PyObject* kwargs);

/// Switches overriding off on this thread while it lives.
class DisableOverrides {
 public:
  DisableOverrides();
  ~DisableOverrides();
  DisableOverrides(const DisableOverrides&) = delete;

 private:
  bool saved_;
};
bool overrides_enabled();

/// Adds _disabled_torch_function_impl and DisableTorchFunctionSubclass's switch to the module.
bool add_torch_function(PyObject* module);

}  // namespace vesta::python
