#include "dtype_device.h"

#include <structmember.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

#include <vesta/core/sparse.h>

#include "errors.h"

namespace vesta::python {
namespace {

struct PyDType {
  PyObject_HEAD DType value;
};
struct PyDevice {
  PyObject_HEAD Device value;
  bool has_index;
  const char* foreign;  // null, or the name of a type that has no backend here: of `value` only the index counts
};
struct PyConstant {  // a layout or a memory format
  PyObject_HEAD int value;
  const char* name;
};

PyTypeObject *dtype_type, *device_type, *size_type, *layout_type, *format_type;
PyObject* dtypes[kNumDTypes];
constexpr const char* kLayouts[] = {"strided", "sparse_coo", "sparse_csr", "sparse_csc"};
PyObject* layout_objects[std::size(kLayouts)];

DType dtype_of_object(PyObject* o) { return reinterpret_cast<PyDType*>(o)->value; }
const PyDevice& device_of_object(PyObject* o) { return *reinterpret_cast<PyDevice*>(o); }
PyObject* text_object(std::string_view s) { return PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size())); }

// ---- dtype ----

PyObject* dtype_repr(PyObject* o) { return text_object("vesta." + std::string(name(dtype_of_object(o)))); }
PyObject* dtype_reduce(PyObject* o, PyObject*) { return text_object(name(dtype_of_object(o))); }
template <DType (*f)(DType)>
PyObject* dtype_map(PyObject* o, PyObject*) {
  return wrap_dtype(f(dtype_of_object(o)));
}
template <bool (*f)(DType)>
PyObject* dtype_ask(PyObject* o, void*) {
  return PyBool_FromLong(f(dtype_of_object(o)));
}
bool is_signed(DType d) { return d != DType::uint8 && d != DType::bool_; }
DType to_real(DType d) { return real_type(d); }
DType to_complex(DType d) { return complex_type(d); }
bool ask_float(DType d) { return is_float(d); }
bool ask_complex(DType d) { return is_complex(d); }

PyMethodDef dtype_methods[] = {
    {"__reduce__", dtype_reduce, METH_NOARGS, nullptr},
    {"to_real", dtype_map<to_real>, METH_NOARGS, "to_real($self, /)\n--\n\nThe real dtype of a complex one's parts."},
    {"to_complex", dtype_map<to_complex>, METH_NOARGS,
     "to_complex($self, /)\n--\n\nThe complex dtype whose parts hold this one."},
    {nullptr, nullptr, 0, nullptr}};
