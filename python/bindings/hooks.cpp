#include "python_hooks.h"

#include <vesta/autograd/grad_meta.h>

#include "factories.h"
#include "graph_gc.h"
#include "hand.h"

namespace vesta::python {

int64_t objects_in_graph = 0;

using namespace autograd;

namespace {

struct Handle {
  PyObject_HEAD PyObject* tensor;  // a weak reference, or null
  Node* node;        // a counted reference, or null
  HookId id;
};
PyTypeObject* handle_type;

Handle* handle_of(PyObject* o) { return reinterpret_cast<Handle*>(o); }

PyObject* weak_target(PyObject* weak) {  // a new reference, or null
  PyObject* o = call_python(weak);
  if (o == Py_None) Py_CLEAR(o);
  return o;
}

PyObject* handle_remove(PyObject* o, PyObject*) {
  Handle* h = handle_of(o);
  return guarded([&]() -> PyObject* {
    if (h->tensor) {
      Ref t(weak_target(h->tensor));
      PyErr_Clear();
      if (t && is_tensor(t.get())) remove_hook(unwrap(t.get()), h->id);
    }
    if (h->node) remove_hook(*h->node, h->id);
    Py_RETURN_NONE;
  });
}
void handle_dealloc(PyObject* o) {
  Handle* h = handle_of(o);
  PyTypeObject* type = Py_TYPE(o);
  Py_XDECREF(h->tensor);
  NodePtr::adopt(h->node);
  PyObject_Free(o);
  Py_DECREF(type);
}
PyObject* handle_enter(PyObject* o, PyObject*) { return new_ref(o); }
PyObject* handle_exit(PyObject* o, PyObject*) { return handle_remove(o, nullptr); }
PyObject* handle_id(PyObject* o, void*) { return PyLong_FromUnsignedLongLong(handle_of(o)->id); }

PyMethodDef handle_methods[] = {
    {"remove", handle_remove, METH_NOARGS, "remove($self, /)\n--\n\nTakes the hook away; a second call does nothing."},
    {"__enter__", handle_enter, METH_NOARGS, nullptr},
    {"__exit__", handle_exit, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef handle_properties[] = {{"id", handle_id, nullptr, "Names the hook.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot handle_slots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(handle_dealloc)},
                              {Py_tp_methods, handle_methods},
                              {Py_tp_getset, handle_properties},
                              {Py_tp_doc, const_cast<char*>("Takes a hook of the tape away: remove(), or `with`.")},
                              {0, nullptr}};

Handle* new_handle(HookId id) {
  Handle* h = PyObject_New(Handle, handle_type);
  if (!h) throw_current();
  h->tensor = nullptr, h->node = nullptr, h->id = id;
  return h;
}

// ---- hooks on tensors; those on nodes stand in nodes.cpp ----

class PyTensorHook final : public TensorHook, public PyHook {
 public:
  using PyHook::PyHook;
  Tensor call(const Tensor& grad) override {
    Gil gil;
    Ref g(checked(wrap(grad)));
    Ref r(checked(call_python(callable_, g.get())));
    if (r.get() == Py_None) return {};
    if (!is_tensor(r.get()))
      type_error("hook: expected a Tensor or None, got %s (returned).", Py_TYPE(r.get())->tp_name);
    return unwrap(r.get());
  }
};

class PyPostAccumulateHook final : public PostAccumulateHook, public PyHook {
 public:
  using PyHook::PyHook;
  void call(const Tensor& leaf) override {
    Gil gil;
    Ref t(checked(wrap(leaf)));
    Ref r(checked(call_python(callable_, t.get())));
    if (r.get() != Py_None && r.get() != t.get())  // lambda p: p.add_(p.grad, alpha=-lr)
      fail(Cause::runtime, "Tensor post accumulate grad hooks should return None.");
  }
};

void check_callable(const Table& t, Bound& b) {
  if (!PyCallable_Check(b.slot[1])) wrong_type(t, 1, "callable", b.slot[1]);
}

struct RegisterHook {
  static constexpr char name[] = "register_hook", params[] = "(object hook)",
                        doc[] =
                            "Calls hook(grad) once the gradient is complete; a tensor it returns replaces the "
                            "gradient. Returns a handle with remove(). Raises unless the tensor requires grad.";
  static PyObject* run(const Table& t, Bound& b) {
    check_callable(t, b);
    HookId id = register_hook(unwrap(b.slot[0]), std::make_shared<PyTensorHook>(b.slot[1]));
    return make_handle(b.slot[0], id);
  }
};
struct RegisterPostAccumulate {
  static constexpr char name[] = "register_post_accumulate_grad_hook", params[] = "(object hook)",
                        doc[] = "Calls hook(tensor) after a gradient was added to the leaf's grad. Returns a handle.";
  static PyObject* run(const Table& t, Bound& b) {
    check_callable(t, b);
    HookId id = register_post_accumulate_hook(unwrap(b.slot[0]), std::make_shared<PyPostAccumulateHook>(b.slot[1]));
    return make_handle(b.slot[0], id);
  }
};

// ---- hooks on saved tensors ----

class PyPacked final : public PackedTensor, public PyHook {
 public:
  PyPacked(PyObject* packed, std::shared_ptr<PyHook> unpack) : PyHook(packed), unpack_(std::move(unpack)) {}
  Tensor unpack() override {
    Gil gil;
    Ref r(checked(call_python(unpack_->callable(), callable_)));
    if (!is_tensor(r.get())) {
      type_error("Output of saved tensor unpack_hook expected to be a Tensor but got result of type %s",
                 Py_TYPE(r.get())->tp_name);
    }
    return unwrap(r.get());
  }

 private:
  std::shared_ptr<PyHook> unpack_;
};

class PySavedHooks final : public SavedTensorHooks, public PyHook {
 public:
  PySavedHooks(PyObject* pack, PyObject* unpack) : PyHook(pack), unpack_(std::make_shared<PyHook>(unpack)) {}
  std::unique_ptr<PackedTensor> pack(const Tensor& t) override {
    Gil gil;
    Ref object(checked(wrap(t)));
    Ref packed(checked(call_python(callable_, object.get())));
    return std::make_unique<PyPacked>(packed.get(), unpack_);
  }

 private:
  std::shared_ptr<PyHook> unpack_;
};

struct PushSaved {
  static constexpr char name[] = "_push_saved_tensors_hooks", params[] = "(object pack_hook, object unpack_hook)",
                        doc[] = "Passes tensors saved on this thread through pack_hook, and back through unpack_hook.";
  static PyObject* run(const Table& t, Bound& b) {
    for (int i = 0; i < 2; ++i) {
      if (!PyCallable_Check(b.slot[i])) wrong_type(t, i, "callable", b.slot[i]);
    }
    push_saved_tensor_hooks(std::make_shared<PySavedHooks>(b.slot[0], b.slot[1]));
    Py_RETURN_NONE;
  }
};
struct PopSaved {
  static constexpr char name[] = "_pop_saved_tensors_hooks", params[] = "()", doc[] = "Ends the last push.";
  static PyObject* run(const Table&, Bound&) {
    pop_saved_tensor_hooks();
    Py_RETURN_NONE;
  }
};

struct IncrementVersion {
  static constexpr char name[] = "_increment_version", params[] = "(Tensor tensor)",
                        doc[] = "Counts a write to the tensor that no operation has made.";
  static PyObject* run(const Table&, Bound& b) {
    unwrap(b.slot[0]).impl()->bump("increment_version");
    Py_RETURN_NONE;
  }
};

template <class List>
int visit_list(const List& list, visitproc visit, void* arg) {
  return list.visit([&](const auto& e) {
    if (e.hook.use_count() > 1) return 0;
    if (auto* hook = dynamic_cast<PyHook*>(e.hook.get())) Py_VISIT(hook->callable());
    return 0;
  });
}

}  // namespace

Ref tuple_of(std::span<const Tensor> list) {
  Ref tuple(checked(PyTuple_New(Py_ssize_t(list.size()))));
  for (size_t i = 0; i < list.size(); ++i) PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), checked(wrap(list[i])));
  return tuple;
}

void replace_by(GradList& list, PyObject* returned, const char* what) {
  if (returned == Py_None) return;
  Ref tuple(PyTuple_Check(returned) ? new_ref(returned) : PyTuple_Pack(1, returned));
  VESTA_CHECK(size_t(PyTuple_GET_SIZE(tuple.get())) == list.size(), runtime, what, ": expected ", list.size(),
              " gradients, got ", int64_t(PyTuple_GET_SIZE(tuple.get())), " (returned).");
  for (size_t i = 0; i < list.size(); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), Py_ssize_t(i));
    if (item == Py_None) list[i] = {};
    else if (is_tensor(item)) list[i] = unwrap(item);
    else type_error("%s: expected Tensors or None, got %s (returned).", what, Py_TYPE(item)->tp_name);
  }
}

