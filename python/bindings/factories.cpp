// vesta.tensor and what makes tensors out of Python's numbers and lists.
#include "factories.h"

#include <cstring>

#include <vesta/core/ops/copy.h>

#include "dtype_device.h"
#include "hand.h"
#include "tensor_slots.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

/// Walks nested sequences twice: first for shape and dtype, then for the values.
class Nested {
 public:
  explicit Nested(const char* op) : op_(op) {}

  /// Finds the shape along the first elements.
  void measure(PyObject* o) {
    for (; is_sequence(o); o = first_.back().get()) {
      Py_ssize_t n = PySequence_Size(o);
      if (n < 0) throw_current();
      sizes_.push_back(n);
      VESTA_CHECK(sizes_.size() <= size_t(kMaxDims), value, op_, ": expected at most ", kMaxDims,
                  " dimensions, got a deeper list (data). Does it contain itself?");
      if (n == 0) break;
      first_.emplace_back(PySequence_GetItem(o, 0));
      if (!first_.back()) throw_current();
    }
  }
  /// Finds the dtype that all numbers fit; checks the shape on the way.
  void survey(PyObject* o, size_t depth = 0) {
    if (depth == sizes_.size()) return survey_number(o);
    each(o, depth, [&](PyObject* item) { survey(item, depth + 1); });
  }
  DType dtype() const {
    if (kind_ < 0) return default_dtype();
    return DType(kind_);
  }
  IntSpan sizes() const { return sizes_; }

  template <class T>
  void fill(PyObject* o, T*& to, size_t depth = 0) {
    if (depth == sizes_.size()) {
      *to++ = convert<T>(o);
      return;
    }
    each(o, depth, [&](PyObject* item) { fill(item, to, depth + 1); });
  }

 private:
  static bool is_sequence(PyObject* o) {
    if (PyList_Check(o) || PyTuple_Check(o)) return true;
    if (is_tensor(o)) return false;
    return PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o) && !is_zero_dim_array(o);
  }
  static bool is_zero_dim_array(PyObject* o) {
    Py_ssize_t n = PySequence_Size(o);
    if (n < 0) PyErr_Clear();
    return n < 0;
  }

  std::string path() const {
    std::string s = "data";
    for (Py_ssize_t i : at_) s += "[" + std::to_string(i) + "]";
    return s;
  }

  template <class F>
  void each(PyObject* o, size_t depth, F&& f) {
    int64_t want = sizes_[depth];
    if (!is_sequence(o)) {
      VESTA_CHECK(false, value, op_, ": expected sequence of length ", want, " at dim ", depth, ", got ",
                  Py_TYPE(o)->tp_name, " (", path(), ").");
    }
    Ref fast(PySequence_Fast(o, "expected a sequence"));
    if (!fast) throw_current();
    Py_ssize_t n = PySequence_Fast_GET_SIZE(fast.get());
    VESTA_CHECK(n == want, value, op_, ": expected sequence of length ", want, " at dim ", depth, " (got ", int64_t(n),
                ": ", path(), ").");
    at_.push_back(0);
    for (Py_ssize_t i = 0; i < n; ++i) {
      at_.back() = i;
      VESTA_CHECK(PySequence_Fast_GET_SIZE(fast.get()) == n, runtime, op_, ": the list changed while it was read.");
      Ref item(new_ref(PySequence_Fast_GET_ITEM(fast.get(), i)));
      f(item.get());
    }
    at_.pop_back();
  }

  void survey_number(PyObject* o) {
    DType d;
    if (is_tensor(o)) {
      VESTA_CHECK(unwrap(o).numel() == 1, value, op_,
                  ": only one element tensors can be converted to Python scalars, got ", unwrap(o).sizes(), " (",
                  path(), "). Use stack().");
      d = unwrap(o).dtype();
    } else {
      d = number_at(o).dtype();
      if (const MaybeDType own = dtype_of_numpy_scalar(o)) d = *own;
      else if (d == DType::float64) d = default_dtype();
      else if (d == DType::complex128) d = complex_type(default_dtype());
    }
    kind_ = kind_ < 0 ? int(d) : int(promote(DType(kind_), d));
  }
  /// Returns the dtype of a scalar of NumPy; none of any other number.
  static MaybeDType dtype_of_numpy_scalar(PyObject* o) {
    static constexpr std::pair<std::string_view, DType> kNames[] = {
        {"int8", DType::int8},       {"uint8", DType::uint8},     {"int16", DType::int16},
        {"int32", DType::int32},     {"int64", DType::int64},     {"float16", DType::float16},
        {"float32", DType::float32}, {"float64", DType::float64}, {"complex64", DType::complex64}};
    if (PyFloat_CheckExact(o) || PyLong_CheckExact(o)) return {};
    const std::string_view type = Py_TYPE(o)->tp_name;
    if (!type.starts_with("numpy.")) return {};
    for (const auto& [name, dtype] : kNames) {
      if (type.substr(6) == name) return dtype;
    }
    return {};
  }

  Scalar number_at(PyObject* o) {
    Scalar s;
    if (is_tensor(o)) return unwrap(o).item();
    if (number_of(o, s)) return s;
    if (PySequence_Check(o) && !PyUnicode_Check(o) && !PyBytes_Check(o)) {
      fail(Cause::value, op_, ": expected a number, got a sequence (", path(), "): the list is ragged.");
    }
    if (o == Py_None) type_error("%s: expected a number, got None (%s).", op_, path().c_str());
    type_error("%s: expected a number, got %s (%s).", op_, Py_TYPE(o)->tp_name, path().c_str());
  }

  template <class T>
  T convert(PyObject* o) {
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
      if (PyFloat_CheckExact(o)) return T(PyFloat_AS_DOUBLE(o));
    }
    return number_at(o).to<T>(op_);
  }

  const char* op_;
  std::vector<int64_t> sizes_;
  std::vector<Ref> first_;  // keeps the elements that measure() went through
  std::vector<Py_ssize_t> at_;
  int kind_ = -1;
};

