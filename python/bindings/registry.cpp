#include "registry.h"

#include <structmember.h>

#include <vesta/core/ops/topics.h>

#include "hand.h"
#include "op_bindings.h"

namespace vesta::python {

#define VESTA_X(topic, LIST) void bind_##topic(Binder& binder);
VESTA_TOPICS(VESTA_X)
#undef VESTA_X

namespace {

constexpr const char* kModules[] = {"_ops", "_linalg", "_fft", "_special", "_nn", "_private"};
constexpr const char* kPrefixes[] = {"", "linalg_", "fft_", "special_", "", ""};

/// The forms of all ops, for the registry; and the aliases of a name.
std::vector<const Table*>& tables() {
  static std::vector<const Table*> all;
  return all;
}
std::map<std::string, std::vector<std::string>>& aliases() {
  static std::map<std::string, std::vector<std::string>> all;
  return all;
}

/// Returns the name in its module: "qr" of "linalg_qr".
std::string name_in_space(const Schema& s) {
  const std::string name = s.name, prefix = kPrefixes[int(s.space)];
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

// ---- named results ----

PyObject* named_repr(PyObject* o) {
  const PyTypeObject* type = Py_TYPE(o);
  std::string text = std::string(type->tp_name) + "(";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    Ref value(PyObject_Repr(PyTuple_GET_ITEM(o, i)));
    const char* shown = value ? PyUnicode_AsUTF8(value.get()) : nullptr;
    if (!shown) return nullptr;
    text += std::string(i ? ",\n" : "\n") + type->tp_members[i].name + "=" + shown;
  }
  text += ")";
  return PyUnicode_FromStringAndSize(text.data(), Py_ssize_t(text.size()));
}

/// Makes the type vesta.return_types.NAME, once per name.
PyTypeObject* named_type(const std::string& name, const Schema& s) {
  static std::map<std::string, PyTypeObject*> types;
  PyTypeObject*& type = types[name];
  if (type) return type;
  auto* fields = new PyStructSequence_Field[s.fields.size() + 1]();
  int count = 0;
  for (const char* field : s.fields) {
    if (field) fields[count++] = {field, nullptr};
  }
  auto* full = new std::string("vesta.return_types." + name);
  PyStructSequence_Desc description{full->c_str(), "A named result.", fields, count};
  type = PyStructSequence_NewType(&description);
  if (!type) throw_current();
  type->tp_repr = named_repr;
  PyType_Modified(type);
  return type;
}

/// Returns how a result is annotated.
const char* python_type(const Table& t) {
  const std::string_view r = t.schema->result;
  if (r == "void") return "None";
  if (r == "bool") return "bool";
  if (r == "TensorPair") return "tuple[Tensor, Tensor]";
  if (r == "TensorTriple") return "tuple[Tensor, Tensor, Tensor]";
  if (r == "TensorVector") return "tuple[Tensor, ...]";
  if (r == "TensorOrTensors") return "Tensor | tuple[Tensor, ...]";
  return "Tensor";
}

Table* make_table(const Schema& s) {
  auto* t = new Table;  // lives as long as the interpreter
  t->read(s);
  t->doc = s.doc;
  t->result = python_type(*t);
  if (s.fields[0]) t->named = named_type(s.name, s);
  tables().push_back(t);
  return t;
}

// ---- what _registry() tells ----

std::string shown_type(const Param& p) {
  std::string text = [&] {
    switch (p.kind) {
      case Kind::tensor:
      case Kind::operand: return "Tensor";
      case Kind::tensors: return "Tensor[]";
      case Kind::maybe_tensors: return "Tensor?[]";
      case Kind::integer: return "int";
      case Kind::integers: return p.lone_int ? "int[1]" : "int[]";
      case Kind::real: return "float";
      case Kind::number:
      case Kind::number_as_real: return "Scalar";
      case Kind::boolean: return "bool";
      case Kind::dtype: return "dtype";
      case Kind::device: return "device";
      case Kind::text:
        if (p.name != "memory_format") return "str";
        return p.default_text == "preserve_format" ? "memory_format?" : "memory_format";
      case Kind::generator: return "Generator";
      default: return "any";
    }
  }();
  return p.none_allowed && p.kind != Kind::object ? text + "?" : text;
}

PyObject* text_object(const std::string& s) {
  return checked(PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size())));
}

