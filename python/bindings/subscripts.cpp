// x[...] and x[...] = value: basic subscripts make a view, tensors among them gather or scatter.
#include <vesta/core/index.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

#include "arguments.h"
#include "factories.h"
#include "tensor_slots.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

/// Makes an index tensor of a list or an array; of a tensor, the tensor itself.
Tensor index_tensor(PyObject* o) {
  if (is_tensor(o)) return unwrap(o);
  if (PyList_Check(o) || PyTuple_Check(o) || PyObject_CheckBuffer(o)) {
    Tensor t = make_tensor(o, {}, {}, "index");
    if (!is_float(t.dtype())) return t;
    if (t.numel() == 0) return t.to(DType::int64);  // x[[]]
    return follows_torch() ? make_tensor(o, DType::int64, {}, "index") : t;
  }
  if (PyRange_Check(o)) {
    PyObject* list = PySequence_List(o);
    if (!list) throw_current();
    struct Drop {
      PyObject* object;
      ~Drop() { Py_DECREF(object); }
    } drop{list};
    return index_tensor(list);
  }
  PyErr_Format(
      PyExc_IndexError,
      "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got %s)",
      Py_TYPE(o)->tp_name);
  throw_current();
}

int64_t integer_index(PyObject* o) {
  Py_ssize_t i = PyNumber_AsSsize_t(o, PyExc_IndexError);
  if (i == -1 && PyErr_Occurred()) throw_current();
  return int64_t(i);
}

Slice slice_index(PyObject* o) {
  auto* s = reinterpret_cast<PySliceObject*>(o);
  Py_ssize_t start, stop, step;
  if (PySlice_Unpack(o, &start, &stop, &step) < 0) throw_current();
  VESTA_CHECK(step > 0, value, "index: step must be greater than zero, got ", int64_t(step), ". Use flip().");
  auto bound = [](PyObject* given, Py_ssize_t v) { return given == Py_None ? MaybeInt() : MaybeInt(int64_t(v)); };
  return Slice(bound(s->start, start), bound(s->stop, stop), int64_t(step));
}

Index index_of(PyObject* o) {
  if (PyBool_Check(o)) return Index(o == Py_True);
  if (PyLong_Check(o)) return Index(integer_index(o));
  if (PySlice_Check(o)) return Index(slice_index(o));
  if (o == Py_Ellipsis) return Index(ellipsis);
  if (o == Py_None) return Index(newaxis);
  if (is_pytorchs_tensor(o)) type_error("index: expected a vesta.Tensor, got a %s", kConvertPyTorchs);
  if (!is_tensor(o) && PyIndex_Check(o) && !PySequence_Check(o)) return Index(integer_index(o));
  return Index(index_tensor(o));
}

/// Returns whether a subscript is one index per dimension: a tuple, or a list that holds more than numbers, as in
/// PyTorch. `x[[rows, columns]]` is `x[rows, columns]`, `x[[0, 2]]` is not.
bool is_several(PyObject* key) {
  if (PyTuple_Check(key)) return true;
  if (!PyList_Check(key) || PyList_GET_SIZE(key) >= 32) return false;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(key); ++i) {
    PyObject* o = PyList_GET_ITEM(key, i);
    if (is_tensor(o) || PySequence_Check(o) || PySlice_Check(o) || o == Py_Ellipsis || o == Py_None) return true;
  }
  return false;
}

std::vector<Index> indices_of(PyObject* key) {
  std::vector<Index> list;
  if (!is_several(key)) {
    list.push_back(index_of(key));
    return list;
  }
  const Py_ssize_t n = PySequence_Fast_GET_SIZE(key);
  list.reserve(size_t(n));
  for (Py_ssize_t i = 0; i < n && i < PySequence_Fast_GET_SIZE(key); ++i) {  // a list may shrink while it is read
    list.push_back(index_of(Ref(new_ref(PySequence_Fast_GET_ITEM(key, i))).get()));
  }
  return list;
}

PyObject* overridden(const char* method, PyObject* self, PyObject* key, PyObject* value) {
  Ref func(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_type), method));
  Ref args(value ? PyTuple_Pack(3, self, key, value) : key ? PyTuple_Pack(2, self, key) : PyTuple_Pack(1, self));
  return func && args ? call_override(func.get(), args.get(), nullptr) : nullptr;
}

