// Tensor: the handle everybody holds. Methods of ops come from the roll call (core/ops/list.h).
#pragma once
#include <iosfwd>
#include <string>
#include <tuple>

#include <vesta/core/arguments.h>
#include <vesta/core/ops/list.h>
#include <vesta/core/scalar.h>
#include <vesta/core/tensor_impl.h>

namespace vesta {

class Generator;
struct Index;  // one subscript: see core/index.h
using MaybeDType = std::optional<DType>;
using MaybeInt = std::optional<int64_t>;
using MaybeScalar = std::optional<Scalar>;
using MaybeDevice = std::optional<Device>;
using MaybeText = std::optional<std::string_view>;
using TensorPair = std::tuple<Tensor, Tensor>;
using TensorTriple = std::tuple<Tensor, Tensor, Tensor>;
using TensorVector = std::vector<Tensor>;
using MaybeTensor = Tensor;  // may be undefined: Python's None
using Text = std::string_view;

/// Makes a 0-d tensor of a Python-like number; it takes part in promotion weakly.
VESTA_API Tensor wrapped(Scalar value);

namespace ops {
// A tag per op, and the calls that the methods below are written with; defined in <vesta/core/ops/ops.h>.
namespace tag {
#define VESTA_X_POINTWISE(name, ...) struct name;
#define VESTA_X_STRUCTURED(R, name, params, args) struct name;
VESTA_POINTWISE(VESTA_X_POINTWISE, VESTA_X_POINTWISE, VESTA_X_POINTWISE)
VESTA_STRUCTURED(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
VESTA_COMPOSITE(VESTA_X_STRUCTURED, VESTA_X_STRUCTURED)
#undef VESTA_X_POINTWISE
#undef VESTA_X_STRUCTURED
}  // namespace tag
template <class Tag, class R, class... A>
R call(const A&... a);
template <class Tag, class... A>
void call_inplace(const A&... a);
}  // namespace ops

/// Is a reference-counted handle to a tensor; a default-constructed one is undefined (Python's None).
class VESTA_API Tensor {
 public:
  Tensor() = default;
  explicit Tensor(intrusive_ptr<TensorImpl> impl) noexcept : impl_(std::move(impl)) {}

