// x.to(...) in all its forms, x.float() and its like, x.new_tensor(...).
#include <vesta/core/backend.h>
#include <vesta/core/ops/copy.h>

#include "dtype_device.h"
#include "factories.h"
#include "hand.h"
#include "memory_format.h"

namespace vesta::python {
namespace {

/// Converts and moves; the tensor itself where nothing changes, unless `copy`.
Tensor convert(const Tensor& t, MaybeDType dtype, MaybeDevice device, bool copy, bool non_blocking = false) {
  if (device) device = resolved(*device);
  bool other = (dtype && *dtype != t.dtype()) || (device && *device != t.device());
  if (!other && !copy) return t;
  WithoutGil open(t.numel() >= kReleaseGil || device);  // another device may make us wait
  return other || dtype || device ? ops::_to_copy(t, dtype, device, non_blocking) : clone(t);
}

/// Returns the memory format in slot `i`, preserve where none is given. TypeError: it is none.
Format format_of(const Table& t, int i, PyObject* o) {
  if (!o || o == Py_None) return Format::preserve;
  const Format f = to_format(o);
  if (f == Format::none) wrong_type(t, i, "vesta.memory_format", o);
  return f;
}

/// The arguments of to(), whichever form the call has.
struct To {
  static constexpr char
      name[] = "to",
      params[] =
          "(object tensor = {}, object dtype = {}, object non_blocking = {}, object copy = {}, "
          "object device = {}, Kw<object> memory_format = {})",
      doc[] =
          "to(dtype), to(device, dtype=None), to(tensor): the tensor in that dtype, on that device, or "
          "as `tensor` is in both; itself where nothing changes, unless copy=True.";
  static PyObject* run(const Table& t, Bound& b) {
    MaybeDType dtype;
    MaybeDevice device;
    DType d;
    PyObject* flags[4] = {b.slot[2], b.slot[3], nullptr, nullptr};
    auto as_device = [&](PyObject* o) {
      Device v;
      if (!to_device(o, v)) return false;
      device = v;
      return true;
    };
    if (PyObject* first = b.slot[1]; first && first != Py_None) {
      bool moved = false;
      if (is_tensor(first)) dtype = unwrap(first).dtype(), device = unwrap(first).device(), moved = true;
      else if (to_dtype(first, d)) dtype = d, moved = true;
      else if (!as_device(first)) wrong_type(t, 1, "vesta.dtype, vesta.device, str or Tensor", first);
      if (moved && b.slot[2] && PyBool_Check(b.slot[2])) {  // to(dtype, non_blocking, copy)
        flags[0] = b.slot[2], flags[1] = b.slot[3] ? b.slot[3] : b.slot[4];
        b.slot[2] = nullptr, b.slot[4] = nullptr;
      }
    }
    if (b.slot[2] && b.slot[2] != Py_None && !dtype) {
      if (!to_dtype(b.slot[2], d)) wrong_type(t, 2, "vesta.dtype", b.slot[2]);
      dtype = d;
    }
    if (b.slot[5] && b.slot[5] != Py_None && !as_device(b.slot[5])) wrong_type(t, 5, "vesta.device", b.slot[5]);
    const bool shifted = flags[0] != b.slot[2];
    auto flag = [&](int i, PyObject* o) { return o && to_bool(t, i, o); };
    bool copy = flag(4, b.slot[4]) || (shifted && flag(4, flags[1]));
    const Format f = format_of(t, 6, b.slot[6]);
    bool non_blocking = shifted ? flags[0] == Py_True : flag(3, b.slot[3]);
    return wrap(laid_out(convert(unwrap(b.slot[0]), dtype, device, copy, non_blocking), f, "to"));
  }
};

#define VESTA_CAST(Struct, name_, to_)                                                                        \
  struct Struct {                                                                                             \
    static constexpr char name[] = name_, params[] = "(Kw<object> memory_format = {})",                       \
                          doc[] = "The values as " #to_ "; the tensor itself where it is of that dtype.";     \
    static PyObject* run(const Table& t, Bound& b) {                                                          \
      const Format f = format_of(t, 1, b.slot[1]);                                                            \
      return wrap(laid_out(convert(unwrap(b.slot[0]), DType::to_, {}, false), f, name));                      \
    }                                                                                                         \
  };
VESTA_CAST(Float, "float", float32)
VESTA_CAST(Double, "double", float64)
VESTA_CAST(Half_, "half", float16)
VESTA_CAST(BFloat, "bfloat16", bfloat16)
VESTA_CAST(Long, "long", int64)
VESTA_CAST(Int, "int", int32)
VESTA_CAST(Short, "short", int16)
VESTA_CAST(Char, "char", int8)
VESTA_CAST(Byte, "byte", uint8)
VESTA_CAST(Bool, "bool", bool_)
VESTA_CAST(CFloat, "cfloat", complex64)
VESTA_CAST(CDouble, "cdouble", complex128)
#undef VESTA_CAST

struct Cpu {
  static constexpr char name[] = "cpu", params[] = "(Kw<object> memory_format = {})",
                        doc[] = "The tensor in host memory; itself where it is there.";
  static PyObject* run(const Table& t, Bound& b) {
    const Format f = format_of(t, 1, b.slot[1]);
    return wrap(laid_out(convert(unwrap(b.slot[0]), {}, Device(), false), f, name));
  }
};
struct Cuda {
  static constexpr char name[] = "cuda",
                        params[] = "(object device = {}, bool non_blocking = false, Kw<object> memory_format = {})",
                        doc[] = "The tensor on a CUDA device, the current one unless `device` says; itself if there.";
  static PyObject* run(const Table& t, Bound& b) {
    Device d(DeviceType::cuda, -1);
    if (b.slot[1] && b.slot[1] != Py_None && !to_device(b.slot[1], d)) wrong_type(t, 1, "vesta.device", b.slot[1]);
    const Format f = format_of(t, 3, b.slot[3]);
    return wrap(laid_out(convert(unwrap(b.slot[0]), {}, d, false, Arg<bool>(t, 2, b).get()), f, name));
  }
};
struct TypeAs {
  static constexpr char name[] = "type_as", params[] = "(const Tensor& other)", doc[] = "The values in other's dtype.";
  static PyObject* run(const Table& t, Bound& b) {
    return wrap(convert(unwrap(b.slot[0]), Arg<Tensor>(t, 1, b).get().dtype(), {}, false));
  }
};

struct PinMemory {
  static constexpr char name[] = "pin_memory", params[] = "(object device = {})",
                        doc[] =
                            "A copy in page-locked memory, for copies to a GPU that do not make the host wait; "
                            "itself where it lies there.";
  static PyObject* run(const Table&, Bound& b) {
    Tensor r = [&] {
      WithoutGil open(true);
      return pin_memory(unwrap(b.slot[0]));
    }();
    return wrap(std::move(r));
  }
};
struct IsPinned {
  static constexpr char name[] = "is_pinned", params[] = "(object device = {})",
                        doc[] = "Whether it lies in page-locked memory.";
  static PyObject* run(const Table&, Bound& b) { return PyBool_FromLong(is_pinned(unwrap(b.slot[0]))); }
};
struct RecordStream {
  static constexpr char name[] = "_record_stream", params[] = "(int64_t stream)",
                        doc[] = "Notes that work on the stream of this number uses the tensor.";
  static PyObject* run(const Table& t, Bound& b) {
    record_stream(unwrap(b.slot[0]), uint32_t(Arg<int64_t>(t, 1, b).get()));
    Py_RETURN_NONE;
  }
};

struct NewTensor {
  static constexpr char name[] = "new_tensor",
                        params[] =
                            "(object data, Kw<MaybeDType> dtype = {}, Kw<MaybeDevice> device = {}, "
                            "Kw<bool> requires_grad = false)",
                        doc[] = "A tensor of a copy of data, with the tensor's dtype and device.";
  static PyObject* run(const Table& t, Bound& b) {
    const Tensor& like = unwrap(b.slot[0]);
    Arg<MaybeDType> dtype(t, 2, b);
    Arg<MaybeDevice> device(t, 3, b);
    bool wants = Arg<bool>(t, 4, b).get();
    Tensor r =
        make_tensor(b.slot[1], dtype.get().value_or(like.dtype()), device.get().value_or(like.device()), "new_tensor");
    if (wants) r.set_requires_grad(true);
    return wrap(std::move(r));
  }
};

}  // namespace

bool add_conversions(PyObject*) {
  return add_methods<To, Float, Double, Half_, BFloat, Long, Int, Short, Char, Byte, Bool, CFloat, CDouble, Cpu, Cuda,
                     TypeAs, PinMemory, IsPinned, RecordStream, NewTensor>();
}

}  // namespace vesta::python
