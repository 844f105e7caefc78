// The life of a tensor object: made, found again, flipped (see Note [Who owns whom]), collected.
#include "python_tensor.h"

#include <structmember.h>

#include <vesta/core/ops/arithmetic.h>

#include "errors.h"
#include "graph_gc.h"
#include "tensor_slots.h"
#include "torch_function.h"

namespace vesta::python {

PyTypeObject* tensor_type = nullptr;

namespace {

// Memory of dead objects of the exact class, for the next ones. Under sanitizers nothing is reused.
#ifdef VESTA_SANITIZE
constexpr int kFreeObjects = 0;
#else
constexpr int kFreeObjects = 128;
#endif
PyTensor* free_objects[kFreeObjects + 1];
int free_count = 0;

PyTensor* self_of(PyObject* o) { return reinterpret_cast<PyTensor*>(o); }

bool flipped(const PyTensor* t) { return t->tensor.impl() && t->tensor.impl()->owns_pyobject; }

/// Makes an object of the exact class around `t`, whose TensorImpl has none.
PyObject* make_exact(Tensor&& t) {
  PyTensor* self;
  if (free_count) [[likely]] {
    self = free_objects[--free_count];
    PyObject_Init(reinterpret_cast<PyObject*>(self), tensor_type);
  } else {
    self = PyObject_GC_New(PyTensor, tensor_type);
    if (!self) return nullptr;
  }
  new (&self->tensor) Tensor(std::move(t));
  self->dict = self->weakrefs = nullptr;
  self->tensor.impl()->pyobject = self;
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

/// Lets the TensorImpl of a dying object own it, if others hold the TensorImpl and the object has state of its own.
bool flip(PyTensor* self) {
  TensorImpl* impl = self->tensor.impl();
  if (!impl || impl->use_count() <= 1 || impl->pyobject != self || impl->owns_pyobject) return false;
  bool state = Py_TYPE(self) != tensor_type || self->weakrefs || (self->dict && PyDict_GET_SIZE(self->dict));
  if (!state) return false;
  _Py_NewReference(reinterpret_cast<PyObject*>(self));
  impl->owns_pyobject = true;
  if (impl->release()) TensorImpl::destroy(impl);  // the others let go meanwhile: this drops `self` again
  return true;
}

/// Lets go of the tensor: not counted in state B, where the TensorImpl is dying itself.
void drop_tensor(PyTensor* self) {
  TensorImpl* impl = self->tensor.impl();
  if (impl && impl->pyobject == self) impl->pyobject = nullptr;
  self->tensor.~Tensor();
}

/// Clears the __slots__ of a Python subclass, as CPython does for types it deallocates itself.
void clear_slots(PyTypeObject* type, PyObject* self) {
  auto* member = reinterpret_cast<PyMemberDef*>(reinterpret_cast<char*>(type) + Py_TYPE(type)->tp_basicsize);
  for (Py_ssize_t i = 0, n = Py_SIZE(type); i < n; ++i, ++member) {
    if (member->type != T_OBJECT_EX || (member->flags & READONLY)) continue;
    auto** at = reinterpret_cast<PyObject**>(reinterpret_cast<char*>(self) + member->offset);
    Py_CLEAR(*at);
  }
}

void free_exact(PyTensor* self) {
  drop_tensor(self);
  if (free_count < kFreeObjects) free_objects[free_count++] = self;
  else PyObject_GC_Del(self);
  Py_DECREF(tensor_type);
}

void free_subclass(PyTensor* self) {
  PyObject* o = reinterpret_cast<PyObject*>(self);
  PyTypeObject* type = Py_TYPE(self);
  for (PyTypeObject* base = type; base && base != tensor_type; base = base->tp_base) {
    if (Py_SIZE(base)) clear_slots(base, o);
  }
  drop_tensor(self);
  type->tp_free(o);
  Py_DECREF(type);
}

void tensor_dealloc(PyObject* o) {
  PyTensor* self = self_of(o);
  if (Py_TYPE(o) == tensor_type && !self->dict && !self->weakrefs) {  // nothing to keep, nothing to run
    PyObject_GC_UnTrack(o);
    free_exact(self);
    return;
  }
  if (flip(self)) return;
  if (Py_TYPE(o)->tp_finalize && PyObject_CallFinalizerFromDealloc(o) < 0) return;
  PyObject_GC_UnTrack(o);
  if (TensorImpl* impl = self->tensor.impl()) {
    if (impl->pyobject == self) impl->pyobject = nullptr;  // nobody may find an object that is going away
  }
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  Py_TRASHCAN_BEGIN(self, tensor_dealloc) Py_CLEAR(self->dict);
  if (Py_TYPE(o) == tensor_type) free_exact(self);
  else free_subclass(self);
  Py_TRASHCAN_END
}

/// Runs where a TensorImpl in state B dies, on any thread.
void release_object(void* object) {
  if (!has_python()) return;  // the interpreter is gone, and with it the object's memory
  Gil gil;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  auto* self = static_cast<PyTensor*>(object);
  std::move(self->tensor).take().detach();  // not counted: nothing to give back
  if (Py_REFCNT(self) > 1) self->tensor = empty_tensor(IntList{0}, DType::float32);  // reached through gc.get_objects()
  Py_DECREF(self);
  PyErr_Restore(type, value, trace);
}

// Note [What the collector sees]
// While C++ holds the TensorImpl too, the object must live on with its attributes, so its references are not shown:
// what is not shown counts as held from outside. An object that is the only owner shows its attributes and the Python
// objects that the graph behind it holds alone (hooks, contexts of custom Functions), so that a cycle through them is
// found.
int tensor_traverse(PyObject* o, visitproc visit, void* arg) {
  PyTensor* self = self_of(o);
  Py_VISIT(Py_TYPE(o));
  TensorImpl* impl = self->tensor.impl();
  if (impl && !flipped(self) && impl->use_count() > 1) return 0;
  Py_VISIT(self->dict);
  if (impl && !flipped(self)) return traverse_graph(self->tensor, visit, arg);
  return 0;
}

int tensor_clear(PyObject* o) {
  PyTensor* self = self_of(o);
  TensorImpl* impl = self->tensor.impl();
  if (impl && !flipped(self) && impl->use_count() > 1) return 0;
  Py_CLEAR(self->dict);
  if (impl && !flipped(self)) clear_graph(self->tensor);
  return 0;
}

Py_hash_t tensor_hash(PyObject* o) { return Py_hash_t(reinterpret_cast<uintptr_t>(o) >> 4); }

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return guarded([&] { return construct_tensor(type, args, kwargs); });
}

/// Prepares each subclass: its objects die by tensor_dealloc, so that they can be flipped.
PyObject* init_subclass(PyObject* cls, PyObject*, PyObject*) {
  auto* type = reinterpret_cast<PyTypeObject*>(cls);
  type->tp_dealloc = tensor_dealloc;
  if (!torch_function_seen && overrides(type)) see_torch_function();
  Py_RETURN_NONE;
}

PyMemberDef members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef basic_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, "Attributes set by the user.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMethodDef basic_methods[] = {
    {"__init_subclass__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(init_subclass)),
     METH_CLASS | METH_VARARGS | METH_KEYWORDS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* wrap(Tensor t) {
  TensorImpl* impl = t.impl();
  if (!impl) Py_RETURN_NONE;
  if (!impl->pyobject) [[likely]]
    return make_exact(std::move(t));
  PyObject* o = static_cast<PyObject*>(impl->pyobject);
  if (!impl->owns_pyobject) return new_ref(o);
  impl->owns_pyobject = false;  // back to state A: the reference it held is the caller's now
  impl->retain();
  return o;
}

PyObject* wrap_as(PyTypeObject* type, Tensor t) {
  if (type == tensor_type) return wrap(std::move(t));
  if (t.impl()->pyobject) {
    PyErr_Format(PyExc_RuntimeError,
                 "%s: expected a tensor without a Python object, got one that has it. Use .detach().", type->tp_name);
    return nullptr;
  }
  PyObject* o = type->tp_alloc(type, 0);
  if (!o) return nullptr;
  PyTensor* self = self_of(o);
  new (&self->tensor) Tensor(std::move(t));
  self->tensor.impl()->pyobject = self;
  return o;
}

bool add_to_tensor(const char* name, PyObject* value) {
  return value && PyObject_SetAttrString(reinterpret_cast<PyObject*>(tensor_type), name, value) == 0;
}

bool add_tensor_type(PyObject* module) {
  static PyType_Slot slots[96];
  int n = 0;
  auto add = [&](int id, void* p) { slots[n++] = {id, p}; };
  add(Py_tp_new, reinterpret_cast<void*>(tensor_new));
  add(Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc));
  add(Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse));
  add(Py_tp_clear, reinterpret_cast<void*>(tensor_clear));
  add(Py_tp_hash, reinterpret_cast<void*>(tensor_hash));
  add(Py_tp_members, members);
  add(Py_tp_getset, basic_properties);
  add(Py_tp_methods, basic_methods);
  add(Py_tp_doc, const_cast<char*>("A multi-dimensional array of one dtype that can record what is done with it."));
  n = add_number_slots(slots, n);
  n = add_subscript_slots(slots, n);
  n = add_buffer_slots(slots, n);
  slots[n] = {0, nullptr};
  PyType_Spec spec = {"vesta.Tensor", sizeof(PyTensor), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  tensor_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!tensor_type) return false;
  python_port.release = release_object;
  return PyModule_AddObject(module, "Tensor", new_ref(reinterpret_cast<PyObject*>(tensor_type))) == 0;
}

}  // namespace vesta::python
