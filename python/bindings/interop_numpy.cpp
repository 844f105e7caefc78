// The buffer protocol, both ways, and NumPy through it: neither is linked or imported before somebody asks.
#include <cstring>
#include <memory>
#include <string>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/view.h>

#include "dtype_device.h"
#include "exports.h"
#include "factories.h"
#include "hand.h"
#include "tensor_slots.h"

namespace vesta::python {
namespace {

// What the struct module calls a dtype's native form; null where it has no word (bfloat16).
constexpr const char* kFormats[kNumDTypes] = {"?", "B", "b", "h", "i", "l", "e", nullptr, "f", "d", "Zf", "Zd"};

struct BufferGuard {
  Py_buffer view{};
  bool held = false;
  BufferGuard(PyObject* o, int flags) { held = PyObject_GetBuffer(o, &view, flags) == 0; }
  ~BufferGuard() {
    if (held) PyBuffer_Release(&view);
  }
  BufferGuard(const BufferGuard&) = delete;
};

void release_buffer(void* context) {
  if (!Py_IsInitialized()) return;
  Gil gil;
  auto* view = static_cast<Py_buffer*>(context);
  PyBuffer_Release(view);
  delete view;
}

/// What stays with a buffer that was given out: the memory, and room for sizes and strides.
struct GivenBuffer {
  GivenBuffer(const StoragePtr& storage, size_t ndim) : memory(storage), dims(new Py_ssize_t[2 * ndim + 1]) {}
  Export memory;
  std::unique_ptr<Py_ssize_t[]> dims;
};

// Whether the buffers that this thread asks for stay in the library (Lend).
constinit thread_local bool lending = false;

int get_buffer(PyObject* o, Py_buffer* view, int flags) {
  view->obj = nullptr;
  return guarded(
      [&] {
        const Tensor& t = unwrap(o);
        auto refuse = [](const char* why) {
          PyErr_SetString(PyExc_BufferError, why);
          return -1;
        };
        const char* format = kFormats[int(t.dtype())];
        if (t.is_sparse()) return refuse("Tensor: expected a dense tensor, got a sparse one. Use .to_dense().");
        if (!format) return refuse("Tensor: expected a dtype that buffers know, got bfloat16. Use .float() first.");
        if (t.requires_grad() && layer_state.grad_enabled)
          return refuse("Tensor: expected no gradient, got a tensor that requires grad. Use .detach().");
        if (t.device().type() != DeviceType::cpu) return refuse("Tensor: expected a CPU tensor. Use .cpu().");
        if ((flags & PyBUF_WRITABLE) && t.impl()->storage()->read_only())
          return refuse("Tensor: its memory is read-only.");
        bool wants_strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES;
        bool row_major = (flags & PyBUF_C_CONTIGUOUS) == PyBUF_C_CONTIGUOUS;
        if ((!wants_strides || row_major) && !t.is_contiguous())
          return refuse("Tensor: it is not contiguous. Use .contiguous().");
        const int64_t length = checked_mul(t.numel(), t.element_size(), "Tensor");
        size_t n = size_t(t.dim());
        auto given = std::make_unique<GivenBuffer>(t.impl()->storage(), n);
        Py_ssize_t* dims = given->dims.get();
        for (size_t i = 0; i < n; ++i) {
          dims[i] = Py_ssize_t(t.sizes()[i]);
          dims[n + i] = Py_ssize_t(checked_mul(t.strides()[i], t.element_size(), "Tensor"));
        }
        static char nothing;
        view->obj = new_ref(o);
        if (!lending) t.impl()->storage()->hand_out();
        view->buf = t.impl()->data() ? t.impl()->data() : &nothing;
        view->len = Py_ssize_t(length);
        view->itemsize = Py_ssize_t(t.element_size());
        view->readonly = t.impl()->storage()->read_only();
        view->ndim = int(n);
        view->format = (flags & PyBUF_FORMAT) ? const_cast<char*>(format) : nullptr;
        view->shape = (flags & PyBUF_ND) ? dims : nullptr;
        view->strides = wants_strides ? dims + n : nullptr;
        view->suboffsets = nullptr;
        view->internal = given.release();
        return 0;
      },
      -1);
}
void give_buffer_back(PyObject*, Py_buffer* view) { delete static_cast<GivenBuffer*>(view->internal); }

/// Returns whether a tensor can have the buffer's geometry: strides not negative, whole elements, aligned.
const char* unshareable(const Py_buffer& view) {
  if (reinterpret_cast<uintptr_t>(view.buf) % uintptr_t(std::min<Py_ssize_t>(view.itemsize, 8)))
    return "it is not aligned";
  for (int i = 0; view.strides && i < view.ndim; ++i) {
    if (view.strides[i] < 0) return "a stride is negative";
    if (view.strides[i] % view.itemsize) return "a stride is no multiple of the element size";
  }
  return nullptr;
}

/// Wraps memory that `view` (given away) keeps alive.
Tensor wrap_buffer(std::unique_ptr<Py_buffer> given, DType dtype, const char* op) {
  auto release = [](Py_buffer* b) { release_buffer(b); };
  std::unique_ptr<Py_buffer, decltype(release)> view(given.release(), release);  // also where its geometry is refused
  Dims sizes, strides;
  int64_t last = 0;
  bool empty = false;
  for (int i = 0; i < view->ndim; ++i) {
    int64_t size = view->shape[i];
    sizes.push_back(size);
    strides.push_back(view->strides[i] / view->itemsize);
    if (size == 0) empty = true;
    else last = checked_add(last, checked_mul(size - 1, strides.back(), op), op);
  }
  numel_of(sizes, op);
  if (empty) strides = contiguous_strides(sizes);
  size_t nbytes = empty ? 0 : size_t(checked_mul(checked_add(last, 1, op), view->itemsize, op));
  Py_buffer* v = view.release();
  StoragePtr storage = Storage::wrap(v->buf, nbytes, {}, v, release_buffer, v->readonly);
  return Tensor(TensorImpl::make(std::move(storage), sizes, strides, 0, dtype, op));
}

/// Returns whether an object is a NumPy array, or of a class made from it (numpy.memmap).
bool is_array(PyObject* o) {
  for (PyTypeObject* type = Py_TYPE(o); type; type = type->tp_base) {
    if (!std::strcmp(type->tp_name, "numpy.ndarray")) return true;
  }
  return false;
}

struct FromNumpy {
  static constexpr char name[] = "from_numpy", params[] = "(object ndarray)",
                        doc[] =
                            "A tensor over the memory of a NumPy array, without a copy; writes through either are seen "
                            "by both. A read-only array gives a tensor that refuses writes.";
  static PyObject* run(const Table&, Bound& b) {
    if (!is_array(b.slot[0])) {
      type_error("from_numpy(): argument 'ndarray' (position 1) must be numpy.ndarray, not %s",
                 Py_TYPE(b.slot[0])->tp_name);
    }
    return wrap(from_array(b.slot[0], true, "from_numpy"));
  }
};

struct FromBuffer {
  static constexpr char
      name[] = "frombuffer",
      params[] =
          "(object buffer, Kw<MaybeDType> dtype, Kw<int64_t> count = -1, Kw<int64_t> offset = 0, "
          "Kw<bool> requires_grad = false)",
      doc[] =
          "A 1-d tensor over the memory of any buffer (bytes, bytearray, mmap, array), without a copy: "
          "count elements (-1: all) from byte offset on.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<MaybeDType> dtype(t, 1, b);
    if (!dtype.get()) wrong_type(t, 1, "vesta.dtype", Py_None);
    int64_t count = Arg<int64_t>(t, 2, b).get(), offset = Arg<int64_t>(t, 3, b).get(), size = itemsize(*dtype.get());
    auto view = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(b.slot[0], view.get(), PyBUF_WRITABLE) != 0) {
      PyErr_Clear();
      if (PyObject_GetBuffer(b.slot[0], view.get(), PyBUF_SIMPLE) != 0) throw_current();
    }
    int64_t length = view->len;
    auto storage =
        Storage::wrap(static_cast<char*>(view->buf), size_t(length), {}, view.get(), release_buffer, view->readonly);
    void* data = view.release()->buf;
    VESTA_CHECK(length > 0, value, "frombuffer: expected a buffer with bytes in it, got an empty one.");
    VESTA_CHECK(offset >= 0 && offset < length, value, "frombuffer: expected an offset of 0 to ", length - 1, ", got ",
                offset, ".");
    if (count < 0) {
      VESTA_CHECK((length - offset) % size == 0, value, "frombuffer: expected whole elements of ", size, " bytes, got ",
                  length - offset, " bytes.");
      count = (length - offset) / size;
    }
    VESTA_CHECK(count > 0 && count <= (length - offset) / size, value, "frombuffer: expected at most ",
                (length - offset) / size, " elements, got ", count, " (count).");
    bool aligned = (reinterpret_cast<uintptr_t>(data) + uintptr_t(offset)) % uintptr_t(size) == 0 && offset % size == 0;
    VESTA_CHECK(aligned, value, "frombuffer: expected memory aligned to ", size, " bytes (offset).");
    Tensor r(
        TensorImpl::make(std::move(storage), IntList{count}, IntList{1}, offset / size, *dtype.get(), "frombuffer"));
    if (Arg<bool>(t, 4, b).get()) r.set_requires_grad(true);
    return wrap(std::move(r));
  }
};

