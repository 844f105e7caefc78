// Properties of Tensor written in C++: a PyGetSetDef per property, whose closure is its name.
#pragma once
#include "errors.h"
#include "python_tensor.h"
#include "torch_function.h"

namespace vesta::python {

/// Reads a property by `f`, unless a mode or the object's class takes that over.
template <PyObject* (*f)(const Tensor&)>
PyObject* property(PyObject* o, void* name) {
  return guarded(
      [&] { return overrides_property(o) ? override_property(o, static_cast<const char*>(name)) : f(unwrap(o)); });
}

/// Adds properties to the type; the last entry has no name.
inline bool add_properties(PyGetSetDef* properties) {
  for (PyGetSetDef* p = properties; p->name; ++p) {
    p->closure = const_cast<char*>(p->name);
    Ref d(PyDescr_NewGetSet(tensor_type, p));
    if (!add_to_tensor(p->name, d.get())) return false;
  }
  return true;
}

}  // namespace vesta::python