  bool defined() const { return bool(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const intrusive_ptr<TensorImpl>& ptr() const { return impl_; }
  intrusive_ptr<TensorImpl> take() && { return std::move(impl_); }
  bool is_same(const Tensor& o) const { return impl_ == o.impl_; }

  IntSpan sizes() const { return impl_->sizes(); }
  IntSpan strides() const { return impl_->strides(); }
  int64_t size(int64_t dim) const { return sizes()[size_t(existing_dim(dim, this->dim(), "size"))]; }
  int64_t stride(int64_t dim) const { return strides()[size_t(existing_dim(dim, this->dim(), "stride"))]; }
  int64_t dim() const { return impl_->ndim(); }
  int64_t numel() const { return impl_->numel(); }
  int64_t storage_offset() const { return impl_->offset(); }
  DType dtype() const { return impl_->dtype(); }
  Device device() const { return impl_->device(); }
  int64_t element_size() const { return itemsize(dtype()); }
  bool is_contiguous() const { return impl_->contiguous(); }
  bool is_floating_point() const { return is_float(dtype()); }
  bool is_complex() const { return vesta::is_complex(dtype()); }
  /// Counts the writes through this tensor or any alias of it.
  uint32_t version() const { return impl_->storage()->version(); }
  /// Returns the address of the first element; the type must match.
  template <class T>
  T* data_ptr() const {
    VESTA_CHECK(dtype_of<T> == dtype(), type, "data_ptr: expected ", dtype(), ", got ", dtype_of<T>, ".");
    return reinterpret_cast<T*>(impl_->data());
  }
  void* data_ptr() const { return impl_->data(); }
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

  // Subscripts, <vesta/core/index.h>: x[{1, Slice(0, 4), mask}] is written x.index({1, Slice(0, 4), mask}).
  Tensor index(std::initializer_list<Index> at) const;
  Tensor operator[](int64_t i) const;
  void index_put_(std::initializer_list<Index> at, const Tensor& value) const;

  Tensor to(DType dtype) const;
  Tensor to(Device device) const;

  // Methods of the roll call: `x.exp()`, `x.exp_()`, `x.sum({0, 1})`. In-place methods return the tensor itself.
  // Their bodies find the op in <vesta/core/ops/ops.h>, which a file that calls them includes.
#define VESTA_X_UNARY(name, Struct, params, args)                                                             \
  Tensor name params const { return ops::call<ops::tag::name, Tensor>(*this VESTA_COMMA args); }              \
  const Tensor& name##_ params const {                                                                        \
    ops::call_inplace<ops::tag::name>(*this VESTA_COMMA args);                                                \
    return *this;                                                                                             \
  }
#define VESTA_X_BINARY(name, Struct, params, args)                                                            \
  VESTA_X_UNARY(name, Struct, (const Tensor& other VESTA_COMMA params), (other VESTA_COMMA args))             \
  VESTA_X_UNARY(name, Struct, (Scalar other VESTA_COMMA params), (wrapped(other) VESTA_COMMA args))
#define VESTA_X_TERNARY(name, Struct, first, second, third)
#define VESTA_X_METHOD(R, name, params, args) \
  R name params const { return ops::call<ops::tag::name, R>(*this VESTA_COMMA args); }
#define VESTA_X_FUNCTION(R, name, params, args)
  VESTA_POINTWISE(VESTA_X_UNARY, VESTA_X_BINARY, VESTA_X_TERNARY)
  VESTA_STRUCTURED(VESTA_X_METHOD, VESTA_X_FUNCTION)
  VESTA_COMPOSITE(VESTA_X_METHOD, VESTA_X_FUNCTION)
#undef VESTA_X_UNARY
#undef VESTA_X_BINARY
#undef VESTA_X_TERNARY
#undef VESTA_X_METHOD
#undef VESTA_X_FUNCTION

 private:
  intrusive_ptr<TensorImpl> impl_;
};
}  // namespace vesta

namespace vesta {
inline TensorList::TensorList(const std::vector<Tensor>& v) : Span(v) {}
inline TensorList::TensorList(std::initializer_list<Tensor> l) : Span(l.begin(), l.size()) {}

/// Makes an uninitialised contiguous tensor.
VESTA_API Tensor empty_tensor(IntSpan sizes, DType dtype, Device device = {});
/// Makes an uninitialised tensor with the given strides, which must be non-overlapping and dense.
VESTA_API Tensor empty_tensor_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
/// Makes an alias of `t`'s memory with its own geometry, without history: what every view op returns.
VESTA_API Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset, const char* op);

// Operators are the ops of the same meaning; a number on either side is wrapped().
#define VESTA_OPERATOR(sign, op)                                                                         \
  inline Tensor operator sign(const Tensor& a, const Tensor& b) { return a.op(b); }                      \
  inline Tensor operator sign(const Tensor& a, Scalar b) { return a.op(b); }                             \
  inline Tensor operator sign(Scalar a, const Tensor& b) { return wrapped(a).op(b); }
VESTA_OPERATOR(+, add)
VESTA_OPERATOR(-, sub)
VESTA_OPERATOR(*, mul)
VESTA_OPERATOR(/, true_divide)
VESTA_OPERATOR(==, eq)
VESTA_OPERATOR(!=, ne)
VESTA_OPERATOR(<, lt)
VESTA_OPERATOR(<=, le)
VESTA_OPERATOR(>, gt)
VESTA_OPERATOR(>=, ge)
#undef VESTA_OPERATOR
inline Tensor operator-(const Tensor& a) { return a.neg(); }

/// Prints as Python's repr does.
VESTA_API std::string repr(const Tensor& t);
VESTA_API std::ostream& operator<<(std::ostream& to, const Tensor& t);

}  // namespace vesta