Tensor from_nested(PyObject* data, MaybeDType dtype, const char* op) {
  Nested n(op);
  n.measure(data);
  n.survey(data);
  Tensor t = empty_tensor(n.sizes(), dtype.value_or(n.dtype()));
  visit(t.dtype(), [&]<class T>() {
    T* to = reinterpret_cast<T*>(t.impl()->data());
    if (t.numel()) n.fill(data, to);
  });
  return t;
}

/// Returns whether an object is a number, a list, a tuple, or text.
bool is_plain(PyObject* o) {
  return PyFloat_Check(o) || PyLong_Check(o) || PyComplex_Check(o) || PyList_Check(o) || PyTuple_Check(o) ||
         PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o);
}

bool has(PyObject* o, const char* name) { return PyObject_HasAttrString(o, name) != 0; }

/// Returns whether an object offers DLPack and NumPy cannot read it: it refuses its buffer (JAX's of bfloat16), or its
/// memory is not the host's (kinds 1 and 3).
bool needs_dlpack(PyObject* o) {
  if (!std::strcmp(Py_TYPE(o)->tp_name, "numpy.ndarray") || !has(o, "__dlpack_device__")) return false;
  if (PyObject_CheckBuffer(o)) {
    Py_buffer view;
    const bool gives = PyObject_GetBuffer(o, &view, PyBUF_STRIDES | PyBUF_FORMAT) == 0;
    if (gives) PyBuffer_Release(&view);
    else PyErr_Clear();
    return !gives;
  }
  Ref device(PyObject_CallMethod(o, "__dlpack_device__", nullptr));
  Ref kind(device ? PySequence_GetItem(device.get(), 0) : nullptr);
  if (!kind) throw_current();
  const long number = PyLong_AsLong(kind.get());
  if (number == -1 && PyErr_Occurred()) throw_current();
  return number != 1 && number != 3;
}

