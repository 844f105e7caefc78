#include "stamp.h"

#include <algorithm>
#include <cstring>

#include <vesta/core/dispatch/autocast.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/promotion.h>
#include <vesta/core/ops/strided_iter.h>

#include "dtype_device.h"
#include "hand.h"
#include "memory_format.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

// ---- __torch_function__ ----

bool any_overrides(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (self && overrides_in(self)) return true;
  Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
  for (Py_ssize_t i = 0; i < all; ++i) {
    if (overrides_in(args[i])) return true;
  }
  return false;
}

PyObject* hand_over(const Table& t, Entry entry, PyObject* callee, PyObject* self, PyObject* const* args,
                    Py_ssize_t count, PyObject* names) {
  Py_ssize_t first = self ? 1 : 0;
  Ref tuple(PyTuple_New(count + first)), kwargs(names ? PyDict_New() : nullptr);
  if (!tuple || (names && !kwargs)) return nullptr;
  if (self) PyTuple_SET_ITEM(tuple.get(), 0, new_ref(self));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), first + i, new_ref(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i), args[count + i]) < 0) return nullptr;
  }
  Ref func(entry == Entry::function
               ? new_ref(callee)
               : PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type),
                                        (std::string(t.op) + (entry == Entry::inplace ? "_" : "")).c_str()));
  return func ? call_override(func.get(), tuple.get(), kwargs.get()) : nullptr;
}

// ---- what stands besides an op's own parameters ----

/// Returns the memory format that the result is to have; preserve where none is given.
Format check_extras(const Table& t, const Bound& b) {
  PyObject* o = b.extra(t, kLayout);
  if (o && o != Py_None && !is_layout(o))
    type_error("%s(): argument 'layout' must be vesta.layout, not %s", t.op, Py_TYPE(o)->tp_name);
  o = b.extra(t, kMemoryFormat);
  if (!o || o == Py_None) return Format::preserve;
  Format f = to_format(o);
  if (f == Format::none)
    type_error("%s(): argument 'memory_format' must be vesta.memory_format, not %s", t.op, Py_TYPE(o)->tp_name);
  return f;
}

/// Tells whether an extra of that name is True. TypeError: it is no bool.
bool is_set(const Table& t, PyObject* o, const char* name) {
  if (!o || o == Py_None) return false;
  if (!PyBool_Check(o) && std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) != 0) {
    type_error("%s(): argument '%s' must be bool, not %s", t.op, name, Py_TYPE(o)->tp_name);
  }
  return PyObject_IsTrue(o) == 1;
}

/// Writes a computed result to the tensor given as out=, by PyTorch's rules.
void write_out(const Table& t, PyObject* out, PyObject* result) {
  if (!is_tensor(out)) type_error("%s(): argument 'out' must be Tensor, not %s", t.op, Py_TYPE(out)->tp_name);
  const Tensor &to = unwrap(out), &from = unwrap(result);
  VESTA_CHECK(!GradMode::enabled() || !(from.requires_grad() || to.requires_grad()), runtime, t.op,
              "(): functions with out=... arguments don't support automatic differentiation, but one of the arguments "
              "requires grad.");
  VESTA_CHECK(can_cast(from.dtype(), to.dtype()), type, t.op, ": result type ", from.dtype(),
              " can't be cast to the desired output type ", to.dtype(), ".");
  VESTA_CHECK(from.device() == to.device(), device, t.op, ": expected out on ", from.device(), ", got ", to.device(),
              ".");
  if (!std::ranges::equal(to.sizes(), from.sizes())) {
    VESTA_CHECK(to.numel() == 0 && to.impl()->storage()->resizable(), value, t.op, ": expected out of shape ",
                from.sizes(), ", got ", to.sizes(), ". An out tensor is resized only when it is empty.");
    resize_tensor(to, from.sizes());
  }
  NoGrad off;
  copy_into(to, from, t.op);
}

PyObject* write_outs(const Table& t, PyObject* out, Ref result) {
  if (!PyTuple_Check(result.get())) {
    write_out(t, out, result.get());
    return new_ref(out);
  }
  Py_ssize_t n = PyTuple_GET_SIZE(result.get());
  if ((!PyTuple_Check(out) && !PyList_Check(out)) || PySequence_Fast_GET_SIZE(out) != n) {
    type_error("%s(): argument 'out' must be a tuple of %zd Tensors, not %s", t.op, n, Py_TYPE(out)->tp_name);
  }
  for (Py_ssize_t i = 0; i < n; ++i) {
    write_out(t, PySequence_Fast_GET_ITEM(out, i), PyTuple_GET_ITEM(result.get(), i));
  }
  return new_ref(out);
}