PyGetSetDef dtype_properties[] = {
    {"itemsize", [](PyObject* o, void*) { return PyLong_FromLongLong(itemsize(dtype_of_object(o))); }, nullptr,
     "Bytes of one element.", nullptr},
    {"is_floating_point", dtype_ask<ask_float>, nullptr, "Whether it is a real floating-point dtype.", nullptr},
    {"is_complex", dtype_ask<ask_complex>, nullptr, "Whether it is a complex dtype.", nullptr},
    {"is_signed", dtype_ask<is_signed>, nullptr, "Whether it has negative values.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot dtype_slots[] = {{Py_tp_repr, reinterpret_cast<void*>(dtype_repr)},
                             {Py_tp_methods, dtype_methods},
                             {Py_tp_getset, dtype_properties},
                             {Py_tp_doc, const_cast<char*>("The type of a tensor's elements.")},
                             {0, nullptr}};

// ---- device ----

// Types that programs written for PyTorch ask about and compare with. No tensor lies there.
constexpr const char* kForeignTypes[] = {"mps",   "xpu",    "hpu",    "xla",    "mtia",         "ipu",
                                         "maia",  "lazy",   "vulkan", "hip",    "fpga",         "ve",
                                         "ideep", "opengl", "opencl", "mkldnn", "privateuseone"};

const char* foreign_type(std::string_view type) {
  const auto* found = std::ranges::find(kForeignTypes, type);
  return found == std::end(kForeignTypes) ? nullptr : *found;
}

PyObject* make_device(Device d, bool has_index, const char* foreign = nullptr) {
  auto* o = PyObject_New(PyDevice, device_type);
  if (!o) return nullptr;
  o->value = d, o->has_index = has_index, o->foreign = foreign;
  return reinterpret_cast<PyObject*>(o);
}

std::string_view type_of(const PyDevice& d) { return d.foreign ? d.foreign : name(d.value.type()); }
std::string text_of(const PyDevice& d) {
  std::string s(type_of(d));
  return d.has_index ? s + ":" + std::to_string(d.value.index()) : s;
}

/// Returns the text of a str.
std::string_view text_in(PyObject* o) {
  Py_ssize_t n;
  const char* s = PyUnicode_AsUTF8AndSize(o, &n);
  if (!s) throw_current();
  return {s, size_t(n)};
}

/// Reads `type` or `type:index`. `foreign` becomes the type's name if it has no backend here, else null.
Device read_device(std::string_view text, const char*& foreign) {
  const size_t colon = text.find(':');
  foreign = foreign_type(text.substr(0, colon));
  if (!foreign) {
    Device known(text);  // it checks the index
    if (known.type() != DeviceType::cpu || colon == std::string_view::npos) return known;
  }
  if (colon == std::string_view::npos) return {};
  int8_t index = 0;
  const auto [end, error] = std::from_chars(text.data() + colon + 1, text.data() + text.size(), index);
  VESTA_CHECK(error == std::errc() && end == text.data() + text.size() && index >= 0, value,
              "device: expected an index such as ", text.substr(0, colon), ":0, got '", text, "'.");
  return {DeviceType::cpu, index};
}

PyObject* device_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"type", "index", nullptr};
  PyObject *type, *index = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O|O:device", const_cast<char**>(names), &type, &index))
    return nullptr;
  return guarded([&]() -> PyObject* {
    if (Py_TYPE(type) == device_type && index == Py_None) return new_ref(type);
    Device d;
    const char* foreign = nullptr;
    if (PyUnicode_Check(type)) {
      d = read_device(text_in(type), foreign);
    } else if (!to_device(type, d)) {
      type_error("device(): argument 'type' (position 1) must be str, not %s", Py_TYPE(type)->tp_name);
    }
    bool has_index = PyLong_Check(type);
    if (PyUnicode_Check(type)) has_index = text_in(type).find(':') != std::string_view::npos;
    if (index != Py_None) {
      VESTA_CHECK(!has_index, runtime, "device: expected a type without an index, got ",
                  foreign ? text_in(type) : std::string_view(str(d)), " and an index.");
      if (!PyIndex_Check(index)) {
        type_error("device(): argument 'index' (position 2) must be int, not %s", Py_TYPE(index)->tp_name);
      }
      long i = PyLong_AsLong(index);
      if (i == -1 && PyErr_Occurred()) throw_current();
      VESTA_CHECK(i >= 0 && i <= 127, runtime, "device: expected an index of 0 to 127, got ", int64_t(i), ".");
      VESTA_CHECK(i == 0 || d.type() != DeviceType::meta, runtime, "device: expected meta without an index, got ", i,
                  ". There is one meta device.");
      d = Device(d.type(), int8_t(i)), has_index = true;
    }
    return make_device(d, has_index, foreign);
  });
}
PyObject* device_repr(PyObject* o) {
  const PyDevice& d = device_of_object(o);
  std::string s = "device(type='" + std::string(type_of(d)) + "'";
  if (d.has_index) s += ", index=" + std::to_string(d.value.index());
  return text_object(s + ")");
}
PyObject* device_str(PyObject* o) { return text_object(text_of(device_of_object(o))); }
Py_hash_t device_hash(PyObject* o) {
  const PyDevice& d = device_of_object(o);
  const Py_hash_t type = d.foreign ? kNumDeviceTypes + d.foreign[0] : int(d.value.type());
  return type * 1024 + (d.has_index ? d.value.index() + 1 : 0);
}
PyObject* device_compare(PyObject* a, PyObject* b, int op) {
  if (Py_TYPE(a) != device_type || Py_TYPE(b) != device_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  const PyDevice &x = device_of_object(a), &y = device_of_object(b);
  bool equal = x.value == y.value && x.has_index == y.has_index && x.foreign == y.foreign;
  return PyBool_FromLong(equal == (op == Py_EQ));
}
PyObject* device_type_name(PyObject* o, void*) { return text_object(type_of(device_of_object(o))); }
PyObject* device_index(PyObject* o, void*) {
  const PyDevice& d = device_of_object(o);
  if (!d.has_index) Py_RETURN_NONE;
  return PyLong_FromLong(d.value.index());
}
PyObject* device_reduce(PyObject* o, PyObject*) {
  Ref type(device_type_name(o, nullptr)), index(device_index(o, nullptr));
  if (index.get() == Py_None) return Py_BuildValue("O(O)", device_type, type.get());
  return Py_BuildValue("O(OO)", device_type, type.get(), index.get());
}
PyMethodDef device_methods[] = {{"__reduce__", device_reduce, METH_NOARGS, nullptr}, {nullptr, nullptr, 0, nullptr}};
PyGetSetDef device_properties[] = {{"type", device_type_name, nullptr, "'cpu', 'cuda' or 'meta'.", nullptr},
                                   {"index", device_index, nullptr, "Number of the device, or None.", nullptr},
                                   {nullptr, nullptr, nullptr, nullptr, nullptr}};
PyType_Slot device_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(device_new)},
    {Py_tp_repr, reinterpret_cast<void*>(device_repr)},
    {Py_tp_str, reinterpret_cast<void*>(device_str)},
    {Py_tp_hash, reinterpret_cast<void*>(device_hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(device_compare)},
    {Py_tp_methods, device_methods},
    {Py_tp_getset, device_properties},
    {Py_tp_doc, const_cast<char*>(
                    "device(type, index=None)\n--\n\nWhere a tensor lives: device('cpu'), device('cuda', 0). Types of "
                    "PyTorch that have no backend here, such as device('mps'), can be named and compared.")},
    {0, nullptr}};