PyObject* make_handle(PyObject* tensor, HookId id) {
  Handle* h = new_handle(id);
  h->tensor = PyWeakref_NewRef(tensor, nullptr);
  return reinterpret_cast<PyObject*>(h);
}
PyObject* make_handle(const NodePtr& node, HookId id) {
  Handle* h = new_handle(id);
  h->node = NodePtr(node).detach();
  return reinterpret_cast<PyObject*>(h);
}

int traverse_hooks(const NodeHooks* hooks, visitproc visit, void* arg) {
  if (!hooks) return 0;
  if (int r = visit_list(hooks->tensor, visit, arg)) return r;
  if (int r = visit_list(hooks->pre, visit, arg)) return r;
  if (int r = visit_list(hooks->post, visit, arg)) return r;
  return visit_list(hooks->post_accumulate, visit, arg);
}

int traverse_nodes(Node* first, visitproc visit, void* arg) {
  std::vector<Node*> open;
  if (first && first->use_count() == 1) open.push_back(first);
  while (!open.empty()) {
    Node* n = open.back();
    open.pop_back();
    if (!n->accumulates()) {
      if (int r = traverse_hooks(n->hooks(), visit, arg)) return r;
    }
    if (int r = traverse_function(n, visit, arg)) return r;
    for (const Edge& e : n->edges()) {
      if (e.node && e.node->use_count() == 1) open.push_back(e.node.get());
    }
  }
  return 0;
}

