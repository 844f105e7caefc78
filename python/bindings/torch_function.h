// The __torch_function__ protocol: a mode that this thread has entered, or an argument whose class overrides it, takes
// over the whole call.
#pragma once
#include <span>

#include "python_tensor.h"

namespace vesta::python {

/// The flag that is set once a class with its own __torch_function__ exists or a mode has been entered; until then
/// none is looked up.
extern bool torch_function_seen;
/// Sets the flag. The first time, it tells the package, which then lets its functions written in Python be taken over.
void see_torch_function();

/// Returns whether arguments of this type take calls over: a class whose __torch_function__ is not the disabled one.
bool overrides(PyTypeObject* type);

/// Returns whether this thread is in a mode that takes calls over.
bool in_mode();

/// Returns whether the object, or one of the tensors in the list or tuple, takes calls over.
bool overrides_in(PyObject* o);

/// Looks for objects that are no tensors and have a __torch_function__, where a call has failed: once there is one,
/// overrides() knows their classes.
bool find_other_classes(PyObject* o, int depth = 2);
/// Returns whether an object is a tensor of PyTorch, imported beside Vesta.
bool is_pytorchs_tensor(PyObject* o);
/// The end of the error for an argument that is a tensor of PyTorch: how to convert it.
inline constexpr char kConvertPyTorchs[] = "torch.Tensor. Convert it with vesta.from_torch(t), which copies nothing.";

/// Calls the __torch_function__(func, types, args, kwargs) of the innermost mode, then of the overriding arguments,
/// subclasses first, until one does not return NotImplemented; a new reference, or null with an exception set. `args`
/// is a tuple, `kwargs` a dict or null. While a mode's function runs, the mode is not entered.
/// `declined`, if given, tells whether the exception is that none took the call over.
PyObject* call_override(PyObject* func, PyObject* args, PyObject* kwargs, bool* declined = nullptr);

/// Returns whether a mode or the object's class takes over what is done with a property of it.
inline bool overrides_property(PyObject* o) { return torch_function_seen && (in_mode() || overrides(Py_TYPE(o))); }
/// Calls what takes over what is done with a property of Tensor. func is the property's `method`: __get__, __set__ (to
/// `value`) or __delete__.
PyObject* override_property(PyObject* o, const char* name, const char* method = "__get__", PyObject* value = nullptr);

/// A guard that switches overriding off on this thread while it lives.
class DisableOverrides {
 public:
  DisableOverrides();
  ~DisableOverrides();
  DisableOverrides(const DisableOverrides&) = delete;

 private:
  bool saved_;
};
bool overrides_enabled();

/// Adds _disabled_torch_function_impl, the switch of overriding and the stack of modes to the module.
bool add_torch_function(PyObject* module);

}  // namespace vesta::python