// ---- Size ----

/// Turns a plain tuple (a new reference, or null) into a Size.
PyObject* as_size(PyObject* tuple) {
  if (!tuple || !PyTuple_Check(tuple)) return tuple;
  Py_ssize_t n = PyTuple_GET_SIZE(tuple);
  PyObject* size = size_type->tp_alloc(size_type, n);
  for (Py_ssize_t i = 0; size && i < n; ++i) PyTuple_SET_ITEM(size, i, new_ref(PyTuple_GET_ITEM(tuple, i)));
  Py_DECREF(tuple);
  return size;
}
PyObject* size_new(PyTypeObject*, PyObject* args, PyObject* kwargs) {
  PyObject* given = PyTuple_GET_SIZE(args) == 1 ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (given && !Py_TYPE(given)->tp_iter && !PySequence_Check(given)) {
    return PyErr_Format(PyExc_TypeError, "vesta.Size() takes an iterable of 'int', not '%s'", Py_TYPE(given)->tp_name);
  }
  Ref tuple(PyTuple_Type.tp_new(&PyTuple_Type, args, kwargs));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple.get()); ++i) {
    PyObject* item = PyTuple_GET_ITEM(tuple.get(), i);
    if (PyLong_Check(item)) continue;
    Ref number(PyNumber_Index(item));
    if (!number) {
      PyErr_Clear();
      PyErr_Format(PyExc_TypeError, "vesta.Size() takes an iterable of 'int' (item %zd is '%s')", i,
                   Py_TYPE(item)->tp_name);
      return nullptr;
    }
    PyTuple_SET_ITEM(tuple.get(), i, number.release());
    Py_DECREF(item);
  }
  return as_size(tuple.release());
}
PyObject* size_repr(PyObject* o) {
  std::string s = "vesta.Size([";
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(o); ++i) {
    s += (i ? ", " : "") + std::to_string(PyLong_AsLongLong(PyTuple_GET_ITEM(o, i)));
  }
  return text_object(s + "])");
}
PyObject* size_concat(PyObject* a, PyObject* b) { return as_size(PyTuple_Type.tp_as_sequence->sq_concat(a, b)); }
PyObject* size_repeat(PyObject* a, Py_ssize_t n) { return as_size(PyTuple_Type.tp_as_sequence->sq_repeat(a, n)); }
PyObject* size_subscript(PyObject* a, PyObject* key) {
  return as_size(PyTuple_Type.tp_as_mapping->mp_subscript(a, key));
}
PyObject* size_numel(PyObject* o, PyObject*) {
  PyObject* n = PyLong_FromLong(1);
  for (Py_ssize_t i = 0; n && i < PyTuple_GET_SIZE(o); ++i) {
    Ref before(n);
    n = PyNumber_Multiply(n, PyTuple_GET_ITEM(o, i));
  }
  return n;
}
PyMethodDef size_methods[] = {
    {"numel", size_numel, METH_NOARGS, "numel($self, /)\n--\n\nThe number of elements of a tensor of this size."},
    {nullptr, nullptr, 0, nullptr}};
