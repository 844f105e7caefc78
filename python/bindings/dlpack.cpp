// DLPack, both ways: memory shared with other array libraries. The structs are DLPack's ABI (github.com/dmlc/dlpack).
#include <cstring>
#include <memory>

#include <vesta/core/backend.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/sparse.h>

#include "exports.h"
#include "factories.h"
#include "hand.h"

namespace vesta::python {
namespace {

struct DlDevice {
  int32_t type;  // 1: CPU, 2: CUDA
  int32_t id;
};
struct DlDataType {
  uint8_t code;  // 0 int, 1 uint, 2 float, 4 bfloat, 5 complex, 6 bool
  uint8_t bits;
  uint16_t lanes;
};
struct DlTensor {
  void* data;
  DlDevice device;
  int32_t ndim;
  DlDataType dtype;
  int64_t* shape;
  int64_t* strides;
  uint64_t byte_offset;
};
struct DlManaged {
  DlTensor tensor;
  void* context;
  void (*deleter)(DlManaged*);
};

constexpr DlDataType kTypes[kNumDTypes] = {{6, 8, 1},  {1, 8, 1},  {0, 8, 1},  {0, 16, 1}, {0, 32, 1}, {0, 64, 1},
                                           {2, 16, 1}, {4, 16, 1}, {2, 32, 1}, {2, 64, 1}, {5, 64, 1}, {5, 128, 1}};

DType dtype_of_dl(DlDataType t) {
  for (int d = 0; d < kNumDTypes; ++d) {
    if (kTypes[d].code == t.code && kTypes[d].bits == t.bits && t.lanes == 1) return DType(d);
  }
  fail(Cause::type, "from_dlpack: expected a dtype that tensors have, got code ", int64_t(t.code), " with ",
       int64_t(t.bits), " bits and ", int64_t(t.lanes), " lanes.");
}

/// What travels: the tensor that keeps the memory, and copies of its sizes and strides.
struct Exported {
  DlManaged managed;
  Tensor tensor;
  Dims dims;
  std::unique_ptr<Export> memory;
};

void free_capsule(PyObject* capsule) {
  if (!PyCapsule_IsValid(capsule, "dltensor")) return;  // taken over: its new owner calls the deleter
  auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule, "dltensor"));
  m->deleter(m);
}

/// Raises BufferError for a tensor without memory; returns whether it did.
bool refuse_meta(const Tensor& t) {
  if (t.device().type() != DeviceType::meta) return false;
  PyErr_SetString(PyExc_BufferError, "__dlpack__: Cannot pack tensors on meta: they have no memory.");
  return true;
}

/// Returns a function of the CUDA library, which is loaded.
template <class F>
F* cuda_function(const char* name) {
  F* f = reinterpret_cast<F*>(backend_symbol(DeviceType::cuda, name));
  VESTA_ASSERT(f);
  return f;
}

/// Returns DLPack's number of the stream on which the consumer will use the memory: -1 asks for no order, None is the
/// default stream, 1. With a Python error set for anything else.
int64_t stream_number(PyObject* given) {
  if (!given || given == Py_None) return 1;
  return PyLong_AsLongLong(given);
}

