// Nodes of the tape in Python: what `grad_fn` gives.
#include <map>

#include "python_hooks.h"
// after Python.h
#include <structmember.h>

#include <vesta/autograd/node.h>

#include "arguments.h"

namespace vesta::python {

using namespace autograd;

namespace {

struct PyNode {
  PyObject_HEAD NodePtr node;
  PyObject* weakrefs;
};
PyTypeObject* node_type;

PyNode* self_of(PyObject* o) { return reinterpret_cast<PyNode*>(o); }
Node& node_of(PyObject* o) { return *self_of(o)->node; }

void node_dealloc(PyObject* o) {
  PyNode* self = self_of(o);
  PyTypeObject* type = Py_TYPE(o);
  PyObject_GC_UnTrack(o);
  if (self->weakrefs) PyObject_ClearWeakRefs(o);
  if (self->node) self->node->pyobject = nullptr;
  self->node.~NodePtr();
  PyObject_GC_Del(o);
  Py_DECREF(type);
}
int node_traverse(PyObject* o, visitproc visit, void* arg) {
  PyNode* self = self_of(o);
  Py_VISIT(Py_TYPE(o));
  if (!self->node || objects_in_graph == 0) return 0;
  return traverse_nodes(self->node.get(), visit, arg);
}

/// The collector found a cycle through a node that only this object holds: the node must go, and an inert one stays.
class Collected final : public Node {
 public:
  GradList apply(GradList, Needs) override { fail(Cause::runtime, "backward: this node was garbage collected."); }
  std::string name() const override { return "Collected"; }
};
int node_clear(PyObject* o) {
  PyNode* self = self_of(o);
  if (self->node && self->node->use_count() == 1) {
    self->node->pyobject = nullptr;
    NodePtr old = std::exchange(self->node, NodePtr(new Collected));
    self->node->pyobject = self;
  }
  return 0;
}

PyObject* node_repr(PyObject* o) {
  return guarded([&] { return PyUnicode_FromFormat("<%s object at %p>", node_of(o).shown_name().c_str(), o); });
}
PyObject* node_name(PyObject* o, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(node_of(o).shown_name().c_str()); });
}
PyObject* node_sequence(PyObject* o, PyObject*) { return PyLong_FromUnsignedLongLong(node_of(o).sequence_nr()); }

PyObject* next_functions(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    auto edges = node_of(o).edges();
    Ref tuple(checked(PyTuple_New(Py_ssize_t(edges.size()))));
    for (size_t i = 0; i < edges.size(); ++i) {
      Ref next(checked(wrap_node(edges[i].node)));
      PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), checked(Py_BuildValue("(OI)", next.get(), edges[i].input_nr)));
    }
    return tuple.release();
  });
}
PyObject* variable(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    if (auto* a = dynamic_cast<AccumulateGrad*>(&node_of(o))) return wrap(a->variable());
    PyErr_Format(PyExc_AttributeError, "'%s' object has no attribute 'variable'", node_of(o).name().c_str());
    return nullptr;
  });
}

/// Finds attributes of a custom Function's context on its node, as users expect of grad_fn.
PyObject* node_getattr(PyObject* o, PyObject* name) {
  PyObject* r = PyObject_GenericGetAttr(o, name);
  if (r || !PyErr_ExceptionMatches(PyExc_AttributeError)) return r;
  PyObject* context = context_of(self_of(o)->node.get());
  if (!context) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(context, name);
}

template <class Hook>
PyObject* add_hook(PyObject* o, PyObject* callable) {
  if (!PyCallable_Check(callable)) {
    PyErr_Format(PyExc_TypeError, "register_hook(): argument 'hook' (position 1) must be callable, not %s",
                 Py_TYPE(callable)->tp_name);
    return nullptr;
  }
  return guarded([&] { return Hook::add(self_of(o)->node, callable); });
}

struct Pre final : NodePreHook, PyHook {
  using PyHook::PyHook;
  void call(GradList& grads) override {
    Gil gil;
    Ref given = tuple_of(grads);
    Ref r(checked(call_python(callable_, given.get())));
    replace_by(grads, r.get(), "prehook");
  }
  static PyObject* add(const NodePtr& n, PyObject* f) {
    return make_handle(n, register_prehook(*n, std::make_shared<Pre>(f)));
  }
};
struct Post final : NodePostHook, PyHook {
  using PyHook::PyHook;
  void call(GradList& inputs, const GradList& outputs) override {
    Gil gil;
    Ref in = tuple_of(inputs), out = tuple_of(outputs);
    Ref r(checked(call_python(callable_, in.get(), out.get())));
    replace_by(inputs, r.get(), "hook");
  }
  static PyObject* add(const NodePtr& n, PyObject* f) {
    return make_handle(n, autograd::register_hook(*n, std::make_shared<Post>(f)));
  }
};

