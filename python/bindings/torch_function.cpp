#include "torch_function.h"

#include <vector>

#include "errors.h"

namespace vesta::python {

bool torch_function_seen = false;

namespace {

thread_local bool disabled = false;

thread_local std::vector<PyObject*> modes;  // those that this thread has entered, the innermost last; references
bool other_classes = false;  // a class that is no Tensor's, with a __torch_function__, has been seen
PyObject* disabled_impl = nullptr;  // _disabled_torch_function_impl
PyObject* attribute = nullptr;      // "__torch_function__"
PyObject* when_seen = nullptr;      // called once, when torch_function_seen is set

/// Remembers answers of overrides() by type; a type's version tag is never used twice, so a stale entry cannot match.
struct Entry {
  PyTypeObject* type = nullptr;
  unsigned int version = 0;
  bool answer = false;
};
Entry cache[16];

/// Returns whether a __torch_function__ is that of PyTorch's own Tensor in the same process, which runs the function
/// itself: it would be called again, without end.
bool is_pytorchs_default(PyObject* f) {
  Ref module(PyObject_GetAttrString(f, "__module__"));
  if (!module) PyErr_Clear();
  return module && PyUnicode_Check(module.get()) &&
         PyUnicode_CompareWithASCIIString(module.get(), "torch._tensor") == 0;
}

bool look_up(PyTypeObject* type) {
  Ref f(PyObject_GetAttr(reinterpret_cast<PyObject*>(type), attribute));
  if (!f) {
    PyErr_Clear();
    return false;
  }
  return f.get() != disabled_impl && !is_pytorchs_default(f.get());
}

// Lists of tensors, and index tuples with lists in them, are looked into; deeper nesting is data.
constexpr int kDepth = 2;

void collect(PyObject* o, std::vector<PyObject*>& found, int depth = kDepth) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; depth && i < PySequence_Fast_GET_SIZE(o); ++i) {
      collect(PySequence_Fast_GET_ITEM(o, i), found, depth - 1);
    }
    return;
  }
  if (!overrides(Py_TYPE(o))) return;
  size_t at = found.size();
  for (size_t i = 0; i < found.size(); ++i) {
    if (Py_TYPE(found[i]) == Py_TYPE(o)) return;
    if (at == found.size() && PyType_IsSubtype(Py_TYPE(o), Py_TYPE(found[i]))) at = i;
  }
  found.insert(found.begin() + std::ptrdiff_t(at), o);
}

PyObject* run_disabled(PyObject*, PyObject* args) {
  PyObject *func, *types, *call_args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(args, "OO|OO", &func, &types, &call_args, &kwargs)) return nullptr;
  const bool named = kwargs && kwargs != Py_None;
  if ((call_args && !PyTuple_Check(call_args)) || (named && !PyDict_Check(kwargs))) {
    return PyErr_Format(PyExc_TypeError, "__torch_function__: expected args a tuple and kwargs a dict, got %s and %s.",
                        call_args ? Py_TYPE(call_args)->tp_name : "nothing", named ? Py_TYPE(kwargs)->tp_name : "none");
  }
  DisableOverrides off;
  Ref none(PyTuple_New(0));
  return run_python([&] { return PyObject_Call(func, call_args ? call_args : none.get(), named ? kwargs : nullptr); });
}

PyObject* set_overrides(PyObject*, PyObject* on) {
  bool before = !disabled;
  int value = PyObject_IsTrue(on);
  if (value < 0) return nullptr;
  disabled = !value;
  return PyBool_FromLong(before);
}

PyObject* push_mode(PyObject*, PyObject* mode) {
  see_torch_function();
  modes.push_back(new_ref(mode));
  Py_RETURN_NONE;
}

PyObject* pop_mode(PyObject*, PyObject*) {
  if (modes.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "_pop_torch_function_mode: this thread has entered no mode.");
    return nullptr;
  }
  PyObject* mode = modes.back();
  modes.pop_back();
  return mode;
}

PyObject* list_modes(PyObject*, PyObject*) {
  PyObject* list = PyList_New(0);
  for (PyObject* mode : modes) {
    if (list && PyList_Append(list, mode) < 0) Py_CLEAR(list);
  }
  return list;
}

PyObject* has_override(PyObject*, PyObject* args) {
  return PyBool_FromLong(torch_function_seen && (in_mode() || overrides_in(args)));
}

PyObject* set_when_seen(PyObject*, PyObject* function) {
  Py_XSETREF(when_seen, new_ref(function));
  if (torch_function_seen) Py_RETURN_TRUE;
  Py_RETURN_FALSE;
}

PyObject* see(PyObject*, PyObject*) {
  see_torch_function();
  Py_RETURN_NONE;
}