/// For the library's own files: what is saved is only read, and what is loaded is written before the first op sees it.
struct Lend {
  static constexpr char name[] = "_lend", params[] = "(const Tensor& input)",
                        doc[] = "A memoryview of a tensor whose owner lets go of it at once and keeps no address.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<Tensor> input(t, 0, b);
    lending = true;
    PyObject* const view = PyMemoryView_FromObject(b.slot[0]);
    lending = false;
    return view;
  }
};

/// Calls numpy.asarray over the tensor's buffer.
PyObject* as_array(PyObject* tensor) {
  Ref numpy(PyImport_ImportModule("numpy"));
  if (!numpy) throw_current();
  Ref view(PyMemoryView_FromObject(tensor));
  if (!view) throw_current();
  return PyObject_CallMethod(numpy.get(), "asarray", "O", view.get());
}

/// Raises for a tensor that has no values in memory which an array could show.
void check_has_data(const Tensor& t) {
  VESTA_CHECK(!t.is_sparse(), type, "numpy: can't convert a sparse tensor to numpy. Use .to_dense() first.");
  VESTA_CHECK(t.device().type() != DeviceType::meta, type,
              "can't convert meta device type tensor to numpy: it has no data.");
}

struct Numpy {
  static constexpr char name[] = "numpy", params[] = "(Kw<bool> force = false)",
                        doc[] =
                            "A NumPy array over the tensor's memory, without a copy. Raises for a tensor that requires "
                            "grad; force=True detaches first.";
  static PyObject* run(const Table& t, Bound& b) {
    bool force = Arg<bool>(t, 1, b).get();
    const Tensor& self = unwrap(b.slot[0]);
    VESTA_CHECK(force || !self.requires_grad() || !layer_state.grad_enabled, runtime,
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    if (self.dtype() == DType::bfloat16) type_error("Got unsupported ScalarType BFloat16");
    check_has_data(self);
    if (!self.requires_grad() && self.device().type() == DeviceType::cpu) return as_array(b.slot[0]);
    VESTA_CHECK(force || self.device().type() == DeviceType::cpu, type, "numpy: expected a CPU tensor, got one on ",
                self.device(), ". Use .cpu() first.");
    Ref plain(wrap(self.detach().to(Device())));
    return as_array(plain.get());
  }
};

struct Array {
  static constexpr char name[] = "__array__", params[] = "(object dtype = {}, object copy = {})",
                        doc[] = "What numpy.asarray calls: the tensor as an array.";
  static PyObject* run(const Table&, Bound& b) {
    const Tensor& self = unwrap(b.slot[0]);
    VESTA_CHECK(!self.requires_grad() || !layer_state.grad_enabled, runtime,
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.");
    if (self.dtype() == DType::bfloat16) type_error("Got unsupported ScalarType BFloat16");
    check_has_data(self);
    Ref array(as_array(b.slot[0]));
    bool copy = b.slot[2] && b.slot[2] == Py_True;
    if (!array) return nullptr;
    if (b.slot[1] && b.slot[1] != Py_None) return PyObject_CallMethod(array.get(), "astype", "O", b.slot[1]);
    return copy ? PyObject_CallMethod(array.get(), "copy", nullptr) : array.release();
  }
};

}  // namespace

DType dtype_of_format(const Py_buffer& view, const char* op) {
  const char* f = view.format ? view.format : "B";
  if (*f == '@' || *f == '=' || *f == '<') ++f;
  if (*f == 'l' || *f == 'q') {
    if (!f[1]) return view.itemsize == 8 ? DType::int64 : DType::int32;
  }
  for (int d = 0; d < kNumDTypes; ++d) {
    if (kFormats[d] && !std::strcmp(f, kFormats[d]) && view.itemsize == itemsize(DType(d))) return DType(d);
  }
  const char* got = view.format ? view.format : "B";
  const std::string format = std::string(got).substr(std::strcspn(got, "HILQOgGwsZT"));
  const char first = format.empty() ? 0 : format[0];
  const char* what = "an array of another dtype";
  const char* fix = "Convert it with array.astype.";
  if (*got == '>') what = "an array of another byte order", fix = "Use array.astype(array.dtype.newbyteorder('=')).";
  else if (first == 'H') what = "a uint16 array", fix = "Use array.astype('int32').";
  else if ((first == 'I' || first == 'L') && view.itemsize == 4) {
    what = "a uint32 array", fix = "Use array.astype('int64').";
  } else if (first == 'L' || first == 'Q') {
    what = "a uint64 array", fix = "Use array.astype('int64') where the values are below 2**63.";
  } else if (first == 'w' || first == 's') {
    what = "an array of text", fix = "Tensors hold numbers: give each text a number first.";
  } else if (first == 'O') {
    what = "an array of Python objects", fix = "Use array.astype('float64') if all of them are numbers.";
  } else if (first == 'g') {
    what = "a longdouble array", fix = "Use array.astype('float64').";
  } else if (first == 'T') {
    what = "an array of records", fix = "Convert one field: array['name'].";
  }
  type_error(
      "%s: can't convert %s (format '%s'). The only supported types are: float64, float32, float16, complex64, "
      "complex128, int64, int32, int16, int8, uint8, and bool. %s",
      op, what, got, fix);
}

Tensor from_array(PyObject* array, bool share, const char* op) {
  auto view = std::make_unique<Py_buffer>();
  constexpr int kFlags = PyBUF_STRIDES | PyBUF_FORMAT;
  if (!share || PyObject_GetBuffer(array, view.get(), kFlags | PyBUF_WRITABLE) != 0) {
    PyErr_Clear();
    if (PyObject_GetBuffer(array, view.get(), kFlags) != 0) {
      if (!is_array(array) || !PyErr_ExceptionMatches(PyExc_ValueError)) throw_current();
      PyErr_Clear();  // NumPy's dates have no buffer
      Ref dtype(PyObject_GetAttrString(array, "dtype"));
      if (!dtype) throw_current();
      type_error("%s: expected an array of numbers, got one of dtype %S. Convert it with array.astype('int64').", op,
                 dtype.get());
    }
  }
  struct Release {
    Py_buffer* view;
    ~Release() {
      if (view) PyBuffer_Release(view);
    }
  } release{view.get()};
  DType dtype = dtype_of_format(*view, op);
  const char* why = unshareable(*view);
  if (why) {
    VESTA_CHECK(!share, value, op, ": expected an array whose memory a tensor can share, but ", why,
                ". Copy it first.");
    Tensor t = empty_tensor(IntSpan(reinterpret_cast<int64_t*>(view->shape), size_t(view->ndim)), dtype);
    if (PyBuffer_ToContiguous(t.impl()->data(), view.get(), view->len, 'C') < 0) throw_current();
    return t;
  }
  release.view = nullptr;
  Tensor t = wrap_buffer(std::move(view), dtype, op);
  return share ? t : t.is_contiguous() ? clone(t) : contiguous(t);
}

Tensor from_buffer(PyObject* object, const char* op) { return from_array(object, true, op); }

int add_buffer_slots(PyType_Slot* slots, int n) {
  slots[n++] = {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)};
  slots[n++] = {Py_bf_releasebuffer, reinterpret_cast<void*>(give_buffer_back)};
  return n;
}

bool add_numpy(PyObject* module) {
  return add_functions<FromNumpy, FromBuffer, Lend>(module) && add_methods<Numpy, Array>();
}

}  // namespace vesta::python