int traverse_graph(const Tensor& t, visitproc visit, void* arg) {
  if (!t.impl()->autograd) return 0;
  GradMeta& m = *meta(t);
  if (m.grad.defined() && m.grad.impl()->owns_pyobject && m.grad.impl()->use_count() == 1) {
    Py_VISIT(static_cast<PyObject*>(m.grad.impl()->pyobject));
  }
  if (objects_in_graph == 0) return 0;
  if (int r = traverse_hooks(m.hooks.get(), visit, arg)) return r;
  return traverse_nodes(m.grad_fn.get(), visit, arg);
}

void clear_graph(const Tensor& t) {
  TensorImpl* impl = t.impl();
  AutogradSlot* slot = std::exchange(impl->autograd, nullptr);
  impl->layers &= uint8_t(~bit(Layer::autograd));
  delete slot;
}

bool add_hooks(PyObject* module) {
  PyType_Spec spec = {"vesta._C.HookHandle", sizeof(Handle), 0, Py_TPFLAGS_DEFAULT, handle_slots};
  handle_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!handle_type) return false;
  handle_type->tp_new = nullptr;
  return add_functions<PushSaved, PopSaved, IncrementVersion>(module) &&
         add_methods<RegisterHook, RegisterPostAccumulate>();
}

}  // namespace vesta::python
