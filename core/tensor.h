// Tensor: the handle everybody holds. Methods of ops come from the op lists (core/ops/lists).
//
// Note [A tensor that knows no op]
// The library itself compiles with VESTA_TENSOR_WITHOUT_OPS: it sees the same class without the methods of ops, writes
// narrow(x, 0, a, n) for x.narrow(0, a, n) and includes core/ops/TOPIC.h, so that a new op rebuilds what uses its topic
// and what calls methods: tests and programs. The macro belongs to whole targets (CMakeLists.txt); layout and linkage
// do not depend on it, as std::string's do not on the language standard that decides which members it shows.
// Rejected: a base class without methods (PyTorch's TensorBase), which kernels, lists of tensors and results would have
// to be spelled with and converted from.
#pragma once
#include <iosfwd>
#include <string>
#include <tuple>
#include <variant>

#include <vesta/core/arguments.h>
#include <vesta/core/scalar.h>
#include <vesta/core/tensor_impl.h>

namespace vesta {

class Generator;
struct Index;  // one subscript: see core/index.h
using MaybeDType = std::optional<DType>;
using MaybeScalar = std::optional<Scalar>;
using MaybeDevice = std::optional<Device>;
using MaybeText = std::optional<std::string_view>;
using TensorPair = std::tuple<Tensor, Tensor>;
using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;
using TensorVector = std::vector<Tensor>;
using TensorOrTensors = std::variant<Tensor, TensorVector>;
using Text = std::string_view;
}  // namespace vesta

#ifndef VESTA_TENSOR_WITHOUT_OPS
#include <vesta/core/ops/methods.h>
#endif