/// Raises TypeError for what numpy.asarray(o) made an array of objects or strings of, and says what to write instead.
void check_numbers(PyObject* o, PyObject* array, const char* op) {
  Ref dtype(PyObject_GetAttrString(array, "dtype"));
  Ref kind(dtype ? PyObject_GetAttrString(dtype.get(), "kind") : nullptr);
  if (!kind) throw_current();
  if (!has(o, "select_dtypes") || PyUnicode_CompareWithASCIIString(kind.get(), "O")) return;
  type_error(
      "%s: expected a table of numbers, got a %s with columns of text or other objects (data). Choose the columns of "
      "numbers with .select_dtypes('number'), or give each text a number: .astype('category').cat.codes.",
      op, Py_TYPE(o)->tp_name);
}

/// Returns a tensor of PyTorch's as one of Vesta's over the same memory, without history.
Tensor from_pytorch(PyObject* o) {
  Ref adapter(PyImport_ImportModule("vesta.adapters.torch"));
  Ref detached(adapter ? PyObject_CallMethod(o, "detach", nullptr) : nullptr);
  Ref shared(detached ? PyObject_CallMethod(adapter.get(), "from_torch", "O", detached.get()) : nullptr);
  if (!shared) throw_current();
  return unwrap(shared.get());
}

/// Reads what shows its values as an array: `__array__` or `__array_interface__` (a DataFrame, an image) by NumPy,
/// into a copy; `__dlpack__` where there is neither, or the memory is a device's; a tensor of PyTorch's. Null for
/// anything else.
Tensor from_protocol(PyObject* o, bool share, const char* op) {
  if (is_plain(o) || PyType_Check(o)) return {};
  const auto lent = [share](Tensor t) { return share ? t : clone(t); };
  if (is_pytorchs_tensor(o)) return lent(from_pytorch(o));
  const bool exports = has(o, "__dlpack__");
  if (!(exports && needs_dlpack(o)) && (has(o, "__array__") || has(o, "__array_interface__"))) {
    Ref numpy(PyImport_ImportModule("numpy"));
    Ref array(numpy ? PyObject_CallMethod(numpy.get(), "asarray", "O", o) : nullptr);
    if (!array) throw_current();
    check_numbers(o, array.get(), op);
    return from_array(array.get(), false, op);
  }
  return exports ? lent(from_dlpack(o)) : Tensor();
}

bool is_array(PyObject* o) {
  return !is_tensor(o) && PyObject_CheckBuffer(o) && !PyBytes_Check(o) && !PyByteArray_Check(o) && !needs_dlpack(o);
}

struct TensorFunction {
  static constexpr char name[] = "tensor",
                        params[] =
                            "(object data, Kw<MaybeDType> dtype = {}, Kw<MaybeDevice> device = {}, "
                            "Kw<bool> pin_memory = false, Kw<bool> requires_grad = false)",
                        doc[] =
                            "A tensor of a copy of data: numbers, nested lists, arrays, tensors. The dtype follows the "
                            "data unless given: bool, int64, the default floating dtype or its complex one. Raises "
                            "ValueError for ragged lists, TypeError for what is no number; both name its path.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<MaybeDType> dtype(t, 1, b);
    Arg<MaybeDevice> device(t, 2, b);
    const bool pin = Arg<bool>(t, 3, b).get(), wants = Arg<bool>(t, 4, b).get();
    Tensor r = make_tensor(b.slot[0], dtype.get(), device.get(), "tensor");
    if (pin) r = pin_memory(r);
    if (wants) r.set_requires_grad(true);
    return wrap(std::move(r));
  }
};