Ref parameters(const Table& t) {
  Ref list(checked(PyList_New(0)));
  for (const Param& p : t.params) {
    Ref text(p.required ? new_ref(Py_None) : text_object(shown_default(p)));
    Ref entry(checked(Py_BuildValue("{s:s,s:s,s:O,s:O,s:O}", "name", p.name.c_str(), "type", shown_type(p).c_str(),
                                    "default", text.get(), "keyword_only", p.keyword_only ? Py_True : Py_False,
                                    "number", p.kind == Kind::operand ? Py_True : Py_False)));
    checked(PyList_Append(list.get(), entry.get()));
  }
  if (t.schema && t.schema->memory_format) {
    Ref entry(checked(Py_BuildValue("{s:s,s:s,s:s,s:O,s:O}", "name", "memory_format", "type", "memory_format?",
                                    "default", "None", "keyword_only", Py_True, "number", Py_False)));
    checked(PyList_Append(list.get(), entry.get()));
  }
  return list;
}

PyObject* describe(const Table& t) {
  const Schema& s = *t.schema;
  static constexpr const char* kSpaces[] = {"", "linalg", "fft", "special", "nn", "private"};
  Ref params = parameters(t), names(checked(PyList_New(0))), parts(checked(PyList_New(0)));
  const std::string own = s.name, base = own.ends_with('_') ? own.substr(0, own.size() - 1) : own;
  for (const std::string& alias : aliases()[base]) {
    Ref text(text_object(own == base ? alias : alias + "_"));
    checked(PyList_Append(names.get(), text.get()));
  }
  for (const char* field : s.fields) {
    if (!field) continue;
    Ref text(text_object(field));
    checked(PyList_Append(parts.get(), text.get()));
  }
  // By the enumerators of Gives.
  static constexpr const char* kRules[] = {"same",       "bool",  "int32",      "int64",     "float64",
                                           "float",      "real",  "real float", "complex",   "sum",
                                           "arithmetic", "truth", "widest",     "statistics"};
  Ref dtypes(checked(PyList_New(0))), rules(checked(PyList_New(0)));
  for (int d = 0; d < kNumDTypes; ++d) {
    if (!s.accepts.has(DType(d))) continue;
    Ref text(text_object(std::string(name(DType(d)))));
    checked(PyList_Append(dtypes.get(), text.get()));
  }
  for (const Gives rule : s.gives) {
    Ref text(text_object(kRules[int(rule)]));
    checked(PyList_Append(rules.get(), text.get()));
  }
  auto flag = [](bool on) { return on ? Py_True : Py_False; };
  return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:O,s:s,s:s}", "name",
                       name_in_space(s).c_str(), "overload", s.overload, "space", kSpaces[int(s.space)], "kind",
                       s.pointwise   ? "pointwise"
                       : s.composite ? "composite"
                                     : "op",
                       "doc", t.doc.c_str(), "function", flag(s.function), "method", flag(s.method), "inplace",
                       flag(s.inplace), "out", flag(s.out), "exact_out", flag(s.exact_out), "factory", flag(s.factory),
                       "memory_format", flag(s.memory_format), "deprecated", flag(s.deprecated), "differentiable",
                       flag(s.differentiable), "aliases", names.get(), "parameters", params.get(), "fields",
                       parts.get(), "accepts", dtypes.get(), "gives", rules.get(), "returns", t.result, "signature",
                       t.signature.c_str());
}

PyObject* registry_object(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (const Table* t : tables()) {
      Ref entry(checked(describe(*t)));
      checked(PyList_Append(list.get(), entry.get()));
    }
    return list.release();
  });
}
/// Returns the forms of the callables written by hand.
PyObject* by_hand_object(PyObject*, PyObject*) {
  return guarded([] {
    Ref list(checked(PyList_New(0)));
    for (const auto& [callable, method] : written_by_hand()) {
      for (const Form& form : callable->forms) {
        Ref params = parameters(*form.table);
        Ref entry(checked(Py_BuildValue("{s:s,s:O,s:O}", "name", callable->name.c_str(), "method",
                                        method ? Py_True : Py_False, "parameters", params.get())));
        checked(PyList_Append(list.get(), entry.get()));
      }
    }
    return list.release();
  });
}
/// Reads parameters as an op list declares them, and tells of them what the registry does.
PyObject* read_object(PyObject*, PyObject* text) {
  return guarded([&]() -> PyObject* {
    const char* declared = PyUnicode_AsUTF8(text);
    if (!declared) return nullptr;
    Table table;
    table.read("_read_parameters", declared);
    return parameters(table).release();
  });
}
PyMethodDef registry_methods[] = {
    {"_registry", registry_object, METH_NOARGS,
     "_registry($module, /)\n--\n\nThe op list: a dict per form of an op, with its "
     "name, overload, space, parameters, result and properties."},
    {"_by_hand", by_hand_object, METH_NOARGS,
     "_by_hand($module, /)\n--\n\nWhat is no op: a dict per form of a function or method "
     "that is written by hand, with its name and parameters."},
    {"_read_parameters", read_object, METH_O,
     "_read_parameters($module, text, /)\n--\n\nThe parameters that a line of the op "
     "list declares, \"(const Tensor& input, int64_t dim = 0)\", as _registry() tells them."},
    {nullptr, nullptr, 0, nullptr}};