struct ToDlpack {
  static constexpr char name[] = "__dlpack__",
                        params[] =
                            "(object stream = {}, object max_version = {}, object dl_device = {}, object copy = {})",
                        doc[] = "A DLPack capsule over the tensor's memory, for from_dlpack of any library.";
  static PyObject* run(const Table&, Bound& b) {
    const Tensor& t = unwrap(b.slot[0]);
    if (t.requires_grad()) {
      PyErr_SetString(PyExc_BufferError, "Can't export tensors that require gradient, use tensor.detach()");
      return nullptr;
    }
    if (t.impl()->storage()->read_only()) {
      PyErr_SetString(PyExc_BufferError,
                      "__dlpack__: expected writable memory, got a read-only tensor. Clone it first.");
      return nullptr;
    }
    if (refuse_meta(t)) return nullptr;
    const bool cuda = t.device().type() == DeviceType::cuda;
    if (PyObject* wanted = b.slot[3]; wanted && wanted != Py_None) {
      Ref here(Py_BuildValue("(ii)", cuda ? 2 : 1, cuda ? int(t.device().index()) : 0));
      const int same = here ? PyObject_RichCompareBool(here.get(), wanted, Py_EQ) : -1;
      if (same < 0) return nullptr;
      if (!same) {
        PyErr_Format(PyExc_BufferError,
                     "__dlpack__: expected the tensor's own device %R, got %R (dl_device). Use .to() first.",
                     here.get(), wanted);
        return nullptr;
      }
    }
    const int64_t consumer = cuda ? stream_number(b.slot[1]) : -1;
    if (PyErr_Occurred()) return nullptr;
    auto e = std::make_unique<Exported>();
    bool copy = b.slot[4] == Py_True;
    check_dense(t, "__dlpack__");
    e->tensor = copy ? clone(t) : t.detach();
    if (consumer >= 0)
      cuda_function<void(int, uint64_t)>("vesta_cuda_dlpack_order")(t.device().index(), uint64_t(consumer));
    e->memory = std::make_unique<Export>(e->tensor.impl()->storage());
    for (int64_t s : e->tensor.sizes()) e->dims.push_back(s);
    for (int64_t s : e->tensor.strides()) e->dims.push_back(s);
    int64_t n = t.dim();
    const DlDevice device = cuda ? DlDevice{2, t.device().index()} : DlDevice{1, 0};
    e->managed.tensor = {e->tensor.data_ptr(), device, int32_t(n), kTypes[int(t.dtype())], e->dims.data(),
                         e->dims.data() + n,   0};
    e->managed.context = e.get();
    e->managed.deleter = [](DlManaged* m) { delete static_cast<Exported*>(m->context); };
    PyObject* capsule = PyCapsule_New(&e->managed, "dltensor", free_capsule);
    if (capsule) static_cast<void>(e.release());  // the capsule owns it now
    return capsule;
  }
};

struct DlpackDevice {
  static constexpr char name[] = "__dlpack_device__", params[] = "()",
                        doc[] = "DLPack's (device type, index): (1, 0) is the CPU.";
  static PyObject* run(const Table&, Bound& b) {
    Device d = unwrap(b.slot[0]).device();
    if (refuse_meta(unwrap(b.slot[0]))) return nullptr;
    return Py_BuildValue("(ii)", d.type() == DeviceType::cuda ? 2 : 1, d.type() == DeviceType::cuda ? int(d.index()) : 0);
  }
};

/// Returns the number of the CUDA device that holds an exporter's memory; -1 if it is not on one, or does not say.
int cuda_device_of(PyObject* exporter) {
  Ref where(PyObject_CallMethod(exporter, "__dlpack_device__", nullptr));
  int type = 0, id = 0;
  if (!where || !PyTuple_Check(where.get()) || !PyArg_ParseTuple(where.get(), "ii", &type, &id)) {
    PyErr_Clear();
    return -1;
  }
  if (type != 2) return -1;
  backend(DeviceType::cuda);  // says so where there is none
  return id;
}

/// Returns the capsule of an exporter or a capsule itself.
Ref capsule_of(PyObject* o) {
  if (PyCapsule_CheckExact(o)) return Ref(new_ref(o));
  PyObject* f = PyObject_GetAttrString(o, "__dlpack__");
  if (!f) {
    PyErr_Clear();
    type_error("from_dlpack(): argument 'ext_tensor' (position 1) must have __dlpack__, not %s", Py_TYPE(o)->tp_name);
  }
  Ref method(f);
  const int device = cuda_device_of(o);
  if (device < 0) return Ref(checked(PyObject_CallNoArgs(method.get())));
  // The exporter makes our current stream wait for what it has queued.
  const uint64_t stream = cuda_function<uint64_t(int)>("vesta_cuda_dlpack_stream")(device);
  Ref no_arguments(checked(PyTuple_New(0))),
      named(checked(Py_BuildValue("{sK}", "stream", (unsigned long long)(stream))));
  return Ref(checked(PyObject_Call(method.get(), no_arguments.get(), named.get())));
}