/// Tells whether a list parameter asks for much memory: then the fill is worth letting go of the GIL.
bool asks_for_much(const Table& t, const Bound& b) {
  if (t.has_self || t.varargs != 0) return false;
  int64_t n = 1;
  auto see = [&](PyObject* o) {
    int64_t v = PyLong_Check(o) ? PyLong_AsLongLong(o) : 1;
    if (v == -1 && PyErr_Occurred()) PyErr_Clear();
    if (v > 0 && n < kReleaseGil) n = v >= kReleaseGil ? v : n * v;
  };
  for (Py_ssize_t i = 0; i < b.rest_count; ++i) see(b.rest[i]);
  if (PyObject* o = b.slot[0]; o && !b.rest && (PyTuple_Check(o) || PyList_Check(o))) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(o); ++i) see(PySequence_Fast_GET_ITEM(o, i));
  }
  return n >= kReleaseGil;
}

/// Computes what is then written to out=; such a call names its dtype, so that autocast has no say in it.
PyObject* thin_with_out(const Table& t, Thin thin, Bound& b) {
  autocast::Pause as_asked;
  return thin(t, b, Out{});
}

/// Runs a function with what stands besides its parameters.
PyObject* run_with_extras(const Table& t, Thin thin, Bound& b) {
  const Format format = check_extras(t, b);
  // Without a row-major copy on the way.
  if (format >= Format::channels_last && std::string_view(t.op) == "contiguous") {
    return wrap(laid_out(unwrap(b.slot[0]), format, t.op));
  }
  const bool pinned = is_set(t, b.extra(t, kPinMemory), "pin_memory");
  const bool recorded = is_set(t, b.extra(t, kRequiresGrad), "requires_grad");
  PyObject* out = b.extra(t, kOut);
  if (out == Py_None) out = nullptr;
  if (out && t.pointwise) {
    if (!is_tensor(out)) type_error("%s(): argument 'out' must be Tensor, not %s", t.op, Py_TYPE(out)->tp_name);
    return thin(t, b, Out{&unwrap(out), Out::given});
  }
  Ref r(out ? thin_with_out(t, thin, b) : thin(t, b, Out{}));
  if (!r) return nullptr;
  if (out) r = Ref(write_outs(t, out, std::move(r)));
  if (format != Format::preserve && !out && !lies_in(unwrap(r.get()), format)) {
    r = Ref(wrap(laid_out(unwrap(r.get()), format, t.op)));
  }
  if (pinned) {
    VESTA_CHECK(!out, value, t.op, ": expected pin_memory=False with out=, which has its memory, got True.");
    r = Ref(wrap(pin_memory(unwrap(r.get()))));
  }
  if (recorded) unwrap(r.get()).set_requires_grad(true);
  return r.release();
}

PyObject* to_tuple(std::span<Tensor> list) {
  Ref tuple(PyTuple_New(Py_ssize_t(list.size())));
  for (size_t i = 0; tuple && i < list.size(); ++i) {
    PyObject* o = wrap(std::move(list[i]));
    if (!o) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), o);
  }
  return tuple.release();
}

/// Builds the text that help() splits into signature and docstring; a method's first parameter is shown as self.
const char* help_text(const Table& t, const std::string& name, bool method) {
  std::string more;
  if (t.has(kOut) && !method) more += ", out=None";
  if (t.has(kRequiresGrad)) more += ", requires_grad=False, pin_memory=False, layout=None";
  if (t.has(kMemoryFormat)) more += ", memory_format=None";
  std::string shown = method ? "$self" + t.signature.substr(std::string_view("input").size()) : t.signature;
  if (!more.empty()) shown += (shown.empty() ? "*" : ", *") + more;
  std::string s = name + "(" + shown + ")\n--\n\n" + t.doc;
  return (new std::string(std::move(s)))->c_str();  // lives as long as the interpreter
}

bool add_function(PyObject* module, const Table& t, PyCFunction f, PyObject** object) {
  static PyObject* module_name = PyUnicode_InternFromString("vesta");
  auto* def = new PyMethodDef{t.op, f, METH_FASTCALL | METH_KEYWORDS, help_text(t, t.op, false)};
  *object = PyCFunction_NewEx(def, nullptr, module_name);
  return *object && PyModule_AddObject(module, t.op, new_ref(*object)) == 0;
}

bool add_method(const Table& t, PyCFunction f, const char* suffix) {
  const char* name = *suffix ? (new std::string(std::string(t.op) + suffix))->c_str() : t.op;
  auto* def = new PyMethodDef{name, f, METH_FASTCALL | METH_KEYWORDS, help_text(t, name, true)};
  Ref d(PyDescr_NewMethod(tensor_type, def));
  return add_to_tensor(name, d.get());
}