PyType_Slot size_slots[] = {
    {Py_tp_new, reinterpret_cast<void*>(size_new)},
    {Py_tp_repr, reinterpret_cast<void*>(size_repr)},
    {Py_sq_concat, reinterpret_cast<void*>(size_concat)},
    {Py_sq_repeat, reinterpret_cast<void*>(size_repeat)},
    {Py_mp_subscript, reinterpret_cast<void*>(size_subscript)},
    {Py_tp_methods, size_methods},
    {Py_tp_doc, const_cast<char*>("The sizes of a tensor, one per dimension: a tuple of integers.")},
    {0, nullptr}};

// ---- layout and memory format ----

PyObject* constant_repr(PyObject* o) {
  return PyUnicode_FromFormat("vesta.%s", reinterpret_cast<PyConstant*>(o)->name);
}
PyObject* constant_reduce(PyObject* o, PyObject*) {
  return PyUnicode_FromString(reinterpret_cast<PyConstant*>(o)->name);
}
PyMethodDef constant_methods[] = {{"__reduce__", constant_reduce, METH_NOARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};
PyType_Slot layout_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(constant_repr)},
    {Py_tp_methods, constant_methods},
    {Py_tp_doc, const_cast<char*>("How a tensor holds its elements: vesta.strided, in memory at regular distances, or "
                                  "the nonzero ones with their places: vesta.sparse_coo as coordinates, sparse_csr and "
                                  "sparse_csc by rows and columns.")},
    {0, nullptr}};
PyType_Slot format_slots[] = {
    {Py_tp_repr, reinterpret_cast<void*>(constant_repr)},
    {Py_tp_methods, constant_methods},
    {Py_tp_doc, const_cast<char*>("The order of a strided tensor's dimensions in memory: vesta.contiguous_format, "
                                  "channels_last (of 4 dimensions), channels_last_3d (of 5), or preserve_format, "
                                  "that of the input.")},
    {0, nullptr}};

bool add_constant(PyObject* module, PyTypeObject* type, int value, const char* name) {
  auto* o = PyObject_New(PyConstant, type);
  if (!o) return false;
  o->value = value, o->name = name;
  return PyModule_AddObject(module, name, reinterpret_cast<PyObject*>(o)) == 0;
}

PyTypeObject* add_type(PyObject* module, const char* name, int size, PyType_Slot* slots, PyTypeObject* base = nullptr) {
  PyType_Spec spec = {name, base ? 0 : size, 0, Py_TPFLAGS_DEFAULT, slots};
  Ref bases(base ? PyTuple_Pack(1, base) : nullptr);
  auto* type = reinterpret_cast<PyTypeObject*>(PyType_FromSpecWithBases(&spec, bases.get()));
  bool constructible = false;
  for (PyType_Slot* s = slots; s->slot; ++s) constructible = constructible || s->slot == Py_tp_new;
  if (type && !constructible) type->tp_new = nullptr;
  if (type && PyModule_AddObject(module, strrchr(name, '.') + 1, new_ref(reinterpret_cast<PyObject*>(type))) < 0)
    return nullptr;
  return type;
}

bool add_dtypes(PyObject* module) {
  static constexpr const char* aliases[][2] = {{"float", "float32"},    {"double", "float64"},    {"half", "float16"},
                                               {"long", "int64"},       {"int", "int32"},         {"short", "int16"},
                                               {"cfloat", "complex64"}, {"cdouble", "complex128"}};
  for (int i = 0; i < kNumDTypes; ++i) {
    auto* o = PyObject_New(PyDType, dtype_type);
    if (!o) return false;
    o->value = DType(i);
    dtypes[i] = reinterpret_cast<PyObject*>(o);
    if (PyModule_AddObject(module, std::string(name(DType(i))).c_str(), new_ref(dtypes[i])) < 0) return false;
  }
  for (auto& [alias, of] : aliases) {
    Ref d(PyObject_GetAttrString(module, of));
    if (!d || PyModule_AddObject(module, alias, d.release()) < 0) return false;
  }
  return true;
}

}  // namespace