struct FromDlpack {
  static constexpr char
      name[] = "from_dlpack",
      params[] = "(object ext_tensor, Kw<MaybeDevice> device = {}, Kw<object> copy = {})",
      doc[] =
          "A tensor over the memory of another library's array (or a DLPack capsule), without a copy, unless copy=True "
          "or another device asks for one.";
  static PyObject* run(const Table& t, Bound& b) {
    Arg<MaybeDevice> device(t, 1, b);
    PyObject* copy = b.slot[2] == Py_None ? nullptr : b.slot[2];
    const bool copies = copy && to_bool(t, 2, copy);
    Tensor shared = from_dlpack(b.slot[0]);
    Tensor made = device.get() ? shared.to(*device.get()) : shared;
    const bool moved = made.impl() != shared.impl();
    VESTA_CHECK(!copy || copies || !moved, value, "from_dlpack: expected the device of the memory, ", shared.device(),
                ", or copy=True, got ", made.device(), " (device).");
    return wrap(copies && !moved ? ops::clone(made, "preserve_format") : std::move(made));
  }
};

}  // namespace

Tensor from_dlpack(PyObject* exporter) {
  Ref capsule = capsule_of(exporter);
  VESTA_CHECK(PyCapsule_IsValid(capsule.get(), "dltensor"), value,
              "from_dlpack: expected a capsule named 'dltensor', got another or one that was taken over already "
              "(ext_tensor). Call __dlpack__() again.");
  auto* m = static_cast<DlManaged*>(PyCapsule_GetPointer(capsule.get(), "dltensor"));
  const DlTensor& d = m->tensor;
  // 3 is page-locked host memory, to us the CPU's.
  VESTA_CHECK(d.device.type == 1 || d.device.type == 2 || d.device.type == 3, device,
              "from_dlpack: expected memory of the CPU or of CUDA, got device type ", int64_t(d.device.type), ".");
  const Device device = d.device.type == 2 ? Device(DeviceType::cuda, int8_t(d.device.id)) : Device();
  if (d.device.type == 2) backend(DeviceType::cuda);  // says so where there is none
  VESTA_CHECK(d.ndim >= 0 && d.ndim <= kMaxDims, value, "from_dlpack: expected at most ", kMaxDims, " dimensions, got ",
              int64_t(d.ndim), ".");
  DType dtype = dtype_of_dl(d.dtype);
  IntSpan sizes(d.shape, size_t(d.ndim));
  int64_t elements = numel_of(sizes, "from_dlpack"), last = 0;
  Dims strides = d.strides ? Dims(IntSpan(d.strides, size_t(d.ndim))) : contiguous_strides(sizes);
  for (size_t i = 0; i < sizes.size(); ++i) {
    VESTA_CHECK(strides[i] >= 0, value, "from_dlpack: expected strides >= 0, got ", IntSpan(strides),
                ". Copy the array first.");
    if (elements) last = checked_add(last, checked_mul(sizes[i] - 1, strides[i], "from_dlpack"), "from_dlpack");
  }
  if (!elements) strides = contiguous_strides(sizes);
  auto free_managed = [](void* p) {
    auto* managed = static_cast<DlManaged*>(p);
    if (!managed->deleter || !Py_IsInitialized()) return;
    Gil gil;  // an exporter of Python needs it
    managed->deleter(managed);
  };
  size_t nbytes =
      elements ? size_t(checked_mul(checked_add(last, 1, "from_dlpack"), itemsize(dtype), "from_dlpack")) : 0;
  auto storage = Storage::wrap(static_cast<char*>(d.data) + d.byte_offset, nbytes, device, m, free_managed);
  if (PyCapsule_SetName(capsule.get(), "used_dltensor") < 0) throw_current();
  return Tensor(TensorImpl::make(std::move(storage), sizes, strides, 0, dtype, "from_dlpack"));
}

bool add_dlpack(PyObject* module) { return add_functions<FromDlpack>(module) && add_methods<ToDlpack, DlpackDevice>(); }

}  // namespace vesta::python
