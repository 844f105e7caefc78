#include "arguments.h"

#include <cstring>

#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/promotion.h>

#include "dtype_device.h"
#include "generator.h"
#include "memory_format.h"
#include "torch_function.h"
#include "wrong_call.h"

namespace vesta::python {
namespace {

/// Raises for a missing argument, naming all that are missing.
[[noreturn]] void missing(const Table& t, const Bound& b) {
  std::string names;
  int count = 0;
  for (int i = 0; i < t.slots(); ++i) {
    if (b.slot[i] || !t.params[size_t(i)].required) continue;
    names += (count++ ? ", \"" : "\"") + t.params[size_t(i)].name + "\"";
  }
  wrong_call(t, text("() missing ", count, " required positional argument", count == 1 ? "" : "s", ": ", names));
}

bool names_param(PyObject* name, const Param& p) {
  for (PyObject* key : p.keys) {
    if (key && (key == name || PyUnicode_Compare(key, name) == 0)) return true;
  }
  return false;
}

constexpr const char* kExtraNames[kExtras] = {"out", "requires_grad", "pin_memory", "layout", "memory_format"};
PyObject* extra_key(int e) {
  static PyObject* keys[kExtras];
  if (!keys[e]) keys[e] = PyUnicode_InternFromString(kExtraNames[e]);
  return keys[e];
}

/// Returns whether a tensor is one integer.
bool is_int(const Tensor& t) { return t.numel() == 1 && is_integral(t.dtype()) && t.dtype() != DType::bool_; }
bool is_int(PyObject* o) {
  if (PyLong_Check(o)) return true;
  return is_tensor(o) ? is_int(unwrap(o)) : !PySequence_Check(o) && PyIndex_Check(o);
}

}  // namespace

void WrongCall::restore_for(std::string_view called, bool method) const {
  const size_t own = op_.rfind('.') + 1;  // 0 where it is in no namespace
  const bool other = !called.starts_with('_') && std::string_view(op_).substr(own) != called;
  const std::string place = position_ ? std::to_string(position_ - (method && position_ > 1)) : "";
  const std::string name = other ? text(std::string_view(op_).substr(0, own), called) : op_;
  PyErr_SetString(PyExc_TypeError, text(name, before_, place, after_).c_str());
}

void wrong_call(const Table& t, std::string before, int position, std::string after) {
  const std::string place = position ? std::to_string(position) : "";
  PyErr_SetString(PyExc_TypeError, text(t.op, before, place, after).c_str());
  throw WrongCall(t.op, std::move(before), position, std::move(after));
}

void wrong_argument(const Table& t, int i, const std::string& expected) {
  wrong_call(t, text("(): argument '", t.params[size_t(i)].name, "' (position "), i + 1, ") must be " + expected);
}

void wrong_type(const Table& t, int i, const char* expected, PyObject* given) {
  const char* kind = given == Py_None            ? "NoneType"
                     : is_pytorchs_tensor(given) ? kConvertPyTorchs
                                                 : Py_TYPE(given)->tp_name;
  wrong_argument(t, i, std::string(expected) + ", not " + kind);
}

const char* expected_of(const Param& p) {
  switch (p.kind) {
    case Kind::tensor: return "Tensor";
    case Kind::operand: return "Tensor or number";
    case Kind::tensors:
    case Kind::maybe_tensors: return "tuple of Tensors";
    case Kind::integer: return "int";
    case Kind::integers: return "tuple of ints";
    case Kind::real: return "float";
    case Kind::number:
    case Kind::number_as_real: return "Number";
    case Kind::boolean: return "bool";
    case Kind::dtype: return "vesta.dtype";
    case Kind::device: return "vesta.device";
    case Kind::text: return "str";
    case Kind::generator: return "vesta.Generator";
    default: return "object";
  }
}

bool Bound::bind_names(const Table& t, PyObject* const* values, PyObject* names, bool raise) {
  for (Py_ssize_t k = 0, n = PyTuple_GET_SIZE(names); k < n; ++k) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    int at = -1;
    for (int i = 0; i < t.slots() && at < 0; ++i) {
      if (names_param(name, t.params[size_t(i)])) at = i;
    }
    for (int e = 0; e < kExtras && at < 0; ++e) {
      if (t.has(Extra(e)) && PyUnicode_Compare(extra_key(e), name) == 0) at = t.slots() + e;
    }
    if (at < 0 || slot[at]) {
      if (!raise) return false;
      const char* given = PyUnicode_AsUTF8(name);
      if (!given) throw_current();
      wrong_call(t, text("() got ", at < 0 ? "an unexpected keyword argument '" : "multiple values for argument '",
                         given, "'"));
    }
    slot[at] = values[k];
  }
  return true;
}