struct AsTensor {
  static constexpr char name[] = "as_tensor",
                        params[] = "(object data, Kw<MaybeDType> dtype = {}, Kw<MaybeDevice> device = {})",
                        doc[] =
                            "A tensor of data, sharing its memory where dtype and device allow: a tensor comes back as "
                            "it is, a NumPy array is not copied.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<MaybeDType> dtype(t, 1, b);
    Arg<MaybeDevice> device(t, 2, b);
    Tensor r;
    if (is_tensor(b.slot[0])) r = unwrap(b.slot[0]);
    else if (is_array(b.slot[0])) r = from_array(b.slot[0], true, "as_tensor");
    else if (Tensor read = from_protocol(b.slot[0], true, "as_tensor"); read.defined()) r = std::move(read);
    else return wrap(make_tensor(b.slot[0], dtype.get(), device.get(), "as_tensor"));
    if (dtype.get()) r = r.to(*dtype.get());
    if (device.get()) r = r.to(*device.get());
    return wrap(std::move(r));
  }
};

struct MakeSubclass {
  static constexpr char name[] = "_make_subclass",
                        params[] = "(object cls, const Tensor& data, bool require_grad = false)",
                        doc[] = "An object of class cls over data's memory, without its history.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> data(t, 1, b);
    bool wants = Arg<bool>(t, 2, b).get();
    auto* type = reinterpret_cast<PyTypeObject*>(b.slot[0]);
    if (!PyType_Check(b.slot[0]) || !PyType_IsSubtype(type, tensor_type)) {
      type_error("_make_subclass(): argument 'cls' (position 1) must be a subclass of Tensor, not %s",
                 Py_TYPE(type)->tp_name);
    }
    Tensor r = data.get().detach();
    if (wants) r.set_requires_grad(true);
    return wrap_as(type, std::move(r));
  }
};

// For copies and pickles: the memory under a tensor as bytes, and tensors over such bytes.
struct StorageBytes {
  static constexpr char name[] = "_storage_bytes", params[] = "(const Tensor& input)",
                        doc[] = "The memory under a tensor, which others may share, as a uint8 tensor over it.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> input(t, 0, b);
    const StoragePtr& storage = input.get().impl()->storage();
    Dims size{int64_t(storage->nbytes())}, stride{1};
    return wrap(Tensor(TensorImpl::make(storage, size, stride, 0, DType::uint8, name)));
  }
};
struct StorageKey {
  static constexpr char name[] = "_storage_key", params[] = "(const Tensor& input)",
                        doc[] = "A number that tensors share while they share memory; on the meta device, too.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> input(t, 0, b);
    return PyLong_FromVoidPtr(input.get().impl()->storage().get());
  }
};
struct CountsAllWrites {
  static constexpr char name[] = "_counts_all_writes", params[] = "(const Tensor& input)",
                        doc[] =
                            "Whether every write to the memory under a tensor is an op's: no program has its address.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> input(t, 0, b);
    return PyBool_FromLong(input.get().impl()->storage()->counts_all_writes());
  }
};
struct Over {
  static constexpr char name[] = "_over",
                        params[] =
                            "(const Tensor& bytes, MaybeDType dtype, IntList size, IntList stride, int64_t offset)",
                        doc[] = "A tensor of that geometry over the memory under another one.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> bytes(t, 0, b);
    Arg<MaybeDType> dtype(t, 1, b);
    Arg<IntList> size(t, 2, b), stride(t, 3, b);
    if (!dtype.get()) wrong_type(t, 1, "vesta.dtype", Py_None);
    VESTA_CHECK(size.get().size() == stride.get().size(), value, "_over: expected as many strides as sizes.");
    int64_t offset = Arg<int64_t>(t, 4, b).get();
    const StoragePtr& storage = bytes.get().impl()->storage();
    return wrap(Tensor(TensorImpl::make(storage, size.get(), stride.get(), offset, *dtype.get(), name)));
  }
};
struct ToBytes {
  static constexpr char name[] = "_to_bytes", params[] = "(const Tensor& input)",
                        doc[] = "The elements as bytes, row by row.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> input(t, 0, b);
    Tensor x = contiguous(input.get());
    VESTA_CHECK(x.device().type() == DeviceType::cpu, device, "_to_bytes: expected a CPU tensor, got one on ", x.device(),
                ". Use .cpu().");
    return PyBytes_FromStringAndSize(x.impl()->data(), Py_ssize_t(x.numel() * x.element_size()));
  }
};
struct FromBytes {
  static constexpr char name[] = "_from_bytes", params[] = "(object data)",
                        doc[] = "A uint8 tensor of a copy of bytes.";
  static PyObject* run(const Table& t, Bound& b) {
    if (!PyBytes_Check(b.slot[0])) wrong_type(t, 0, "bytes", b.slot[0]);
    int64_t n = PyBytes_GET_SIZE(b.slot[0]);
    Tensor r = empty_tensor(IntList{n}, DType::uint8);
    if (n) std::memcpy(r.impl()->data(), PyBytes_AS_STRING(b.slot[0]), size_t(n));
    return wrap(std::move(r));
  }
};

}  // namespace

