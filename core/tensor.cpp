#include <vesta/core/tensor.h>

#include <cstring>

#include <vesta/core/autograd_port.h>
#include <vesta/core/backend.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/sparse.h>

namespace vesta {

AutogradPort autograd_port;
const Tensor kNoTensor;

Tensor empty_tensor(IntSpan sizes, DType dtype, Device device) {
  int64_t n = numel_of(sizes, "empty");
  checked_mul(n, itemsize(dtype), "empty");
  if (device.index() < 0) [[unlikely]]
    device = resolved(device);
  return Tensor(TensorImpl::make_contiguous(sizes, n, dtype, device));
}

Tensor empty_tensor_strided(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  int64_t bytes = checked_mul(numel_of(sizes, "empty_strided"), itemsize(dtype), "empty_strided");
  return Tensor(
      TensorImpl::make(Storage::allocate(size_t(bytes), resolved(device)), sizes, strides, 0, dtype, "empty_strided"));
}

Tensor wrapped(Scalar value) {
  auto make = [&]<class T>(T v) {
    Tensor t(TensorImpl::make_contiguous({}, 1, dtype_of<T>, {}));
    std::memcpy(t.impl()->data(), &v, sizeof v);
    t.impl()->wrapped_number = true;
    return t;
  };
  switch (value.dtype()) {
    case DType::bool_: return make(value.integer() != 0);
    case DType::int64: return make(value.integer());
    case DType::complex128: return make(complex128(value.real(), value.imag()));
    default: return make(value.real());
  }
}

Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset, const char* op) {
  return alias(t, sizes, strides, offset, t.dtype(), op);
}

Tensor alias(const Tensor& t, IntSpan sizes, IntSpan strides, int64_t offset, DType dtype, const char* op) {
  check_dense(t, op);
  Tensor r(TensorImpl::make(t.impl()->storage(), sizes, strides, offset, dtype, op));
  const TensorImpl& source = *t.impl();
  TensorImpl& view = *r.impl();
  view.inference = source.inference;
  view.versions = source.versions;
  if (is_differentiable(t.dtype()) && !source.inference) {  // Note [Views and in-place] in autograd/views.cpp
    view.base = source.base ? source.base : t.ptr();
    view.view_without_grad = source.view_without_grad || !layer_state.grad_enabled;
    view.layers = bit(Layer::autograd);  // its base may come to require grad, and then so does it
  } else if (source.inference) {
    view.layers = bit(Layer::autograd);
  }
  return r;
}

namespace {

/// Raises for an undefined tensor, which a program may hold.
void check_defined(const Tensor& t, const char* op) {
  VESTA_CHECK(t.defined(), value, op, ": expected a defined tensor, got an undefined one.");
}

}  // namespace

Scalar Tensor::item() const {
  check_defined(*this, "item");
  check_dense(*this, "item");
  VESTA_CHECK(numel() == 1, runtime, "item: a Tensor with ", numel(), " elements cannot be converted to Scalar.");
  VESTA_CHECK(device().type() != DeviceType::meta, runtime,
              "item: Tensor.item() cannot be called on meta tensors: they have no values.");
  Tensor host = device().type() == DeviceType::cpu ? *this : to(Device());
  return visit(dtype(), [&]<class T>() -> Scalar {
    T v;
    std::memcpy(&v, host.impl()->data(), sizeof v);
    if constexpr (std::is_same_v<T, complex64>) return Scalar(complex128(v));
    else if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) return Scalar(float(v));
    else return Scalar(v);
  });
}

bool Tensor::requires_grad() const { return defined() && autograd_port.requires_grad(*this); }
const Tensor& Tensor::set_requires_grad(bool on) const {
  check_defined(*this, "requires_grad");
  autograd_port.set_requires_grad(*this, on);
  return *this;
}
bool Tensor::is_leaf() const { return !defined() || autograd_port.is_leaf(*this); }
Tensor Tensor::grad() const { return defined() ? autograd_port.grad(*this) : Tensor(); }
void Tensor::set_grad(const Tensor& g) const {
  check_defined(*this, "grad");
  autograd_port.set_grad(*this, g);
}
void Tensor::backward(const Tensor& gradient, bool retain_graph, bool create_graph) const {
  check_defined(*this, "backward");
  autograd_port.backward(*this, gradient, retain_graph, create_graph);
}

Tensor Tensor::detach() const {  // an alias() but for the base
  check_defined(*this, "detach");
  Tensor r(is_sparse() ? TensorImpl::make_sparse(impl_->sparse_parts, impl_->storage(), sizes(), dtype(), "detach")
                       : TensorImpl::make(impl_->storage(), sizes(), strides(), storage_offset(), dtype(), "detach"));
  r.impl()->inference = impl_->inference;
  r.impl()->versions = impl_->versions;
  return r;
}

Tensor Tensor::variable_data() const {
  Tensor r = detach();
  r.impl()->versions = intrusive_ptr<VersionCounter>(new VersionCounter);
  return r;
}

Tensor Tensor::to(DType d) const {
  check_defined(*this, "to");
  return d == dtype() ? *this : _to_copy(*this, d);
}
Tensor Tensor::to(Device d) const {
  check_defined(*this, "to");
  return resolved(d) == device() ? *this : _to_copy(*this, std::nullopt, d);
}

}  // namespace vesta