bool Bound::bind_or(const Table& t, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names,
                    bool raise) {
  const int slots = t.slots();
  int at = 0;
  if (self) slot[at++] = self;
  Py_ssize_t used = 0;
  // A list spread over positions: x.view(2, 3), zeros(2, 3), not reshape(x, 2, 3). The list itself, x.view((2, 3)),
  // falls through to the usual way.
  if (t.varargs == at && count > t.varargs - at && is_int(args[t.varargs - at])) {
    for (; at < t.varargs; ++used) slot[at++] = args[used];
    rest = args + used, rest_count = count - used;
    slot[at++] = args[used];
    used = count;
  }
  if (count - used > t.positional - at) {
    if (!raise) return false;
    const int most = t.positional - (self != nullptr);
    wrong_call(t, text("() takes ", most, " positional argument", most == 1 ? "" : "s", " but ", count,
                       count == 1 ? " was" : " were", " given"));
  }
  for (; used < count; ++used) slot[at++] = args[used];
  for (; at < slots + kExtras; ++at) slot[at] = nullptr;
  if (names && !bind_names(t, args + count, names, raise)) return false;
  for (int i = 0; i < t.required; ++i) {
    if (slot[i] || !t.params[size_t(i)].required) continue;
    if (!raise) return false;
    missing(t, *this);
  }
  return true;
}

namespace {

bool is_number(PyObject* o) {
  if (PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o)) return true;
  return std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) == 0 && std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") != 0;
}
bool is_whole(PyObject* o) {
  if (PyBool_Check(o)) return false;
  return is_int(o) && (!is_tensor(o) || unwrap(o).dim() == 0);
}
bool is_bool(PyObject* o) { return PyBool_Check(o) || !std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10); }

bool all_of(PyObject* o, bool (*test)(PyObject*)) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) return false;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
    if (!test(PySequence_Fast_GET_ITEM(o, k))) return false;
  }
  return true;
}

/// Returns whether a parameter is a list of integers that is empty by default: None says the same, as in PyTorch.
bool is_list_or_none(const Param& p) { return p.kind == Kind::integers && !p.required && p.list.empty(); }

/// Returns whether an object is a number with an imaginary part.
bool is_complex_number(PyObject* o) {
  if (is_tensor(o)) return unwrap(o).dim() == 0 && is_complex(unwrap(o).dtype());
  Scalar number;
  return !PyFloat_Check(o) && !PyLong_Check(o) && number_of(o, number) && number.imag() != 0;
}

