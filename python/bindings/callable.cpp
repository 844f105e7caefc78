#include "callable.h"

#include <algorithm>
#include <cstring>

#include <vesta/core/dispatch/known_name.h>
#include <vesta/core/ops/copy.h>

#include "dtype_device.h"
#include "examples.h"
#include "memory_format.h"
#include "op_bindings.h"
#include "out_argument.h"
#include "torch_function.h"
#include "wrong_call.h"

namespace vesta::python {
namespace {

// ---- __torch_function__ ----

bool any_overrides(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (in_mode() || (self && overrides_in(self))) return true;
  Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
  for (Py_ssize_t i = 0; i < all; ++i) {
    if (overrides_in(args[i])) return true;
  }
  return false;
}

/// Returns whether an argument that is no tensor has a __torch_function__. An exception that is set stays set.
bool any_other_classes(PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
  const bool found = (self && find_other_classes(self)) ||
                     std::any_of(args, args + all, [](PyObject* o) { return find_other_classes(o); });
  PyErr_Restore(type, value, trace);
  return found;
}

PyObject* hand_over(const Callable& callable, PyObject* self, PyObject* const* args, Py_ssize_t count,
                    PyObject* names) {
  Py_ssize_t first = self ? 1 : 0;
  Ref tuple(PyTuple_New(count + first)), kwargs(names ? PyDict_New() : nullptr);
  if (!tuple || (names && !kwargs)) return nullptr;
  if (self) PyTuple_SET_ITEM(tuple.get(), 0, new_ref(self));
  for (Py_ssize_t i = 0; i < count; ++i) PyTuple_SET_ITEM(tuple.get(), first + i, new_ref(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    if (PyDict_SetItem(kwargs.get(), PyTuple_GET_ITEM(names, i), args[count + i]) < 0) return nullptr;
  }
  return call_override(callable.object, tuple.get(), kwargs.get());
}

// ---- what stands besides an op's own parameters ----

/// Raises for another layout than the result's: that of the operand for zeros_like() and its kind, else strided.
void check_layout(const Table& t, const Bound& b) {
  PyObject* o = b.extra(t, kLayout);
  if (!o || o == Py_None) return;
  if (!is_layout(o)) type_error("%s(): argument 'layout' must be vesta.layout, not %s", t.op, Py_TYPE(o)->tp_name);
  const bool like = std::string_view(t.op).ends_with("_like") && b.slot[0] && is_tensor(b.slot[0]);
  const Ref own(layout_object(like ? layout_number(unwrap(b.slot[0])) : 0));
  if (o == own.get()) return;
  PyErr_Format(PyExc_NotImplementedError, "%s: expected %R, got %R (layout). Convert the result with .to_sparse().",
               t.op, own.get(), o);
  throw_current();
}

/// Returns the memory format that the result is to have; preserve where none is given.
Format check_extras(const Table& t, const Bound& b) {
  check_layout(t, b);
  PyObject* o = b.extra(t, kMemoryFormat);
  if (!o || o == Py_None) return Format::preserve;
  Format f = to_format(o);
  if (f == Format::none)
    type_error("%s(): argument 'memory_format' must be vesta.memory_format, not %s", t.op, Py_TYPE(o)->tp_name);
  return f;
}

/// Returns whether an extra of that name is True. TypeError: it is no bool.
bool is_set(const Table& t, PyObject* o, const char* name) {
  if (!o || o == Py_None) return false;
  if (!PyBool_Check(o) && std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) != 0) {
    type_error("%s(): argument '%s' must be bool, not %s", t.op, name, Py_TYPE(o)->tp_name);
  }
  return PyObject_IsTrue(o) == 1;
}

/// Returns whether a list parameter asks for much memory: then the fill is worth letting go of the GIL.
bool asks_for_much(const Table& t, const Bound& b) {
  if (t.varargs != 0) return false;
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

/// Runs a function with what stands besides its parameters.
PyObject* run_with_extras(const Table& t, Thin thin, Bound& b) {
  const Format format = check_extras(t, b);
  const bool pinned = is_set(t, b.extra(t, kPinMemory), "pin_memory");
  const bool recorded = is_set(t, b.extra(t, kRequiresGrad), "requires_grad");
  PyObject* out = b.extra(t, kOut);
  if (out == Py_None) out = nullptr;
  if (out && t.takes_out) {
    if (!is_tensor(out)) type_error("%s(): argument 'out' must be Tensor, not %s", t.op, Py_TYPE(out)->tp_name);
    const Tensor& to = unwrap(out);
    if (t.schema && t.schema->takes_out) check_not_recorded(t, b, {&to, 1});  // by the op's name, not that of a step
    return thin(t, b, Out{&to, Out::given});
  }
  Ref r(out ? run_with_out(t, thin, b, out) : thin(t, b, Out{}));
  if (!r) return nullptr;
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

// ---- forms ----

/// Returns what stands between the brackets of a call; a method's first parameter stands before the dot.
std::string written(const Table& t, bool method) {
  if (!method) return t.signature;
  const size_t next = t.signature.find(", ");
  return next == t.signature.npos ? "" : t.signature.substr(next + 2);
}

/// Warns once per form that it is deprecated, and says what to write instead.
void warn_deprecated(const Callable& callable, const Table& t, bool method) {
  static std::vector<const Table*> warned;
  if (std::ranges::find(warned, &t) != warned.end()) return;
  warned.push_back(&t);
  std::string text = "This overload of " + callable.name + " is deprecated:\n\t" + callable.name + "(" +
                     written(t, method) + ")\nConsider using one of the following signatures instead:";
  for (const Form& f : callable.forms) {
    if (f.table->schema->deprecated) continue;
    text += "\n\t" + callable.name + "(" + written(*f.table, method) + ")";
  }
  if (PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1) < 0) throw_current();
}

PyObject* run(const Callable& callable, const Form& form, Bound& b, PyObject* self, PyObject* names) {
  const Table& t = *form.table;
  if (t.schema && t.schema->deprecated) [[unlikely]]
    warn_deprecated(callable, t, self != nullptr);
  if (names && t.has(kOut) && (self || form.inplace) && b.extra(t, kOut)) [[unlikely]]  // only functions take it
    wrong_call(t, "() got an unexpected keyword argument 'out'");
  if (form.inplace) return form.thin(t, b, Out{&unwrap(self ? self : b.slot[0]), Out::inplace});
  if (!t.extras) return form.thin(t, b, Out{});
  if (names) return run_with_extras(t, form.thin, b);
  b.big = asks_for_much(t, b);
  return form.thin(t, b, Out{});
}

std::string given_types(PyObject* const* args, Py_ssize_t count, PyObject* names) {
  std::string text;
  auto add = [&](PyObject* o) {
    text += (text.empty() ? "" : ", ") + std::string(is_exact_tensor(o) ? "Tensor" : Py_TYPE(o)->tp_name);
  };
  for (Py_ssize_t i = 0; i < count; ++i) add(args[i]);
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); ++i) {
    add(args[count + i]);
    text.insert(text.rfind(", ") == text.npos ? 0 : text.rfind(", ") + 2,
                std::string(PyUnicode_AsUTF8(PyTuple_GET_ITEM(names, i))) + "=");
  }
  return text;
}

/// Returns a form as its callers write it: a method's without the tensor before the dot.
std::string shown(const Callable& callable, const Table& t, bool method) {
  std::string text = "\n * " + callable.name + "(";
  bool starred = false;
  for (const Param& p : std::span(t.params).subspan(method ? 1 : 0)) {
    if (text.back() != '(') text += ", ";
    if (p.keyword_only && !starred) text += "*, ", starred = true;
    text += std::string(expected_of(p)) + " " + p.name + (p.required ? "" : " = " + shown_default(p));
  }
  return text + ")";
}

/// Returns whether two forms are one to their callers: they differ at most in which numbers they take.
bool reads_the_same(const Table& a, const Table& b) {
  return std::ranges::equal(a.params, b.params, [](const Param& p, const Param& q) {
    const bool numbers = p.kind == Kind::number_as_real && q.kind == Kind::number;
    return p.name == q.name && (p.kind == q.kind || numbers);
  });
}

/// Raises a TypeError for arguments that no form takes: in the words of the one form that has as many and such names.
PyObject* refuse(const Callable& callable, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  std::vector<const Form*> current, likely;
  for (const Form& f : callable.forms) {
    if (f.table->schema && f.table->schema->deprecated) continue;
    if (std::ranges::any_of(current, [&](const Form* g) { return reads_the_same(*g->table, *f.table); })) continue;
    current.push_back(&f);
    Bound b;
    if (b.matches(*f.table, self, args, count, names)) likely.push_back(&f);
  }
  if (current.size() == 1 || likely.size() == 1) {
    const Form& form = *(likely.size() == 1 ? likely : current)[0];
    Bound b;
    b.bind(*form.table, self, args, count, names);
    return run(callable, form, b, self, names);  // the conversion of an argument raises
  }
  std::string text = std::string(known_name(callable.name)) +
                     "() received an invalid combination of arguments - got (" + given_types(args, count, names) +
                     "), but expected one of:";
  for (const Form* f : current) text += shown(callable, *f->table, self != nullptr);
  type_error("%s", text.c_str());
}

/// Builds the text that help() splits into signature and docstring; a method's first parameter is shown as self.
/// `home` as of example_of().
const char* help_text(const Callable& callable, std::string_view home) {
  const bool method = home == "Tensor.";
  const Table& t = *callable.forms[0].table;
  std::string text;
  if (callable.forms.size() == 1) {
    std::string more;
    if (t.has(kOut) && !method && !callable.forms[0].inplace) more += ", out=None";
    if (t.has(kRequiresGrad)) more += ", requires_grad=False, pin_memory=False, layout=None";
    if (t.has(kMemoryFormat)) more += ", memory_format=None";
    const size_t first = t.params.empty() ? 0 : t.params[0].name.size();
    std::string shown = method ? "$self" + t.signature.substr(first) : t.signature;
    if (!more.empty()) shown += t.takes_star ? more : (shown.empty() ? "*" : ", *") + more;
    text = callable.name + "(" + shown + ")\n--\n\n";
  }
  std::string doc;
  for (const Form& f : callable.forms) {
    if (doc.empty()) doc = f.table->doc;
  }
  if (!doc.empty() && t.schema && t.schema->accepts.bits != kAllTypes.bits) {
    const bool dtype = std::ranges::any_of(t.params, [](const Param& p) { return p.name == "dtype"; });
    static std::map<decltype(kAllTypes.bits), std::string> texts;  // a few sets of dtypes serve all ops
    const auto [text_of_set, fresh] = texts.try_emplace(t.schema->accepts.bits);
    if (fresh) text_of_set->second = described(t.schema->accepts);
    doc += " Takes " + text_of_set->second + (dtype ? " without dtype=." : ".");
  }
  std::string example = example_of(home, callable.name);
  if (example.empty() && callable.name.ends_with('_')) example = example_of("Tensor.", callable.name);  // the method's
  return (new std::string(text + doc + example))->c_str();  // lives as long as the interpreter
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

PyObject* to_named(PyTypeObject* type, std::span<Tensor> list) {
  Ref r(PyStructSequence_New(type));
  for (size_t i = 0; r && i < list.size(); ++i) {
    PyObject* o = wrap(std::move(list[i]));
    if (!o) return nullptr;
    PyStructSequence_SetItem(r.get(), Py_ssize_t(i), o);
  }
  return r.release();
}

}  // namespace

PyObject* to_python(const Table& t, TensorPair pair) {
  Tensor list[] = {std::move(std::get<0>(pair)), std::move(std::get<1>(pair))};
  return t.named ? to_named(t.named, list) : to_tuple(list);
}
PyObject* to_python(const Table& t, TensorTriple triple) {
  Tensor list[] = {std::move(std::get<0>(triple)), std::move(std::get<1>(triple)), std::move(std::get<2>(triple))};
  return t.named ? to_named(t.named, list) : to_tuple(list);
}
PyObject* to_python(const Table&, TensorVector list) { return to_tuple(list); }
PyObject* to_python(const Table& t, TensorOrTensors either) {
  if (auto* one = std::get_if<Tensor>(&either)) return wrap(std::move(*one));
  return to_python(t, std::move(std::get<TensorVector>(either)));
}

PyObject* tuple_of(std::vector<Tensor> list) { return to_tuple(list); }

PyObject* call(const Callable& callable, PyObject* self, PyObject* const* args, Py_ssize_t count,
               PyObject* names) noexcept {
  try {
    if (torch_function_seen && !callable.inner && any_overrides(self, args, count, names)) [[unlikely]] {
      return hand_over(callable, self, args, count, names);
    }
    if (callable.forms.size() == 1) [[likely]] {
      Bound b;
      b.bind(*callable.forms[0].table, self, args, count, names);
      return run(callable, callable.forms[0], b, self, names);
    }
    for (const Form& form : callable.forms) {
      Bound b;
      if (b.fits(*form.table, self, args, count, names)) return run(callable, form, b, self, names);
    }
    return refuse(callable, self, args, count, names);
  } catch (...) {
    try {
      throw;
    } catch (const WrongCall& e) {
      e.restore_for(callable.name, self != nullptr);
    } catch (...) {
      const bool is_public_op = callable.forms[0].table->schema && callable.name[0] != '_';
      translate_exception(is_public_op ? callable.name.c_str() : nullptr);
    }
    const bool may_be_other = !callable.inner && PyErr_ExceptionMatches(PyExc_TypeError);
    if (!may_be_other || !any_other_classes(self, args, count, names)) return nullptr;
    PyErr_Clear();
    return hand_over(callable, self, args, count, names);
  }
}

namespace {
/// The public place of a module's functions: what stands before their examples, and the module that shows them.
struct Home {
  std::string prefix, module;
};

Home home_of(PyObject* module) {
  std::string_view name = PyModule_GetName(module);
  name = name.substr(name.rfind('.') + 1);
  if (name == "_nn") return {"F.", "vesta.nn.functional"};
  if (name != "_fft" && name != "_linalg" && name != "_special") return {"", "vesta"};
  name = name.substr(1);
  return {std::string(name) + ".", "vesta." + std::string(name)};
}
}  // namespace

bool add_function(PyObject* module, Callable& callable, PyCFunction entry) {
  const Home home = home_of(module);
  const Ref shown_by(PyUnicode_InternFromString(home.module.c_str()));
  auto* def =
      new PyMethodDef{callable.name.c_str(), entry, METH_FASTCALL | METH_KEYWORDS, help_text(callable, home.prefix)};
  callable.object = PyCFunction_NewEx(def, nullptr, shown_by.get());
  return callable.object && PyModule_AddObject(module, callable.name.c_str(), new_ref(callable.object)) == 0;
}

bool add_method(Callable& callable, PyCFunction entry) {
  auto* def =
      new PyMethodDef{callable.name.c_str(), entry, METH_FASTCALL | METH_KEYWORDS, help_text(callable, "Tensor.")};
  callable.object = PyDescr_NewMethod(tensor_type, def);
  return callable.object && add_to_tensor(callable.name.c_str(), callable.object);
}

}  // namespace vesta::python