namespace vesta {

/// Makes a 0-d tensor of a Python-like number; it takes part in promotion weakly.
VESTA_API Tensor wrapped(Scalar value);

/// A reference-counted handle to a tensor; a default-constructed one is undefined (Python's None).
class VESTA_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(intrusive_ptr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const intrusive_ptr<TensorImpl>& ptr() const { return impl_; }
  intrusive_ptr<TensorImpl> take() && { return std::move(impl_); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  IntList sizes() const { return VESTA_DEFINED(impl_)->sizes(); }
  IntList strides() const { return VESTA_DEFINED(impl_)->strides(); }
  int64_t size(int64_t dim) const { return sizes()[size_t(existing_dim(dim, this->dim(), "size"))]; }
  int64_t stride(int64_t dim) const { return strides()[size_t(existing_dim(dim, this->dim(), "stride"))]; }
  int64_t dim() const { return VESTA_DEFINED(impl_)->ndim(); }
  int64_t numel() const { return VESTA_DEFINED(impl_)->numel(); }
  int64_t storage_offset() const { return VESTA_DEFINED(impl_)->offset(); }
  DType dtype() const { return VESTA_DEFINED(impl_)->dtype(); }
  Device device() const { return VESTA_DEFINED(impl_)->device(); }
  int64_t element_size() const { return vesta::itemsize(dtype()); }
  bool is_contiguous() const { return VESTA_DEFINED(impl_)->contiguous(); }
  /// Returns whether it is a sparse tensor, which has indices and values (core/sparse.h) and no memory of its own.
  bool is_sparse() const { return VESTA_DEFINED(impl_)->is_sparse(); }
  bool is_floating_point() const { return is_float(dtype()); }
  bool is_complex() const { return vesta::is_complex(dtype()); }
  /// Counts the writes through this tensor or any alias of it.
  uint32_t version() const { return VESTA_DEFINED(impl_)->version(); }
  /// Returns the address of the first element; the type must match. What is written through it counts as no write of
  /// an op, so that nothing is kept of this memory's contents from now on (Storage::hand_out).
  template <class T>
  T* data_ptr() const {
    VESTA_CHECK(dtype_of<T> == dtype(), type, "data_ptr: expected ", dtype(), ", got ", dtype_of<T>, ".");
    return static_cast<T*>(data_ptr());
  }
  void* data_ptr() const {
    VESTA_DEFINED(impl_)->storage()->hand_out();
    return VESTA_DEFINED(impl_)->data();
  }
  /// Returns the only element as a number; raises unless numel() is 1. Waits for the device.
  Scalar item() const;
  template <class T>
  T item() const {
    return item().to<T>("item");
  }

  // Autograd, through the hooks port.
  bool requires_grad() const;
  /// Marks a leaf for recording (floating-point or complex only); returns the tensor.
  const Tensor& set_requires_grad(bool on = true) const;
  bool is_leaf() const;
  /// Returns the accumulated gradient, undefined where there is none.
  Tensor grad() const;
  void set_grad(const Tensor& grad) const;
  /// Adds d(this)/d(leaf) * gradient to every leaf's grad(); `gradient` may be undefined for one-element tensors.
  void backward(const Tensor& gradient = {}, bool retain_graph = false, bool create_graph = false) const;
  /// Returns an alias without history.
  Tensor detach() const;
  /// Returns an alias without history whose writes do not count for this tensor: a saved tensor that is written through
  /// it gives a wrong gradient, not an error.
  Tensor variable_data() const;

  // Subscripts, <vesta/core/index.h>: x[{1, Slice(0, 4), mask}] is written x.index({1, Slice(0, 4), mask}).
  Tensor index(std::initializer_list<Index> at) const;
  Tensor operator[](int64_t i) const;
  void index_put_(std::initializer_list<Index> at, const Tensor& value) const;

  Tensor to(DType dtype) const;
  Tensor to(Device device) const;

#ifndef VESTA_TENSOR_WITHOUT_OPS
  // A method per op: `x.exp()`, `x.exp_()`, `x.sum({0, 1})`. In-place methods return the tensor itself. They are
  // defined in core/ops/methods.cpp.
  VESTA_TENSOR_METHODS
#endif
#ifdef VESTA_TENSOR_MORE_METHODS
  VESTA_TENSOR_MORE_METHODS  // of a front end over this one, which declares them as a macro and defines them inline
#endif

 private:
  intrusive_ptr<TensorImpl> impl_;
};
}  // namespace vesta

namespace vesta {
inline TensorList::TensorList(const std::vector<Tensor>& v) : Span(v) {}
inline TensorList::TensorList(std::initializer_list<Tensor> l) : Span(l.begin(), l.size()) {}

/// The undefined tensor, for a parameter that is missing.
extern VESTA_API const Tensor kNoTensor;
inline bool MaybeTensor::defined() const { return tensor_ && tensor_->defined(); }
inline const Tensor& MaybeTensor::operator*() const { return tensor_ ? *tensor_ : kNoTensor; }

static_assert(sizeof(Tensor) == sizeof(void*), "Operand keeps one in its own bytes");
inline Operand::Operand(Scalar number) { tensor_ = new (own_) Tensor(wrapped(number)); }
inline Operand::~Operand() {
  if (static_cast<const void*>(tensor_) == own_) tensor_->~Tensor();
}

/// Makes an uninitialised contiguous tensor.
VESTA_API Tensor empty_tensor(IntSpan sizes, DType dtype, Device device = {});
/// Makes an uninitialised tensor with the given strides, which must be non-overlapping and dense.
VESTA_API Tensor empty_tensor_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
/// Makes an alias of `t`'s memory with its own geometry, without history: what every view op returns.
VESTA_API Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset, const char* op);
/// Makes such an alias with elements of another dtype; sizes, strides and offset count those.
VESTA_API Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype, const char* op);

/// Prints as Python's repr does.
VESTA_API std::string repr(const Tensor& t);
#ifndef VESTA_TENSOR_MORE_METHODS  // a front end that has them prints in its own form
VESTA_API std::ostream& operator<<(std::ostream& to, const Tensor& t);
#endif

}  // namespace vesta