/// Returns whether an object is of the kind that a parameter takes.
bool accepts(const Param& p, PyObject* o) {
  if (o == Py_None) return p.none_allowed || p.kind == Kind::object || is_list_or_none(p);
  switch (p.kind) {
    case Kind::tensor: return is_tensor(o) || (p.number_too && is_number(o));
    case Kind::operand: return is_tensor(o) || is_number(o);
    case Kind::tensors: return all_of(o, [](PyObject* item) { return is_tensor(item); });
    case Kind::maybe_tensors: return all_of(o, [](PyObject* item) { return item == Py_None || is_tensor(item); });
    case Kind::integer: return is_whole(o);
    case Kind::integers:
      return !PyBool_Check(o) && ((p.lone_int && is_int(o)) || all_of(o, [](PyObject* item) { return is_int(item); }));
    case Kind::number_as_real:
      if (is_complex_number(o)) return false;
      [[fallthrough]];
    case Kind::real:
    case Kind::number: return is_number(o) || (is_tensor(o) && unwrap(o).dim() == 0 && !unwrap(o).requires_grad());
    case Kind::boolean: return is_bool(o);
    case Kind::dtype: {
      DType d;
      return to_dtype(o, d);
    }
    case Kind::text: return p.name == "memory_format" ? to_format(o) != Format::none : PyUnicode_Check(o);
    case Kind::generator: return is_generator(o);
    default: return true;
  }
}

}  // namespace

bool Bound::fits(const Table& t, PyObject* self, PyObject* const* args, Py_ssize_t count, PyObject* names) {
  if (!bind_or(t, self, args, count, names, false)) return false;
  for (int i = self ? 1 : 0; i < t.slots(); ++i) {
    if (slot[i] && !(i == t.varargs && rest) && !accepts(t.params[size_t(i)], slot[i])) return false;
  }
  return true;
}

bool number_of(PyObject* o, Scalar& number) {
  if (PyFloat_Check(o)) {
    number = Scalar(PyFloat_AS_DOUBLE(o));
  } else if (PyBool_Check(o)) {
    number = Scalar(o == Py_True);
  } else if (PyLong_Check(o)) {
    int overflow;
    long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
    if (overflow) throw NumberError("expected a number of 64 bits, got an integer that overflows them. Use a float.");
    number = Scalar(int64_t(v));
  } else if (PyComplex_Check(o)) {
    Py_complex c = PyComplex_AsCComplex(o);
    number = Scalar(complex128(c.real, c.imag));
  } else if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.", 6) != 0 ||
             !std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray")) {
    return false;
  } else if (!std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10)) {
    number = Scalar(PyObject_IsTrue(o) == 1);
  } else {  // another NumPy scalar: item() gives the Python number, and slots that of the usual ones sooner
    const std::string_view type = std::string_view(Py_TYPE(o)->tp_name).substr(6);
    const bool whole = type.starts_with("int") || type.starts_with("uint");
    Ref item(whole                       ? PyNumber_Index(o)
             : type.starts_with("float") ? PyNumber_Float(o)
                                         : PyObject_CallMethod(o, "item", nullptr));
    if (!item || !(PyFloat_Check(item.get()) || PyLong_Check(item.get()) || PyComplex_Check(item.get()))) {
      PyErr_Clear();
      return false;
    }
    return number_of(item.get(), number);
  }
  return true;
}

int64_t to_int(const Table& t, int i, PyObject* o) {
  if (PyBool_Check(o) || (is_tensor(o) && !is_int(unwrap(o)))) wrong_type(t, i, "int", o);
  if (!PyLong_Check(o)) {
    if (!PyIndex_Check(o)) wrong_type(t, i, "int", o);
    Ref number(PyNumber_Index(o));
    if (!number && PyErr_ExceptionMatches(PyExc_TypeError)) {  // a tensor of several elements, say
      PyErr_Clear();
      wrong_type(t, i, "int", o);
    }
    if (!number) throw_current();
    return to_int(t, i, number.get());
  }
  int overflow;
  long long v = PyLong_AsLongLongAndOverflow(o, &overflow);
  VESTA_CHECK(!overflow, value, t.op, ": expected ", t.params[size_t(i)].name, " to fit 64 bits, got an integer that ",
              "does not. (Overflow when unpacking long)");
  return v;
}

