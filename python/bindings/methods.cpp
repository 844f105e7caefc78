// Methods and properties of Tensor that are no ops: what it is, where it lies, its value as Python numbers.
#include <cstring>

#include <vesta/core/autograd_port.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/examples.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/print.h>
#include <vesta/core/sparse.h>

#include "dtype_device.h"
#include "factories.h"
#include "hand.h"
#include "memory_format.h"
#include "properties.h"
#include "torch_function.h"

namespace vesta::python {
namespace {

const Tensor& self_of(Bound& b) { return unwrap(b.slot[0]); }

#define VESTA_METHOD(Struct, name_, params_, doc_)                                    \
  struct Struct {                                                                     \
    static constexpr char name[] = name_, params[] = params_, doc[] = doc_;           \
    static PyObject* run(const Table& t, Bound& b);                                   \
  };                                                                                  \
  PyObject* Struct::run([[maybe_unused]] const Table& t, Bound& b)

VESTA_METHOD(Size, "size", "(MaybeInt dim = {})", "The sizes, or the size of one dimension.") {
  Arg<MaybeInt> dim(t, 1, b);
  if (dim.get()) return PyLong_FromLongLong(self_of(b).size(*dim.get()));
  return wrap_sizes(self_of(b).sizes());
}
VESTA_METHOD(Stride, "stride", "(MaybeInt dim = {})", "The strides in elements, or that of one dimension.") {
  check_dense(self_of(b), "stride");
  Arg<MaybeInt> dim(t, 1, b);
  if (dim.get()) return PyLong_FromLongLong(self_of(b).stride(*dim.get()));
  Ref tuple(PyTuple_New(Py_ssize_t(self_of(b).dim())));
  for (size_t i = 0; tuple && i < size_t(self_of(b).dim()); ++i) {
    PyTuple_SET_ITEM(tuple.get(), Py_ssize_t(i), checked(PyLong_FromLongLong(self_of(b).strides()[i])));
  }
  return tuple.release();
}
VESTA_METHOD(Dim, "dim", "()", "The number of dimensions.") { return PyLong_FromLongLong(self_of(b).dim()); }
VESTA_METHOD(NDimension, "ndimension", "()", "The number of dimensions.") {
  return PyLong_FromLongLong(self_of(b).dim());
}
VESTA_METHOD(Numel, "numel", "()", "The number of elements.") { return PyLong_FromLongLong(self_of(b).numel()); }
VESTA_METHOD(Nelement, "nelement", "()", "The number of elements.") { return PyLong_FromLongLong(self_of(b).numel()); }
VESTA_METHOD(ElementSize, "element_size", "()", "Bytes of one element.") {
  return PyLong_FromLongLong(self_of(b).element_size());
}
VESTA_METHOD(SparseDim, "sparse_dim", "()", "The number of sparse dimensions; 0 for a dense tensor.") {
  return PyLong_FromLongLong(self_of(b).is_sparse() ? sparse_dims(sparse_parts(self_of(b), "sparse_dim")) : 0);
}
VESTA_METHOD(DenseDim, "dense_dim", "()", "The number of dense dimensions, those of one stored value.") {
  const Tensor& x = self_of(b);
  return PyLong_FromLongLong(x.dim() - (x.is_sparse() ? sparse_dims(sparse_parts(x, "dense_dim")) : 0));
}
VESTA_METHOD(Nnz, "_nnz", "()", "The number of stored elements of a sparse tensor.") {
  return PyLong_FromLongLong(nnz(sparse_parts(self_of(b), "_nnz")));
}
VESTA_METHOD(IsCoalesced, "is_coalesced", "()", "Whether every place of a sparse tensor occurs once, in order.") {
  const SparseParts& p = sparse_parts(self_of(b), "is_coalesced");
  VESTA_CHECK(p.layout == SparseLayout::coo, runtime, "is_coalesced: expected sparse coordinate tensor layout.");
  return PyBool_FromLong(p.coalesced);
}
VESTA_METHOD(SetCoalesced, "_coalesced_", "(bool coalesced)",
             "Declares whether every place of a sparse tensor occurs once, in order; returns the tensor.") {
  sparse_parts(self_of(b), "_coalesced_");
  self_of(b).impl()->sparse_parts->coalesced = Arg<bool>(t, 1, b).get();
  return new_ref(b.slot[0]);
}
VESTA_METHOD(DataPtr, "data_ptr", "()", "The address of the first element; 0 without memory.") {
  check_dense(self_of(b), "data_ptr");
  const bool memory = self_of(b).numel() && self_of(b).device().type() != DeviceType::meta;
  return PyLong_FromVoidPtr(memory ? self_of(b).data_ptr() : nullptr);
}
VESTA_METHOD(StorageOffset, "storage_offset", "()", "Where the first element lies in the memory, in elements.") {
  return PyLong_FromLongLong(self_of(b).storage_offset() - shift_of_example(self_of(b)));
}
VESTA_METHOD(IsContiguous, "is_contiguous", "(Kw<object> memory_format = contiguous_format)",
             "Whether the elements lie row by row.") {
  PyObject* format = b.slot[1];
  Format f = format ? to_format(format) : Format::contiguous;
  if (f == Format::none) wrong_type(t, 1, "vesta.memory_format", format);
  return PyBool_FromLong(lies_in(self_of(b), f));
}
VESTA_METHOD(IsFloatingPoint, "is_floating_point", "()", "Whether the dtype is a real floating-point one.") {
  return PyBool_FromLong(self_of(b).is_floating_point());
}
VESTA_METHOD(IsComplex, "is_complex", "()", "Whether the dtype is complex.") {
  return PyBool_FromLong(self_of(b).is_complex());
}
VESTA_METHOD(IsSigned, "is_signed", "()", "Whether the dtype has negative values.") {
  DType d = self_of(b).dtype();
  return PyBool_FromLong(d != DType::uint8 && d != DType::bool_);
}
VESTA_METHOD(IsInference, "is_inference", "()", "Whether it was made in inference mode.") {
  return PyBool_FromLong(self_of(b).impl()->inference);
}
VESTA_METHOD(GetDevice, "get_device", "()", "The number of the CUDA device, -1 for the others.") {
  Device d = self_of(b).device();
  return PyLong_FromLong(d.type() == DeviceType::cpu || d.type() == DeviceType::meta ? -1 : d.index());
}
VESTA_METHOD(IsSetTo, "is_set_to", "(const Tensor& tensor)", "Whether both have the same memory and geometry.") {
  Arg<Tensor> other(t, 1, b);
  const TensorImpl &x = *self_of(b).impl(), &y = *other.get().impl();
  return PyBool_FromLong(x.storage() == y.storage() && x.offset() == y.offset() &&
                         std::ranges::equal(x.sizes(), y.sizes()) && std::ranges::equal(x.strides(), y.strides()));
}
VESTA_METHOD(IsSameSize, "is_same_size", "(const Tensor& other)", "Whether both have the same sizes.") {
  Arg<Tensor> other(t, 1, b);
  return PyBool_FromLong(std::ranges::equal(self_of(b).sizes(), other.get().sizes()));
}
VESTA_METHOD(Item, "item", "()", "The only element as a Python number. RuntimeError where there is not exactly one.") {
  return number_object(self_of(b));
}

/// Makes nested lists of the elements from dimension `dim` on.
template <class T>
PyObject* rows_of(const Tensor& t, int64_t dim, const T* at) {
  if (dim == t.dim()) {
    if constexpr (std::is_same_v<T, bool>) return PyBool_FromLong(*at);
    else if constexpr (std::is_integral_v<T>) return PyLong_FromLongLong(*at);
    else if constexpr (std::is_same_v<T, complex64> || std::is_same_v<T, complex128>)
      return PyComplex_FromDoubles(at->real(), at->imag());
    else return PyFloat_FromDouble(double(static_cast<compute_t<T>>(*at)));
  }
  Ref list(PyList_New(Py_ssize_t(t.size(dim))));
  for (int64_t i = 0; list && i < t.size(dim); ++i) {
    PyObject* item = rows_of(t, dim + 1, at + i * t.stride(dim));
    if (!item) return nullptr;
    PyList_SET_ITEM(list.get(), Py_ssize_t(i), item);
  }
  return list.release();
}
VESTA_METHOD(ToList, "tolist", "()", "The elements as nested lists of Python numbers; a 0-d tensor gives its number.") {
  check_dense(self_of(b), "tolist");
  Tensor host = self_of(b).detach().to(Device());
  const char* const data = host.impl()->data();
  return visit(host.dtype(), [&]<class T>() { return rows_of(host, 0, reinterpret_cast<const T*>(data)); });
}

VESTA_METHOD(Detach, "detach", "()", "The same memory without history: a view that requires no grad.") {
  return wrap(self_of(b).detach());
}
/// Returns the name before the values of a printed tensor: "tensor", or that of a class, unless the class itself says
/// otherwise (_prints_as).
std::string printed_name(PyTypeObject* type) {
  if (type == tensor_type) return "tensor";
  PyObject* said = PyDict_GetItemString(type->tp_dict, "_prints_as");
  const char* name = said ? PyUnicode_AsUTF8(said) : std::strrchr(type->tp_name, '.');
  if (said && !name) throw_current();
  if (said) return name;
  return name ? name + 1 : type->tp_name;
}
VESTA_METHOD(Repr, "__repr__", "()", "As PyTorch prints.") {
  const Tensor& x = self_of(b);
  const std::string suffix = autograd_port.repr_suffix ? autograd_port.repr_suffix(x) : std::string();
  std::string s = repr(x, suffix, printed_name(Py_TYPE(b.slot[0])) + "(");
  return PyUnicode_FromStringAndSize(s.data(), Py_ssize_t(s.size()));
}
VESTA_METHOD(AsSubclass, "as_subclass", "(object cls)", "The same tensor as an object of class cls.") {
  auto* type = reinterpret_cast<PyTypeObject*>(b.slot[1]);
  if (!PyType_Check(b.slot[1]) || !PyType_IsSubtype(type, tensor_type))
    wrong_type(t, 1, "a subclass of Tensor", b.slot[1]);
  return wrap_as(type, ops::view(self_of(b), self_of(b).sizes()));
}

// ---- properties ----

PyObject* shape(const Tensor& t) { return wrap_sizes(t.sizes()); }
PyObject* dtype(const Tensor& t) { return wrap_dtype(t.dtype()); }
PyObject* device(const Tensor& t) { return wrap_device(t.device()); }
PyObject* ndim(const Tensor& t) { return PyLong_FromLongLong(t.dim()); }
PyObject* item_size(const Tensor& t) { return PyLong_FromLongLong(t.element_size()); }
PyObject* nbytes(const Tensor& t) { return PyLong_FromLongLong(checked_mul(t.numel(), t.element_size(), "nbytes")); }
PyObject* version(const Tensor& t) {
  VESTA_CHECK(!t.impl()->inference, runtime, "_version: Inference tensors do not track version counter.");
  return PyLong_FromUnsignedLong(t.version());
}
PyObject* is_cuda(const Tensor& t) { return PyBool_FromLong(t.device().type() == DeviceType::cuda); }
PyObject* is_cpu(const Tensor& t) { return PyBool_FromLong(t.device().type() == DeviceType::cpu); }
PyObject* is_meta(const Tensor& t) { return PyBool_FromLong(t.device().type() == DeviceType::meta); }
PyObject* layout(const Tensor& t) { return layout_object(layout_number(t)); }
PyObject* is_sparse(const Tensor& t) { return PyBool_FromLong(layout_number(t) == 1); }
PyObject* is_sparse_csr(const Tensor& t) { return PyBool_FromLong(layout_number(t) == 2); }
PyObject* no(const Tensor&) { Py_RETURN_FALSE; }

/// Reverses all dimensions.
PyObject* reversed(const Tensor& t) {
  Dims dims;
  for (int64_t i = t.dim(); i-- > 0;) dims.push_back(i);
  return wrap(permute(t, dims));
}
PyObject* matrix_transposed(const Tensor& t) { return wrap(mT(t)); }
PyObject* adjoint(const Tensor& t) {
  VESTA_CHECK(t.dim() == 2 || t.dim() == 0, runtime, "H: expected a matrix (2-D tensor), got ", t.dim(),
              " dimensions. Use mH.");
  return wrap(conj(t.dim() == 0 ? t : mT(t)));
}
PyObject* batch_adjoint(const Tensor& t) { return wrap(conj(mT(t))); }

PyGetSetDef properties[] = {
    {"shape", property<shape>, nullptr, "The sizes, one per dimension.", nullptr},
    {"dtype", property<dtype>, nullptr, "The type of the elements.", nullptr},
    {"device", property<device>, nullptr, "Where the memory is.", nullptr},
    {"layout", property<layout>, nullptr, "vesta.strided, sparse_coo, sparse_csr or sparse_csc.", nullptr},
    {"ndim", property<ndim>, nullptr, "The number of dimensions.", nullptr},
    {"itemsize", property<item_size>, nullptr, "Bytes of one element.", nullptr},
    {"nbytes", property<nbytes>, nullptr, "Bytes of all elements.", nullptr},
    {"_version", property<version>, nullptr, "Counts the writes through this tensor or any alias of it.", nullptr},
    {"is_cuda", property<is_cuda>, nullptr, "Whether it is on a CUDA device.", nullptr},
    {"is_cpu", property<is_cpu>, nullptr, "Whether it is on the CPU.", nullptr},
    {"is_sparse", property<is_sparse>, nullptr, "Whether the layout is vesta.sparse_coo.", nullptr},
    {"is_sparse_csr", property<is_sparse_csr>, nullptr, "Whether the layout is vesta.sparse_csr.", nullptr},
    {"is_quantized", property<no>, nullptr, "Always False.", nullptr},
    {"is_meta", property<is_meta>, nullptr, "Whether it has a shape and no memory (device \"meta\").", nullptr},
    {"T", property<reversed>, nullptr, "All dimensions reversed.", nullptr},
    {"mT", property<matrix_transposed>, nullptr, "The last two dimensions swapped.", nullptr},
    {"H", property<adjoint>, nullptr, "The conjugate transpose of a matrix.", nullptr},
    {"mH", property<batch_adjoint>, nullptr, "The conjugate transpose over the last two dimensions.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

}  // namespace

PyObject* number_object(const Tensor& t) {
  Scalar s = item_of(t);
  if (s.dtype() == DType::bool_) return PyBool_FromLong(s.integer() != 0);
  if (s.is_integral()) return PyLong_FromLongLong(s.integer());
  if (s.is_complex()) return PyComplex_FromDoubles(s.real(), s.imag());
  return PyFloat_FromDouble(s.real());
}

bool add_methods_by_hand(PyObject*) {
  return add_properties(properties) &&
         add_methods<Size, Stride, Dim, NDimension, Numel, Nelement, ElementSize, SparseDim, DenseDim, Nnz, IsCoalesced,
                     SetCoalesced, DataPtr, StorageOffset, IsContiguous, IsFloatingPoint, IsComplex, IsSigned,
                     IsInference, GetDevice, IsSetTo, IsSameSize, Item, ToList, Detach, Repr, AsSubclass>();
}

}  // namespace vesta::python