PyObject* add_module(PyObject* to, const char* name) {
  PyObject* module = checked(PyModule_New((std::string("vesta._C.") + name).c_str()));
  checked(PyModule_AddObject(to, name, module));
  return module;
}

}  // namespace

void Binder::add_form(std::map<std::string, Slot>& to, const std::string& name, const Slot& slot, Form form) {
  auto [at, fresh] = to.try_emplace(name, slot);
  if (fresh) at->second.callable->name = name;
  std::vector<Form>& forms = at->second.callable->forms;
  auto deprecated = [](const Form& f) { return f.table->schema->deprecated; };
  auto place = forms.end();
  if (!deprecated(form)) place = std::find_if(forms.begin(), forms.end(), deprecated);
  forms.insert(place, form);
}

void Binder::add(const Schema& s, Thin thin, const Added& entries) {
  const Form form{make_table(s), thin, false}, inplace{form.table, thin, true};
  const std::string name = name_in_space(s);
  // What writes into its first operand is a function too; the package offers those that PyTorch has.
  const bool writes = s.method && name.ends_with('_');
  if (s.function || writes) add_form(functions_[int(s.space)], name, entries.function, form);
  if (s.method) add_form(methods_, name, entries.method, form);
  if (s.inplace && s.method) add_form(methods_, name + "_", entries.inplace, inplace);
  if (s.inplace && (s.function || !s.method)) {
    add_form(functions_[int(s.space)], name + "_", entries.inplace_function, inplace);
  }
}

void Binder::add_alias(const char* alias, const char* name, const Added& entries) {
  aliases()[name].push_back(alias);
  auto copy = [](std::map<std::string, Slot>& in, const std::string& from, const std::string& to, const Slot& slot) {
    const auto found = in.find(from);
    if (found == in.end()) return;
    *slot.callable = Callable{to, nullptr, found->second.callable->forms};
    in.emplace(to, slot);
  };
  copy(functions_[0], name, alias, entries.function);
  copy(methods_, name, alias, entries.method);
  copy(functions_[0], std::string(name) + "_", std::string(alias) + "_", entries.inplace_function);
  copy(methods_, std::string(name) + "_", std::string(alias) + "_", entries.inplace);
}

namespace {
/// Gives a callable without a text that of another form of its name, or of the private op that its forms call.
void find_doc(const Callable& callable) {
  static const auto texts = [] {
    std::map<std::string_view, std::string_view> first_of_name;
    for (const Table* t : tables()) {
      if (!t->doc.empty()) first_of_name.try_emplace(t->schema->name, t->doc);
    }
    return first_of_name;
  }();
  Table& first = *callable.forms[0].table;
  if (std::ranges::any_of(callable.forms, [](const Form& f) { return !f.table->doc.empty(); })) return;
  const std::string own = first.schema->name;
  for (const std::string& name : {own, "_" + own}) {
    if (const auto found = texts.find(name); found != texts.end()) {
      first.doc = found->second;
      return;
    }
  }
}
}  // namespace

bool Binder::finish(PyObject* module) {
  for (int space = 0; space < 6; ++space) {
    PyObject* to = add_module(module, kModules[space]);
    for (auto& [name, slot] : functions_[space]) {
      find_doc(*slot.callable);
      if (!add_function(to, *slot.callable, slot.entry)) return false;
      // What the package's own Python calls: vesta._C._fused_adam_.
      if (space == int(Space::hidden) && name[0] == '_') {
        checked(PyModule_AddObject(module, name.c_str(), new_ref(slot.callable->object)));
      }
    }
  }
  for (auto& [name, slot] : methods_) {
    find_doc(*slot.callable);
    if (!add_method(*slot.callable, slot.entry)) return false;
  }
  return true;
}

std::vector<std::pair<const Callable*, bool>>& written_by_hand() {
  static std::vector<std::pair<const Callable*, bool>> all;
  return all;
}

bool add_ops(PyObject* module) {
  Binder binder;
#define VESTA_X(topic, LIST) bind_##topic(binder);
  VESTA_TOPICS(VESTA_X)
#undef VESTA_X
  if (!binder.finish(module)) return false;
  PyObject* results = add_module(module, "_return_types");
  for (const Table* t : tables()) {
    if (!t->named) continue;
    auto* type = reinterpret_cast<PyObject*>(t->named);
    checked(PyModule_AddObject(results, t->schema->name, new_ref(type)));
  }
  return PyModule_AddFunctions(module, registry_methods) == 0;
}

}  // namespace vesta::python