/// Keeps the dict that users note things in with the node itself, whose Python object may come and go.
struct Notes final : NodePostHook, PyHook {
  using PyHook::PyHook;
  void call(GradList&, const GradList&) override {}
};
PyObject* metadata(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    Node& n = node_of(o);
    if (n.hooks()) {
      for (auto& e : n.hooks()->post.now()) {
        if (auto* notes = dynamic_cast<Notes*>(e.hook.get())) return new_ref(notes->callable());
      }
    }
    Ref dict(checked(PyDict_New()));
    autograd::register_hook(n, std::make_shared<Notes>(dict.get()));
    return dict.release();
  });
}

PyMethodDef node_methods[] = {
    {"name", node_name, METH_NOARGS, "name($self, /)\n--\n\nPyTorch's name of the step: MulBackward0."},
    {"_sequence_nr", node_sequence, METH_NOARGS, "_sequence_nr($self, /)\n--\n\nCounts the nodes of a thread."},
    {"register_hook", add_hook<Post>, METH_O,
     "register_hook($self, hook, /)\n--\n\nCalls hook(grad_inputs, grad_outputs) after the node ran; what it returns "
     "replaces grad_inputs. Returns a handle."},
    {"register_prehook", add_hook<Pre>, METH_O,
     "register_prehook($self, hook, /)\n--\n\nCalls hook(grad_outputs) before the node runs; what it returns replaces "
     "them. "
     "Returns a handle."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef node_properties[] = {
    {"next_functions", next_functions, nullptr, "Pairs (node, input number) that gradients go to.", nullptr},
    {"metadata", metadata, nullptr, "A dict for whoever wants to note something.", nullptr},
    {"variable", variable, nullptr, "The leaf of an AccumulateGrad node.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyMemberDef node_members[] = {{"__weaklistoffset__", T_PYSSIZET, offsetof(PyNode, weakrefs), READONLY, nullptr},
                              {nullptr, 0, 0, 0, nullptr}};
PyType_Slot node_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                            {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                            {Py_tp_repr, reinterpret_cast<void*>(node_repr)},
                            {Py_tp_getattro, reinterpret_cast<void*>(node_getattr)},
                            {Py_tp_methods, node_methods},
                            {Py_tp_getset, node_properties},
                            {Py_tp_members, node_members},
                            {Py_tp_doc, const_cast<char*>("A step of the tape, as Tensor.grad_fn gives it.")},
                            {0, nullptr}};

/// Returns the class of nodes of this name, made when first asked for: type(x.grad_fn).__name__ is the step's name.
PyTypeObject* type_for(const std::string& name) {
  static std::map<std::string, PyTypeObject*> types;
  PyTypeObject*& type = types[name];
  if (type) return type;
  std::string* full = new std::string("vesta.autograd." + name);  // the type keeps the pointer
  static PyType_Slot life[] = {{Py_tp_dealloc, reinterpret_cast<void*>(node_dealloc)},
                               {Py_tp_traverse, reinterpret_cast<void*>(node_traverse)},
                               {Py_tp_clear, reinterpret_cast<void*>(node_clear)},
                               {0, nullptr}};
  PyType_Spec spec = {full->c_str(), sizeof(PyNode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, life};
  Ref bases(PyTuple_Pack(1, node_type));
  type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases.get()));
  if (!type) throw_current();
  type->tp_new = nullptr;
  return type;
}

}  // namespace

PyObject* wrap_node(const NodePtr& node) {
  if (!node) Py_RETURN_NONE;
  if (node->pyobject) return new_ref(static_cast<PyObject*>(node->pyobject));
  return guarded([&]() -> PyObject* {
    PyNode* self = PyObject_GC_New(PyNode, type_for(node->shown_name()));
    if (!self) return nullptr;
    new (&self->node) NodePtr(node);
    self->weakrefs = nullptr;
    node->pyobject = self;
    PyObject_GC_Track(self);
    return reinterpret_cast<PyObject*>(self);
  });
}

bool add_nodes(PyObject* module) {
  PyType_Spec spec = {"vesta.autograd.graph.Node", sizeof(PyNode), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, node_slots};
  node_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!node_type) return false;
  node_type->tp_new = nullptr;
  return PyModule_AddObject(module, "Node", new_ref(reinterpret_cast<PyObject*>(node_type))) == 0;
}

}  // namespace vesta::python