namespace {

/// Returns whether an object is a tensor with dimensions, which is no number where one is asked for, even of one
/// element.
bool has_dimensions(PyObject* o) { return is_tensor(o) && unwrap(o).dim() > 0; }

void check_number_without_gradient(const Table& t, int i, const Tensor& number) {
  VESTA_CHECK(!number.requires_grad(), runtime, t.op, ": expected a number without a gradient (",
              t.params[size_t(i)].name, "), got a tensor that requires grad. Use .item() or .detach().");
}

}  // namespace

void check_typed_alpha(const Table& t, int i, const Bound& b) {
  const auto dtype_of = [](PyObject* o) -> std::optional<DType> {
    if (!o) return {};
    if (is_tensor(o)) return unwrap(o).dtype();
    Scalar number;
    if (!number_of(o, number)) return {};
    return number.dtype() == DType::bool_ && !PyBool_Check(o) ? DType::int64 : number.dtype();  // NumPy's is an integer
  };
  const auto own = dtype_of(b.slot[i]);
  if (!own || is_integral(*own)) return;
  Promotion operands;
  for (int k = 0; k < t.slots(); ++k) {
    PyObject* o = b.slot[k];
    const Kind kind = t.params[size_t(k)].kind;
    if (k == i || !o || (kind != Kind::tensor && kind != Kind::operand && kind != Kind::number)) continue;
    Scalar number;
    if (is_tensor(o)) operands.see(unwrap(o));
    else if (number_of(o, number)) operands.see(wrapped(number));
  }
  const DType result = operands.result();
  const std::string& name = t.params[size_t(i)].name;
  VESTA_CHECK(*own != DType::bool_ || result == DType::bool_, runtime, t.op, ": Boolean ", name,
              " only supported for Boolean results, got a bool for operands of ", result, " (", name, ").");
  VESTA_CHECK(!is_float(*own) || is_differentiable(result), runtime, t.op, ": For integral input tensors, argument ",
              name, " must not be a floating point number, got one for operands of ", result, " (", name, ").");
  VESTA_CHECK(!is_complex(*own) || is_complex(result), runtime, t.op, ": For non-complex input tensors, argument ",
              name, " must not be a complex number, got one for operands of ", result, " (", name, ").");
}

double to_double(const Table& t, int i, PyObject* o) {
  if (PyFloat_Check(o)) return PyFloat_AS_DOUBLE(o);
  Scalar s;
  if (number_of(o, s)) return s.to<double>(t.op);
  if (!is_tensor(o) || has_dimensions(o)) wrong_type(t, i, "float", o);
  check_number_without_gradient(t, i, unwrap(o));
  return unwrap(o).item<double>();
}

bool to_bool(const Table& t, int i, PyObject* o) {
  if (o == Py_True || o == Py_False) return o == Py_True;
  if (std::strncmp(Py_TYPE(o)->tp_name, "numpy.bool", 10) != 0) wrong_type(t, i, "bool", o);
  return PyObject_IsTrue(o) == 1;
}

Scalar to_scalar(const Table& t, int i, PyObject* o) {
  Scalar s;
  if (number_of(o, s)) return s;
  if (!is_tensor(o) || has_dimensions(o)) wrong_type(t, i, "Number", o);
  check_number_without_gradient(t, i, unwrap(o));
  return unwrap(o).item();
}

namespace {

/// Reads one of a list of integers; as in PyTorch, a bool is one where it is not the first.
int64_t to_size(const Table& t, int i, PyObject* o, Py_ssize_t place) {
  return place > 0 && PyBool_Check(o) ? int64_t(o == Py_True) : to_int(t, i, o);
}

}  // namespace