/// Calls a function written in Python as the user called it, or lets a mode or an argument take the call over.
PyObject* call_or_hand_over(PyObject*, PyObject* const* a, Py_ssize_t count) {
  if (count != 4 || !PyTuple_Check(a[2]) || !PyDict_Check(a[3])) {
    return PyErr_Format(PyExc_TypeError, "_call_or_hand_over: expected a function, its plain one, a tuple and a dict.");
  }
  PyObject *args = a[2], *kwargs = a[3];
  auto any = [&](bool (*test)(PyObject*)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
      if (test(PyTuple_GET_ITEM(args, i))) return true;
    }
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) {
      if (test(value)) return true;
    }
    return false;
  };
  if (in_mode() || any(overrides_in)) return call_override(a[0], args, kwargs);
  PyObject* result = PyObject_Call(a[1], args, kwargs);
  const bool refused =
      !result && (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_AttributeError));
  if (!refused) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const bool other = any([](PyObject* o) { return find_other_classes(o, kDepth); });
  PyErr_Restore(type, value, trace);
  if (!other) return nullptr;
  PyErr_Clear();
  return call_override(a[0], args, kwargs);
}

/// Takes the innermost mode out of its thread's stack while it lives.
class LeaveMode {
 public:
  LeaveMode() : mode_(modes.back()) { modes.pop_back(); }
  ~LeaveMode() { modes.push_back(mode_); }
  LeaveMode(const LeaveMode&) = delete;
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

PyMethodDef functions[] = {
    {"_disabled_torch_function_impl", run_disabled, METH_VARARGS,
     "Calls the function itself: a class that sets its "
     "__torch_function__ to this takes no call over, and results of its operations are plain tensors."},
    {"_set_torch_function_enabled", set_overrides, METH_O, "Switches overriding on or off; returns what it was."},
    {"_push_torch_function_mode", push_mode, METH_O, "Enters a mode on this thread."},
    {"_pop_torch_function_mode", pop_mode, METH_NOARGS, "Leaves the innermost mode and returns it."},
    {"_torch_function_modes", list_modes, METH_NOARGS, "The modes that this thread has entered, the innermost last."},
    {"_has_torch_function", has_override, METH_O,
     "Whether a mode or an object in the tuple, or in a list in it, takes calls over."},
    {"_when_torch_function_seen", set_when_seen, METH_O,
     "Sets what is called, once, when the first mode is entered or the first class with a __torch_function__ is seen. "
     "Returns whether that has been."},
    {"_see_torch_function", see, METH_NOARGS,
     "Makes calls look for classes that take them over, for one that got its __torch_function__ after its creation."},
    {"_call_or_hand_over", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_or_hand_over)),
     METH_FASTCALL,
     "Calls plain(*args, **kwargs), given (function, plain, args, kwargs), unless the call of `function` "
     "is taken over."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void see_torch_function() {
  if (torch_function_seen) return;
  torch_function_seen = true;
  if (!when_seen) return;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Ref done(PyObject_CallNoArgs(when_seen));
  if (!done) PyErr_WriteUnraisable(when_seen);
  PyErr_Restore(type, value, trace);
}

bool overrides(PyTypeObject* type) {
  if (type == tensor_type || disabled) return false;
  if (!other_classes && !PyType_IsSubtype(type, tensor_type)) return false;
  Entry& e = cache[(reinterpret_cast<uintptr_t>(type) >> 6) % 16];
  if (e.type == type && e.version == type->tp_version_tag && e.version) return e.answer;
  bool answer = look_up(type);
  e = {type, type->tp_version_tag, answer};
  return answer;
}

bool in_mode() { return !disabled && !modes.empty(); }

bool overrides_in(PyObject* o) {
  if (in_mode()) return true;
  std::vector<PyObject*> found;
  collect(o, found, PyTuple_Check(o) || PyList_Check(o) ? kDepth : 0);
  return !found.empty();
}

bool find_other_classes(PyObject* o, int depth) {
  if (PyTuple_CheckExact(o) || PyList_CheckExact(o)) {
    for (Py_ssize_t i = 0; depth && i < PySequence_Fast_GET_SIZE(o); ++i) {
      if (find_other_classes(PySequence_Fast_GET_ITEM(o, i), depth - 1)) return true;
    }
    return false;
  }
  PyTypeObject* type = Py_TYPE(o);
  if (disabled || PyType_IsSubtype(type, tensor_type) || !look_up(type)) return false;
  other_classes = true;
  see_torch_function();
  return true;
}

bool is_pytorchs_tensor(PyObject* o) {
  if (PyType_IsSubtype(Py_TYPE(o), tensor_type)) return false;
  Ref f(PyObject_GetAttr(reinterpret_cast<PyObject*>(Py_TYPE(o)), attribute));
  if (!f) PyErr_Clear();
  return f && is_pytorchs_default(f.get());
}

bool overrides_enabled() { return !disabled; }
DisableOverrides::DisableOverrides() : saved_(disabled) { disabled = true; }
DisableOverrides::~DisableOverrides() { disabled = saved_; }

PyObject* override_property(PyObject* o, const char* name, const char* method, PyObject* value) {
  Ref property(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), name));
  Ref func(property ? PyObject_GetAttrString(property.get(), method) : nullptr);
  Ref args(value ? PyTuple_Pack(2, o, value) : PyTuple_Pack(1, o));
  return func && args ? call_override(func.get(), args.get(), nullptr) : nullptr;
}