PyObject* wrap_dtype(DType d) { return new_ref(dtypes[int(d)]); }
PyObject* wrap_device(Device d) { return make_device(d, d.type() != DeviceType::cpu && d.type() != DeviceType::meta); }

bool is_size(PyObject* o) { return PyObject_TypeCheck(o, size_type); }

PyObject* wrap_sizes(IntSpan sizes) {
  PyObject* o = size_type->tp_alloc(size_type, Py_ssize_t(sizes.size()));
  for (size_t i = 0; o && i < sizes.size(); ++i) {
    PyObject* n = PyLong_FromLongLong(sizes[i]);
    if (!n) Py_CLEAR(o);
    else PyTuple_SET_ITEM(o, Py_ssize_t(i), n);
  }
  return o;
}

bool to_dtype(PyObject* o, DType& d) {
  if (Py_TYPE(o) == dtype_type) d = dtype_of_object(o);
  else if (o == reinterpret_cast<PyObject*>(&PyFloat_Type)) d = DType::float64;
  else if (o == reinterpret_cast<PyObject*>(&PyLong_Type)) d = DType::int64;
  else if (o == reinterpret_cast<PyObject*>(&PyBool_Type)) d = DType::bool_;
  else if (o == reinterpret_cast<PyObject*>(&PyComplex_Type)) d = DType::complex128;
  else return false;
  return true;
}

bool to_device(PyObject* o, Device& d) {
  if (Py_TYPE(o) == device_type) {
    const PyDevice& given = device_of_object(o);
    if (given.foreign) d = Device(std::string_view(text_of(given)));  // raises
    d = given.value.type() == DeviceType::cpu ? Device() : given.value;  // one CPU, whatever the object's number
  } else if (PyUnicode_Check(o)) {
    d = Device(text_in(o));
  } else if (PyLong_Check(o) && !PyBool_Check(o)) {
    long i = PyLong_AsLong(o);
    if (i == -1 && PyErr_Occurred()) throw_current();
    VESTA_CHECK(i >= 0 && i <= 127, runtime, "device: expected an index of 0 to 127, got ", int64_t(i), ".");
    d = Device(DeviceType::cuda, int8_t(i));
  } else {
    return false;
  }
  return true;
}

Format to_format(PyObject* o) {
  return Py_TYPE(o) == format_type ? Format(reinterpret_cast<PyConstant*>(o)->value) : Format::none;
}
PyObject* layout_object(int number) { return new_ref(layout_objects[number]); }
int layout_number(const Tensor& t) { return t.is_sparse() ? 1 + int(sparse_parts(t, "layout").layout) : 0; }
bool is_layout(PyObject* o) { return Py_TYPE(o) == layout_type; }

bool add_value_types(PyObject* module) {
  dtype_type = add_type(module, "vesta.dtype", sizeof(PyDType), dtype_slots);
  device_type = add_type(module, "vesta.device", sizeof(PyDevice), device_slots);
  size_type = add_type(module, "vesta.Size", 0, size_slots, &PyTuple_Type);
  layout_type = add_type(module, "vesta.layout", sizeof(PyConstant), layout_slots);
  format_type = add_type(module, "vesta.memory_format", sizeof(PyConstant), format_slots);
  if (!dtype_type || !device_type || !size_type || !layout_type || !format_type) return false;
  for (int i = 0; i < int(std::size(kLayouts)); ++i) {
    if (!add_constant(module, layout_type, i, kLayouts[i])) return false;
    if (!(layout_objects[i] = PyObject_GetAttrString(module, kLayouts[i]))) return false;
  }
  return add_dtypes(module) && add_constant(module, format_type, int(Format::contiguous), "contiguous_format") &&
         add_constant(module, format_type, int(Format::preserve), "preserve_format") &&
         add_constant(module, format_type, int(Format::channels_last), "channels_last") &&
         add_constant(module, format_type, int(Format::channels_last_3d), "channels_last_3d");
}

}  // namespace vesta::python
