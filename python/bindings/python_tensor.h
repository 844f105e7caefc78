// The Python object of a tensor: its layout, identity (wrap and unwrap), and who owns whom.
//
// Note [Who owns whom]
// A TensorImpl has at most one PyTensor; both point at each other, so that `t.grad is t.grad`. One side owns the other:
//   A  (usual)    the PyTensor holds a reference to the TensorImpl; TensorImpl::pyobject is borrowed.
//   B  (flipped)  the last Python reference went while C++ (a saved tensor, a .grad, a module in C++) still holds the
//                 TensorImpl, and the PyTensor has state of its own: attributes, a subclass, weak references. Then the
//                 TensorImpl holds a reference to the PyTensor (owns_pyobject) and the PyTensor's handle is not
//                 counted.
// wrap() turns B into A. When a TensorImpl in state B dies, python_port.release drops the PyTensor. A PyTensor without
// state is simply freed: wrap() makes a new one when needed.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <vesta/core/tensor.h>

#include "gil.h"

namespace vesta::python {

struct PyTensor {
  PyObject_HEAD Tensor tensor;  // not counted in state B
  PyObject* dict;  // null until an attribute is set
  PyObject* weakrefs;
};

/// The class `vesta.Tensor`.
extern PyTypeObject* tensor_type;

/// Returns whether `o` is a tensor of the exact class.
inline bool is_exact_tensor(PyObject* o) { return Py_TYPE(o) == tensor_type; }
/// Returns whether `o` is a tensor or of a subclass.
inline bool is_tensor(PyObject* o) { return is_exact_tensor(o) || PyType_IsSubtype(Py_TYPE(o), tensor_type); }
/// Returns the handle inside a tensor object; valid as long as the object.
inline const Tensor& unwrap(PyObject* o) { return reinterpret_cast<PyTensor*>(o)->tensor; }
/// Returns the object of a tensor (a new reference), the same one every time; None for an undefined tensor.
PyObject* wrap(Tensor t);
/// Makes an object of a subclass for a tensor that has no object yet; null with an exception set where it has one.
PyObject* wrap_as(PyTypeObject* type, Tensor t);

/// Creates the type and adds it to the module; false with an exception set.
bool add_tensor_type(PyObject* module);
/// Puts a function or descriptor into the type's namespace (steals nothing); false with an exception set.
bool add_to_tensor(const char* name, PyObject* value);

/// The owner of one reference to a Python object.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* owned) : p_(owned) {}
  Ref(Ref&& o) noexcept : p_(o.release()) {}
  Ref& operator=(Ref&& o) noexcept {
    PyObject* old = p_;
    p_ = o.release();
    Py_XDECREF(old);
    return *this;
  }
  ~Ref() { Py_XDECREF(p_); }
  PyObject* get() const { return p_; }
  PyObject* release() {
    PyObject* p = p_;
    p_ = nullptr;
    return p;
  }
  explicit operator bool() const { return p_ != nullptr; }

 private:
  PyObject* p_ = nullptr;
};

/// Returns a new reference to `o`.
inline PyObject* new_ref(PyObject* o) {
  Py_INCREF(o);
  return o;
}

/// The number of elements from which an op runs without the GIL: about 10 us of work, 100 times the cost of letting
/// go.
inline constexpr int64_t kReleaseGil = 32768;
/// Reads a tensor of one element; other Python threads run while a device is waited for.
inline Scalar item_of(const Tensor& t) {
  WithoutGil open(t.device().type() != DeviceType::cpu);
  return t.item();
}

}  // namespace vesta::python