namespace {

/// Returns the text for a function in errors: "Tensor.shape.__get__", or what repr() gives.
PyObject* shown(PyObject* func) {
  Ref owner(PyObject_GetAttrString(func, "__self__"));
  if (!owner) PyErr_Clear();
  if (owner && PyObject_TypeCheck(owner.get(), &PyProperty_Type)) {  // written in Python: it does not know its name
    Ref overrides(PyImport_ImportModule("vesta.overrides"));
    Ref name(overrides ? PyObject_CallMethod(overrides.get(), "resolve_name", "O", func) : nullptr);
    if (name && PyUnicode_Check(name.get())) {  // "vesta.Tensor.real.__get__"
      const Py_ssize_t dot = PyUnicode_FindChar(name.get(), '.', 0, PyUnicode_GET_LENGTH(name.get()), 1);
      return PyUnicode_Substring(name.get(), dot + 1, PyUnicode_GET_LENGTH(name.get()));
    }
    PyErr_Clear();
  }
  if (!owner || !PyObject_TypeCheck(owner.get(), &PyGetSetDescr_Type)) return PyObject_Repr(func);
  Ref property(PyObject_GetAttrString(owner.get(), "__name__")), method(PyObject_GetAttrString(func, "__name__"));
  return property && method ? PyUnicode_FromFormat("Tensor.%S.%S", property.get(), method.get()) : nullptr;
}

}  // namespace

PyObject* call_override(PyObject* func, PyObject* args, PyObject* kwargs, bool* declined) {
  std::vector<PyObject*> found;
  collect(args, found, kDepth + 1);
  if (kwargs) {
    PyObject *key, *value;
    for (Py_ssize_t at = 0; PyDict_Next(kwargs, &at, &key, &value);) collect(value, found);
  }
  Ref types(PyTuple_New(Py_ssize_t(found.size())));
  Ref no_kwargs(kwargs ? new_ref(kwargs) : PyDict_New());
  if (!types || !no_kwargs) return nullptr;
  for (size_t i = 0; i < found.size(); ++i) {
    PyTuple_SET_ITEM(types.get(), Py_ssize_t(i), new_ref(reinterpret_cast<PyObject*>(Py_TYPE(found[i]))));
  }
  std::vector<Ref> asked;  // held: who is called may empty the lists that they were found in
  asked.reserve(found.size());
  for (PyObject* o : found) asked.emplace_back(new_ref(o));
  if (in_mode()) {
    const LeaveMode outside;
    Ref f(PyObject_GetAttr(outside.mode(), attribute));
    if (!f) return nullptr;
    Ref r(call_python(f.get(), func, types.get(), args, no_kwargs.get()));
    if (!r || r.get() != Py_NotImplemented) return r.release();
  }
  for (const Ref& o : asked) {
    Ref f(PyObject_GetAttr(o.get(), attribute));
    if (!f) return nullptr;
    Ref r(call_python(f.get(), func, types.get(), args, no_kwargs.get()));
    if (!r || r.get() != Py_NotImplemented) return r.release();
  }
  if (declined) *declined = true;
  Ref name(shown(func));
  if (!name) return nullptr;
  if (asked.empty()) {
    PyErr_Format(PyExc_TypeError, "%S: __torch_function__ of the mode returned NotImplemented.", name.get());
  } else {
    PyErr_Format(PyExc_TypeError, "%S: __torch_function__ of the arguments' classes %R returned NotImplemented.",
                 name.get(), types.get());
  }
  return nullptr;
}

bool add_torch_function(PyObject* module) {
  attribute = PyUnicode_InternFromString("__torch_function__");
  if (!attribute || PyModule_AddFunctions(module, functions) < 0) return false;
  disabled_impl = PyObject_GetAttrString(module, "_disabled_torch_function_impl");
  return disabled_impl != nullptr;
}

}  // namespace vesta::python