PyObject* get(PyObject* self, PyObject* key) {
  return guarded([&]() -> PyObject* {
    if (torch_function_seen && (overrides_in(self) || overrides_in(key))) {
      return overridden("__getitem__", self, key, nullptr);
    }
    const Tensor& t = unwrap(self);
    if (PyLong_CheckExact(key)) {
      VESTA_CHECK(t.dim() > 0, index,
                  "invalid index of a 0-dim tensor. Use `tensor.item()` in Python to convert it to a number.");
      return wrap(ops::select(t, 0, integer_index(key)));
    }
    if (PySlice_Check(key) && t.dim() > 0) {
      Slice s = slice_index(key);
      return wrap(ops::slice(t, 0, s.start, s.stop, s.step));
    }
    return wrap(get_index(t, indices_of(key)));
  });
}

Tensor value_of(const Tensor& self, PyObject* o) {
  Scalar number;
  if (is_tensor(o)) return unwrap(o);
  if (number_of(o, number)) return wrapped(number);
  if (is_pytorchs_tensor(o)) type_error("__setitem__: expected a vesta.Tensor or a number, got a %s", kConvertPyTorchs);
  type_error("can't assign a %s to a %s tensor. Make a tensor of it.", Py_TYPE(o)->tp_name,
             std::string(name(self.dtype())).c_str());
}

int set(PyObject* self, PyObject* key, PyObject* value) {
  return guarded(
      [&] {
        if (!value) type_error("Tensor does not support deleting items");
        if (torch_function_seen && (overrides_in(self) || overrides_in(key) || overrides_in(value))) {
          Ref r(overridden("__setitem__", self, key, value));
          return r ? 0 : -1;
        }
        const Tensor& t = unwrap(self);
        set_index(t, indices_of(key), value_of(t, value));
        return 0;
      },
      -1, "__setitem__");
}

Py_ssize_t length(PyObject* self) {
  return guarded(
      [&] {
        if (torch_function_seen && overrides_in(self)) {
          Ref r(checked(overridden("__len__", self, nullptr, nullptr)));
          const Py_ssize_t n = PyNumber_AsSsize_t(r.get(), PyExc_OverflowError);
          if (n == -1 && PyErr_Occurred()) throw_current();
          VESTA_CHECK(n >= 0, value, "__len__() should return >= 0");
          return n;
        }
        const Tensor& t = unwrap(self);
        if (t.dim() == 0) type_error("len() of a 0-d tensor");
        return Py_ssize_t(t.sizes()[0]);
      },
      Py_ssize_t(-1));
}

PyObject* item_at(PyObject* self, Py_ssize_t i) {
  return guarded([&] {
    const Tensor& t = unwrap(self);
    VESTA_CHECK(t.dim() > 0 && i < t.size(0), index, "index ", int64_t(i), " is out of bounds for dimension 0");
    return wrap(ops::select(t, 0, int64_t(i)));
  });
}

PyObject* iterate(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = unwrap(self);
    if (t.dim() == 0) type_error("iteration over a 0-d tensor");
    TensorVector rows = unbind(t, 0);
    Ref list(PyTuple_New(Py_ssize_t(rows.size())));
    for (size_t i = 0; list && i < rows.size(); ++i) {
      PyTuple_SET_ITEM(list.get(), Py_ssize_t(i), checked(wrap(std::move(rows[i]))));
    }
    return list ? PyObject_GetIter(list.get()) : nullptr;
  });
}

int contains(PyObject* self, PyObject* value) {
  return guarded(
      [&] {
        if (torch_function_seen && (overrides_in(self) || overrides_in(value))) {
          Ref r(checked(overridden("__contains__", self, value, nullptr)));
          return PyObject_IsTrue(r.get());
        }
        Scalar number;
        if (!is_tensor(value) && !number_of(value, number)) {
          fail(Cause::runtime, "Tensor.__contains__ only supports Tensor or scalar, but you passed in a ",
               Py_TYPE(value)->tp_name, ".");
        }
        Tensor equal = eq(unwrap(self), is_tensor(value) ? unwrap(value) : wrapped(number));
        return int(any(equal).item<bool>());
      },
      -1);
}

}  // namespace

int add_subscript_slots(PyType_Slot* slots, int n) {
  auto add = [&](int id, auto f) { slots[n++] = {id, reinterpret_cast<void*>(f)}; };
  add(Py_mp_subscript, &get);
  add(Py_mp_ass_subscript, &set);
  add(Py_mp_length, &length);
  add(Py_sq_length, &length);
  add(Py_sq_item, &item_at);
  add(Py_sq_contains, &contains);
  add(Py_tp_iter, &iterate);
  return n;
}

}  // namespace vesta::python