Dims to_dims(const Table& t, int i, const Bound& b) {
  Dims dims;
  if (i == t.varargs && b.rest) {
    for (Py_ssize_t k = 0; k < b.rest_count; ++k) {
      if (k == 0 && PyBool_Check(b.rest[k])) wrong_type(t, i, "tuple of ints", b.rest[k]);
      dims.push_back(to_size(t, i, b.rest[k], k));
    }
    return dims;
  }
  const Param& p = t.params[size_t(i)];
  PyObject* o = b.slot[i];
  if (!o || (o == Py_None && is_list_or_none(p))) return p.list;
  if (PyBool_Check(o)) wrong_type(t, i, "tuple of ints", o);  // sum(x, True) means keepdim, not dimension 1
  if (p.lone_int && is_int(o)) {
    dims.push_back(to_int(t, i, o));
  } else if (PyTuple_Check(o) || PyList_Check(o)) {
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
      PyObject* item = PySequence_Fast_GET_ITEM(o, k);
      if (!PyLong_Check(item) && !PyIndex_Check(item)) {
        wrong_argument(t, i,
                       std::string("tuple of ints, but found element of type ") + Py_TYPE(item)->tp_name + " at pos " +
                           std::to_string(k));
      }
      dims.push_back(to_size(t, i, item, k));
    }
  } else {
    wrong_type(t, i, "tuple of ints", o);
  }
  return dims;
}

Tensor to_tensor(const Table& t, int i, const Bound& b) {
  const Param& p = t.params[size_t(i)];
  PyObject* o = b.slot[i];
  if (o == Py_None && p.none_allowed) return {};
  Scalar number;
  if ((p.kind == Kind::operand || p.number_too) && number_of(o, number)) {
    // Of two numbers the first has the dtype that a tensor of it has.
    const bool alone = p.number_too && b.slot[1] && !is_tensor(b.slot[1]);
    if (!alone) return wrapped(number);
    const DType floats = default_dtype(), own = number.dtype();
    return full(IntList(), number, is_complex(own) ? complex_type(floats) : is_float(own) ? floats : own);
  }
  wrong_type(t, i, expected_of(p), o);
}

void to_tensors(const Table& t, int i, PyObject* o, std::vector<Tensor>& list, bool& big) {
  if (!PyTuple_Check(o) && !PyList_Check(o)) wrong_type(t, i, "tuple of Tensors", o);
  Py_ssize_t n = PySequence_Fast_GET_SIZE(o);
  list.reserve(size_t(n));
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(o); ++k) {
    PyObject* item = PySequence_Fast_GET_ITEM(o, k);
    if (is_tensor(item)) {
      list.push_back(unwrap(item));
      big = big || list.back().numel() >= kReleaseGil;
    } else if (item == Py_None && t.params[size_t(i)].kind == Kind::maybe_tensors) {
      list.emplace_back();
    } else {
      type_error("expected Tensor as element %zd in argument %d (%s of %s()), but got %s", k, i,
                 t.params[size_t(i)].name.c_str(), t.op,
                 is_pytorchs_tensor(item) ? kConvertPyTorchs : Py_TYPE(item)->tp_name);
    }
  }
}

DType to_dtype(const Table& t, int i, PyObject* o) {
  DType d;
  if (!to_dtype(o, d)) wrong_type(t, i, "vesta.dtype", o);
  return d;
}
Device to_device(const Table& t, int i, PyObject* o) {
  Device d;
  if (!to_device(o, d)) wrong_type(t, i, "vesta.device", o);
  return d;
}
std::string_view to_text(const Table& t, int i, PyObject* o) {
  if (t.params[size_t(i)].name == "memory_format") {
    if (o != Py_None && to_format(o) == Format::none) wrong_type(t, i, "vesta.memory_format", o);
    const Format f = o == Py_None ? Format::preserve : to_format(o);
    constexpr std::string_view names[] = {"contiguous_format", "preserve_format", "channels_last", "channels_last_3d"};
    return names[int(f)];
  }
  if (!PyUnicode_Check(o)) wrong_type(t, i, "str", o);
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(o, &n);
  if (!s) throw_current();
  return {s, size_t(n)};
}
Generator* to_generator(const Table& t, int i, PyObject* o) {
  if (o == Py_None) return nullptr;
  if (!is_generator(o)) wrong_type(t, i, "vesta.Generator", o);
  return unwrap_generator(o);
}

}  // namespace vesta::python