std::vector<Stamped>& registry() {
  static std::vector<Stamped> all;
  return all;
}

/// Lists the parameters as (name, C++ type, default or None, whether a number may stand for a tensor).
Ref parameters(const Table& t) {
  Ref list(checked(PyList_New(0)));
  for (const Param& p : t.params) {
    Ref text(p.required ? new_ref(Py_None) : PyUnicode_FromString(shown_default(p).c_str()));
    Ref entry(checked(
        Py_BuildValue("(ssOO)", p.name.c_str(), p.type.c_str(), text.get(), p.number_allowed ? Py_True : Py_False)));
    checked(PyList_Append(list.get(), entry.get()));
  }
  return list;
}

PyObject* describe(const Stamped& s) {
  const Table& t = *s.table;
  Ref params = parameters(t);
  return Py_BuildValue("{s:s,s:O,s:O,s:O,s:s,s:s,s:O,s:s,s:O}", "kind", t.pointwise ? "pointwise" : "op",
                       "differentiable", t.differentiable ? Py_True : Py_False, "method", t.method ? Py_True : Py_False,
                       "inplace", t.inplace ? Py_True : Py_False, "signature", t.signature.c_str(), "doc",
                       t.doc.c_str(), "parameters", params.get(), "returns", t.result, "out",
                       t.has(kOut) ? Py_True : Py_False);
}

PyObject* registry_object(PyObject*, PyObject*) {
  return guarded([] {
    Ref d(checked(PyDict_New()));
    for (const Stamped& s : registry()) {
      Ref entry(checked(describe(s)));
      checked(PyDict_SetItemString(d.get(), s.table->op, entry.get()));
    }
    return d.release();
  });
}
PyMethodDef registry_method[] = {
    {"_registry", registry_object, METH_NOARGS,
     "_registry($module, /)\n--\n\nThe roll call: a dict from each op's name to "
     "its kind, differentiable, method, inplace, signature, doc, parameters, returns and out."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

PyObject* to_python(TensorPair t) {
  Tensor list[] = {std::move(std::get<0>(t)), std::move(std::get<1>(t))};
  return to_tuple(list);
}
PyObject* to_python(TensorTriple t) {
  Tensor list[] = {std::move(std::get<0>(t)), std::move(std::get<1>(t)), std::move(std::get<2>(t))};
  return to_tuple(list);
}
PyObject* to_python(TensorVector t) { return to_tuple(t); }

PyObject* call_stamped(const Table& t, Thin thin, Entry entry, PyObject* callee, PyObject* self, PyObject* const* args,
                       Py_ssize_t count, PyObject* names) noexcept {
  try {
    if (torch_function_seen && any_overrides(self, args, count, names)) [[unlikely]] {
      return hand_over(t, entry, callee, self, args, count, names);
    }
    Bound b;
    b.bind(t, self, args, count, names);
    if (entry == Entry::inplace) return thin(t, b, Out{&unwrap(self), Out::inplace});
    if (!t.extras) return thin(t, b, Out{});
    if (names) return run_with_extras(t, thin, b);
    b.big = asks_for_much(t, b);
    return thin(t, b, Out{});
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}

bool add_hand_function(PyObject* module, Table& t, PyCFunction f, PyObject** object) {
  return add_function(module, t, f, object);
}
bool add_hand_method(Table& t, PyCFunction f) { return add_method(t, f, ""); }

bool add_stamped(PyObject* module) {
  std::vector<Stamped>& all = registry();
  stamp_pointwise(all);
  stamp_structured(all);
  stamp_composite(all);
  PyObject* functions = PyModule_New("vesta._C._ops");
  if (!functions) return false;
  for (const Stamped& s : all) {
    if (!add_function(functions, *s.table, s.function, s.function_object)) return false;
    if (s.method && !add_method(*s.table, s.method, "")) return false;
    if (s.inplace && !add_method(*s.table, s.inplace, "_")) return false;
  }
  for (const Stamped& s : all) {  // those of optimizers are called as vesta._C._fused_adam_
    if (s.table->op[0] == '_' && PyModule_AddObject(module, s.table->op, new_ref(*s.function_object)) < 0) return false;
  }
  if (PyModule_AddObject(module, "_ops", new_ref(functions)) < 0) return false;
  return PyModule_AddObject(module, "_nn", functions) == 0 && PyModule_AddFunctions(module, registry_method) == 0;
}

}  // namespace vesta::python