Tensor make_tensor(PyObject* data, MaybeDType dtype, MaybeDevice device, const char* op) {
  Tensor t;
  if (is_tensor(data)) {
    const Tensor& from = unwrap(data);
    t = from.detach();
    t = dtype && *dtype != from.dtype() ? t.to(*dtype) : clone(t);
  } else if (is_array(data)) {
    t = from_array(data, false, op);
    if (dtype) t = t.to(*dtype);
  } else if (Tensor read = from_protocol(data, false, op); read.defined()) {
    t = std::move(read);
    if (dtype) t = t.to(*dtype);
  } else {
    t = from_nested(data, dtype, op);
  }
  return device ? t.to(*device) : t;
}

/// Returns whether an object is one integer, as a size is: NumPy's too, but no truth value and no tensor.
static bool is_whole_number(PyObject* x) {
  if (PyLong_Check(x)) return !PyBool_Check(x);
  if (is_tensor(x) || !PyIndex_Check(x)) return false;
  Ref number(PyNumber_Index(x));
  if (!number) PyErr_Clear();  // an array of several
  return bool(number);
}

PyObject* construct_tensor(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  Py_ssize_t n = PyTuple_GET_SIZE(args);
  if (kwargs && PyDict_Size(kwargs) > 0)
    type_error("%s() takes no keyword arguments. Use vesta.tensor(data, ...).", type->tp_name);
  Tensor t;
  PyObject* first = n ? PyTuple_GET_ITEM(args, 0) : nullptr;
  if (n == 1 && is_size(first)) args = first, n = PyTuple_GET_SIZE(args);
  bool sizes = args == first || !first || (n > 1 && PyIndex_Check(first)) || is_whole_number(first);
  if (sizes) {
    Dims dims;
    for (Py_ssize_t i = 0; i < n; ++i) {
      PyObject* given = PyTuple_GET_ITEM(args, i);
      if (!PyIndex_Check(given)) {
        type_error("%s(): expected int as a size, got %s (argument %zd).", type->tp_name, Py_TYPE(given)->tp_name,
                   i + 1);
      }
      Ref size(PyNumber_Index(given));
      if (!size) throw_current();
      dims.push_back(PyLong_AsLongLong(size.get()));
      if (PyErr_Occurred()) throw_current();
    }
    if (!first) dims.push_back(0);
    t = empty_tensor(dims, default_dtype());
  } else {
    if (n != 1) type_error("%s() takes sizes or one argument of data, got %zd arguments.", type->tp_name, n);
    t = is_tensor(first) ? unwrap(first).detach() : make_tensor(first, default_dtype(), {}, "Tensor");
  }
  return type == tensor_type ? wrap(std::move(t)) : wrap_as(type, std::move(t));
}

bool add_factories(PyObject* module) {
  if (!add_functions<TensorFunction, AsTensor, StorageBytes, StorageKey, CountsAllWrites, Over, ToBytes, FromBytes,
                     MakeSubclass>(module))
    return false;
  Ref f(PyObject_GetAttrString(module, "_make_subclass"));
  Ref bound(PyStaticMethod_New(f.get()));
  return add_to_tensor("_make_subclass", bound.get());
}

}  // namespace vesta::python
