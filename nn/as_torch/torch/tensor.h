// torch::Tensor is vesta::Tensor with the methods of tensor_methods.h; TensorOptions, devices, element types and lists.
#pragma once
#if defined(VESTA_CHECK) && !defined(VESTA_TENSOR_MORE_METHODS)
#error "Include <torch/torch.h> before the headers of Vesta."
#endif
#include <torch/tensor_methods.h>

#include <array>
#include <complex>
#include <initializer_list>
#include <ostream>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <vesta/autograd/accumulate_grad.h>
#include <vesta/autograd/engine.h>
#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/grad_slot.h>
#include <vesta/autograd/hooks.h>
#include <vesta/autograd/views.h>
#include <vesta/core/index.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/from_data.h>
#include <vesta/core/ops/ops.h>

namespace c10 {

using Error = vesta::Error;
struct IndexError : Error {
  using Error::Error;
};
struct ValueError : Error {
  using Error::Error;
};
struct TypeError : Error {
  using Error::Error;
};
struct NotImplementedError : Error {
  using Error::Error;
};

}  // namespace c10

namespace torch {

using c10::Error;
using vesta::BFloat16;
using vesta::Device;
using vesta::Generator;
using vesta::Half;
using vesta::Scalar;
using vesta::Tensor;
using Dtype = vesta::DType;
using DeviceIndex = int8_t;
using OptionalTensorRef = vesta::MaybeTensor;
using IntArrayRef = vesta::IntList;
using OptionalIntArrayRef = vesta::MaybeDims;
using TensorList = vesta::TensorList;
using ITensorListRef = vesta::TensorList;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

/// A view of values that somebody else keeps.
template <class T>
class Values : public std::span<const T> {
 public:
  using std::span<const T>::span;
  Values(std::span<const T> s) : std::span<const T>(s) {}
  Values(const std::vector<T>& v) : std::span<const T>(v) {}
  Values(std::initializer_list<T> l) : std::span<const T>(l.begin(), l.size()) {}
  Values(const T& one) : std::span<const T>(&one, 1) {}
  std::vector<T> vec() const { return {this->begin(), this->end()}; }
  bool equals(Values other) const { return vec() == other.vec(); }
};
namespace detail {
template <class T>
struct ArrayRefOf {
  using type = Values<T>;
};
template <>
struct ArrayRefOf<int64_t> {
  using type = vesta::IntList;
};
template <>
struct ArrayRefOf<vesta::Tensor> {
  using type = vesta::TensorList;
};
}  // namespace detail
template <class T>
using ArrayRef = typename detail::ArrayRefOf<T>::type;

// ---- Devices -----------------------------------------------------------------------------------------------------
inline constexpr vesta::DeviceType kCPU = vesta::DeviceType::cpu;
inline constexpr vesta::DeviceType kCUDA = vesta::DeviceType::cuda;
inline constexpr vesta::DeviceType kMeta = vesta::DeviceType::meta;

/// A kind of device, with PyTorch's enumerators.
struct DeviceType {
  static constexpr vesta::DeviceType CPU = kCPU, CUDA = kCUDA, Meta = kMeta;
  vesta::DeviceType value = kCPU;
  constexpr DeviceType() = default;
  constexpr DeviceType(vesta::DeviceType v) : value(v) {}
  constexpr operator vesta::DeviceType() const { return value; }
  operator vesta::Device() const { return value; }
};

// ---- Element types -----------------------------------------------------------------------------------------------
/// An element type, with PyTorch's enumerators.
struct ScalarType {
  static constexpr Dtype Byte = Dtype::uint8, Char = Dtype::int8, Short = Dtype::int16, Int = Dtype::int32,
                         Long = Dtype::int64, Half = Dtype::float16, BFloat16 = Dtype::bfloat16, Float = Dtype::float32,
                         Double = Dtype::float64, Bool = Dtype::bool_, ComplexFloat = Dtype::complex64,
                         ComplexDouble = Dtype::complex128;
  Dtype value = Float;
  constexpr ScalarType() = default;
  constexpr ScalarType(Dtype v) : value(v) {}
  constexpr operator Dtype() const { return value; }
};
inline constexpr Dtype kUInt8 = Dtype::uint8, kInt8 = Dtype::int8, kInt16 = Dtype::int16, kInt32 = Dtype::int32,
                       kInt64 = Dtype::int64, kFloat16 = Dtype::float16, kBFloat16 = Dtype::bfloat16,
                       kFloat32 = Dtype::float32, kFloat64 = Dtype::float64, kBool = Dtype::bool_,
                       kComplexFloat = Dtype::complex64, kComplexDouble = Dtype::complex128;
inline constexpr Dtype kByte = kUInt8, kU8 = kUInt8, kChar = kInt8, kI8 = kInt8, kShort = kInt16, kI16 = kInt16,
                       kInt = kInt32, kI32 = kInt32, kLong = kInt64, kI64 = kInt64, kHalf = kFloat16, kF16 = kFloat16,
                       kFloat = kFloat32, kF32 = kFloat32, kDouble = kFloat64, kF64 = kFloat64,
                       kComplexFloat32 = kComplexFloat, kComplexFloat64 = kComplexDouble;

/// Returns PyTorch's C++ name of an element type ("Float").
inline const char* toString(Dtype d) {
  static constexpr const char* kNames[] = {"Bool", "Byte",     "Char",  "Short",  "Int",          "Long",
                                           "Half", "BFloat16", "Float", "Double", "ComplexFloat", "ComplexDouble"};
  return kNames[size_t(d)];
}
inline Dtype typeMetaToScalarType(Dtype d) { return d; }
inline Dtype scalarTypeToTypeMeta(Dtype d) { return d; }
inline size_t elementSize(Dtype d) { return size_t(vesta::itemsize(d)); }
inline bool isFloatingType(Dtype d) { return vesta::is_float(d); }
inline bool isComplexType(Dtype d) { return vesta::is_complex(d); }
inline bool isIntegralType(Dtype d, bool include_bool = false) {
  return !isFloatingType(d) && !isComplexType(d) && (include_bool || d != kBool);
}
inline Dtype promote_types(Dtype a, Dtype b) { return vesta::promote(a, b); }
inline Dtype get_default_dtype() { return vesta::default_dtype(); }
inline void set_default_dtype(Dtype d) { vesta::set_default_dtype(d); }

// ---- Layouts and memory formats ----------------------------------------------------------------------------------
enum class Layout : int8_t { Strided, Sparse };
inline constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };

/// The numbers of ways to reduce a loss.
struct Reduction {
  enum Kind : int64_t { None, Mean, Sum };
};

// ---- Options -----------------------------------------------------------------------------------------------------
/// What a factory is told beside sizes: torch::dtype(torch::kInt).device(torch::kCUDA).requires_grad(true).
struct TensorOptions {
  TensorOptions() = default;
  TensorOptions(Dtype d) : dtype_(d) {}
  TensorOptions(ScalarType d) : dtype_(d.value) {}
  TensorOptions(Device d) : device_(d) {}
  TensorOptions(vesta::DeviceType d) : device_(Device(d)) {}
  TensorOptions(DeviceType d) : device_(Device(d.value)) {}
  TensorOptions(const std::string& device) : device_(Device(device)) {}
  TensorOptions(Layout l) : layout_(l) {}
  TensorOptions(MemoryFormat f) : memory_format_(f) {}

  TensorOptions dtype(optional<Dtype> d) const {
    return with([&](TensorOptions& o) { o.dtype_ = d; });
  }
  TensorOptions device(optional<Device> d) const {
    return with([&](TensorOptions& o) { o.device_ = d; });
  }
  TensorOptions device(vesta::DeviceType d, DeviceIndex index = 0) const { return device(Device(d, index)); }
  TensorOptions device(const DeviceType& d) const { return device(Device(d.value)); }
  TensorOptions device(const char* d) const { return device(Device(d)); }
  TensorOptions device_index(DeviceIndex i) const { return device(Device(kCUDA, i)); }
  TensorOptions layout(optional<Layout> l) const {
    return with([&](TensorOptions& o) { o.layout_ = l; });
  }
  TensorOptions requires_grad(optional<bool> on) const {
    return with([&](TensorOptions& o) { o.requires_grad_ = on; });
  }
  TensorOptions pinned_memory(optional<bool> on) const {
    return with([&](TensorOptions& o) { o.pinned_ = on; });
  }
  TensorOptions memory_format(optional<MemoryFormat> f) const {
    return with([&](TensorOptions& o) { o.memory_format_ = f; });
  }

  Dtype dtype() const { return dtype_.value_or(vesta::default_dtype()); }
  Device device() const { return device_.value_or(Device()); }
  Layout layout() const { return layout_.value_or(kStrided); }
  bool requires_grad() const { return requires_grad_.value_or(false); }
  bool pinned_memory() const { return pinned_.value_or(false); }
  bool has_dtype() const { return dtype_.has_value(); }
  bool has_device() const { return device_.has_value(); }
  bool has_layout() const { return layout_.has_value(); }
  bool has_requires_grad() const { return requires_grad_.has_value(); }
  bool has_pinned_memory() const { return pinned_.has_value(); }
  bool has_memory_format() const { return memory_format_.has_value(); }
  optional<Dtype> dtype_opt() const { return dtype_; }
  optional<Device> device_opt() const { return device_; }
  optional<Layout> layout_opt() const { return layout_; }
  optional<bool> requires_grad_opt() const { return requires_grad_; }
  optional<bool> pinned_memory_opt() const { return pinned_; }
  optional<MemoryFormat> memory_format_opt() const { return memory_format_; }
  bool is_sparse() const { return layout() == kSparse; }
  /// Returns these options with those that `other` states.
  TensorOptions merge_in(const TensorOptions& other) const {
    return with([&](TensorOptions& o) {
      if (other.dtype_) o.dtype_ = other.dtype_;
      if (other.device_) o.device_ = other.device_;
      if (other.layout_) o.layout_ = other.layout_;
      if (other.requires_grad_) o.requires_grad_ = other.requires_grad_;
      if (other.pinned_) o.pinned_ = other.pinned_;
      if (other.memory_format_) o.memory_format_ = other.memory_format_;
    });
  }
  /// Gives a new tensor what the options ask for beside dtype and device.
  Tensor finish(Tensor t) const {
    VESTA_CHECK(layout() == kStrided, not_implemented,
                "TensorOptions: expected the layout kStrided. Make a sparse tensor with torch::sparse_coo_tensor.");
    if (memory_format_) t = t.contiguous(*memory_format_);
    if (pinned_memory()) t = vesta::pin_memory(t);
    if (requires_grad()) t.set_requires_grad();
    return t;
  }

 private:
  template <class F>
  TensorOptions with(F change) const {
    TensorOptions o = *this;
    change(o);
    return o;
  }
  optional<Dtype> dtype_;
  optional<Device> device_;
  optional<Layout> layout_;
  optional<bool> requires_grad_, pinned_;
  optional<MemoryFormat> memory_format_;
};

inline TensorOptions dtype(Dtype d) { return d; }
inline TensorOptions device(Device d) { return d; }
inline TensorOptions device(vesta::DeviceType d, DeviceIndex index = 0) { return Device(d, index); }
inline TensorOptions device_index(DeviceIndex i) { return TensorOptions().device_index(i); }
inline TensorOptions layout(Layout l) { return l; }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }
inline TensorOptions memory_format(MemoryFormat f) { return f; }
template <class T>
TensorOptions dtype() {
  return vesta::dtype_of<T>;
}

// ---- Gradients ---------------------------------------------------------------------------------------------------
/// What a tensor's type() says: its element type and where it lies.
struct TypeProperties {
  Dtype dtype;
  Device device;
  std::string name;
  std::string toString() const { return name; }
  Dtype scalarType() const { return dtype; }
  bool is_cuda() const { return device.is_cuda(); }
  operator Dtype() const { return dtype; }
  friend bool operator==(const TypeProperties& a, const TypeProperties& b) { return a.name == b.name; }
  friend std::ostream& operator<<(std::ostream& to, const TypeProperties& t) { return to << t.name; }
};

/// The gradient of a tensor, which can be replaced: x.mutable_grad() = g.
struct MutableGrad : Tensor {
  explicit MutableGrad(const Tensor& of) : Tensor(of.grad()), of_(of) {}
  const MutableGrad& operator=(const Tensor& grad) const {
    of_.set_grad(grad);
    return *this;
  }
  void reset() const { of_.set_grad({}); }
  bool defined() const { return of_.grad().defined(); }

 private:
  Tensor of_;
};

}  // namespace torch

namespace vesta {

inline torch::TensorOptions Tensor::options() const {
  VESTA_CHECK(defined(), runtime, "options: expected a defined tensor.");
  return torch::TensorOptions(dtype()).device(std::optional<Device>(device())).layout(layout());
}
inline torch::Layout Tensor::layout() const { return is_sparse() ? torch::kSparse : torch::kStrided; }
inline bool Tensor::is_signed() const { return dtype() != DType::bool_ && dtype() != DType::uint8; }
inline bool Tensor::is_same_size(const Tensor& other) const {
  VESTA_CHECK(defined() && other.defined(), runtime, "is_same_size: expected defined tensors.");
  return std::ranges::equal(sizes(), other.sizes());
}
inline bool Tensor::is_alias_of(const Tensor& other) const {
  return defined() && other.defined() && impl_->storage() == other.impl_->storage();
}
inline Tensor Tensor::pin_memory() const {
  VESTA_CHECK(defined(), runtime, "pin_memory: expected a defined tensor.");
  return vesta::pin_memory(*this);
}
inline bool Tensor::is_pinned() const { return defined() && vesta::is_pinned(*this); }
inline bool Tensor::retains_grad() const { return defined() && autograd::retains_grad(*this); }
inline bool Tensor::is_view() const { return defined() && autograd::view_base(*this).defined(); }
inline std::string Tensor::toString() const {
  if (!defined()) return "UndefinedType";
  const std::string sparse = is_sparse() ? "Sparse" : "";
  return sparse + (is_cuda() ? "CUDA" : is_meta() ? "Meta" : "CPU") + torch::toString(dtype()) + "Type";
}

inline Tensor Tensor::to(DType dtype, bool, bool copy) const {
  Tensor r = to(dtype);
  return copy && r.is_same(*this) ? clone() : r;
}
inline Tensor Tensor::to(Device device, bool, bool copy) const {
  Tensor r = to(device);
  return copy && r.is_same(*this) ? clone() : r;
}
inline Tensor Tensor::to(DeviceType device, bool non_blocking, bool copy) const {
  return to(Device(device), non_blocking, copy);
}
inline Tensor Tensor::to(const torch::DeviceType& device, bool non_blocking, bool copy) const {
  return to(Device(device.value), non_blocking, copy);
}
inline Tensor Tensor::to(Device device, DType dtype, bool, bool copy) const {
  Tensor r = to(device).to(dtype);
  return copy && r.is_same(*this) ? clone() : r;
}
inline Tensor Tensor::to(const torch::ScalarType& dtype, bool non_blocking, bool copy) const {
  return to(dtype.value, non_blocking, copy);
}
inline Tensor Tensor::to(Device device, const torch::ScalarType& dtype, bool non_blocking, bool copy) const {
  return to(device, dtype.value, non_blocking, copy);
}
inline Tensor Tensor::to(const torch::TensorOptions& o, bool, bool copy) const {
  Tensor r = to(o.device_opt().value_or(device()), o.dtype_opt().value_or(dtype()), false, copy);
  return o.has_memory_format() ? r.contiguous(*o.memory_format_opt()) : r;
}
inline Tensor Tensor::to(const Tensor& other, bool, bool copy) const {
  return to(other.device(), other.dtype(), false, copy);
}

inline Tensor Tensor::new_empty(IntList size, const torch::TensorOptions& o) const {
  return o.finish(new_empty(size, MaybeDType(o.dtype_opt()), MaybeDevice(o.device_opt())));
}
inline Tensor Tensor::new_zeros(IntList size, const torch::TensorOptions& o) const {
  return o.finish(new_zeros(size, MaybeDType(o.dtype_opt()), MaybeDevice(o.device_opt())));
}
inline Tensor Tensor::new_ones(IntList size, const torch::TensorOptions& o) const {
  return o.finish(new_ones(size, MaybeDType(o.dtype_opt()), MaybeDevice(o.device_opt())));
}
inline Tensor Tensor::new_full(IntList size, Scalar value, const torch::TensorOptions& o) const {
  return o.finish(new_full(size, value, MaybeDType(o.dtype_opt()), MaybeDevice(o.device_opt())));
}

inline Tensor Tensor::index(const std::vector<Index>& at) const { return get_index(*this, at); }
inline Tensor Tensor::index(const std::vector<Tensor>& at) const {
  std::vector<Index> all;
  for (const Tensor& t : at) {
    if (t.defined()) all.emplace_back(t);
    else all.emplace_back(Slice());
  }
  return get_index(*this, all);
}
inline Tensor Tensor::operator[](const Tensor& at) const {
  VESTA_CHECK(at.dim() == 0 && !at.is_floating_point(), index,
              "Tensor[]: expected a 0-d tensor of integers. Use index() for others.");
  return (*this)[at.item<int64_t>()];
}
inline const Tensor& Tensor::index_put_(const std::vector<Index>& at, const Tensor& value) const {
  set_index(*this, at, value);
  return *this;
}
inline const Tensor& Tensor::index_put_(const std::vector<Index>& at, Scalar value) const {
  set_index(*this, at, wrapped(value).to(device()));
  return *this;
}
inline const Tensor& Tensor::index_put_(std::initializer_list<Index> at, Scalar value) const {
  return index_put_(std::vector<Index>(at), value);
}
inline Tensor Tensor::where(const Tensor& condition, const Operand& other) const {
  return vesta::where(condition, *this, other);
}

inline std::shared_ptr<autograd::Node> Tensor::grad_fn() const {
  if (!defined()) return nullptr;
  autograd::NodePtr node = autograd::grad_fn(*this);
  autograd::Node* at = node.get();
  if (!at) return nullptr;
  return {at, [keep = std::move(node)](autograd::Node*) {}};
}
inline torch::MutableGrad Tensor::mutable_grad() const {
  VESTA_CHECK(defined(), runtime, "mutable_grad: expected a defined tensor.");
  return torch::MutableGrad(*this);
}
inline void Tensor::retain_grad() const { autograd::retain_grad(*this); }
inline uint32_t Tensor::output_nr() const { return defined() ? autograd::output_nr(*this) : 0; }
inline const Tensor& Tensor::detach_() const {
  VESTA_CHECK(defined(), runtime, "detach_: expected a defined tensor.");
  autograd::detach_(*this);
  return *this;
}
inline void Tensor::set_data(const Tensor& from) const {
  VESTA_CHECK(defined() && from.defined(), runtime, "set_data: expected defined tensors.");
  VESTA_CHECK(!requires_grad() || from.is_floating_point() || from.is_complex(), runtime,
              "set_data: expected a floating-point or complex tensor for one that requires gradients, got ",
              from.dtype(), ".");
  // Its version goes on: what was saved before is not said to be overwritten, and writes do not count for `from`.
  intrusive_ptr<VersionCounter> versions(new VersionCounter);
  versions->version = version(), versions->last_writer = impl()->last_writer();
  impl()->versions = std::move(versions);
  autograd::replace_memory(*this, from, "set_data");
}
inline bool Tensor::is_inference() const { return defined() && impl_->inference; }
inline torch::TypeProperties Tensor::type() const { return {dtype(), device(), toString()}; }
inline Tensor Tensor::new_empty_strided(IntList size, IntList stride, const torch::TensorOptions& o) const {
  return o.finish(
      vesta::empty_strided(size, stride, o.dtype_opt().value_or(dtype()), o.device_opt().value_or(device())));
}
template <class Hook>
unsigned Tensor::register_hook(Hook hook) const {
  return unsigned(autograd::register_hook(*this, autograd::tensor_hook([hook](const Tensor& grad) mutable {
    if constexpr (std::is_void_v<std::invoke_result_t<Hook&, Tensor>>) {
      hook(grad);
      return Tensor();
    } else {
      return Tensor(hook(grad));
    }
  })));
}
inline void Tensor::remove_hook(unsigned id) const { autograd::remove_hook(*this, id); }
inline void Tensor::backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph,
                             const std::optional<std::vector<Tensor>>& inputs) const {
  const std::vector<Tensor> grads = gradient.defined() ? std::vector<Tensor>{gradient} : std::vector<Tensor>{};
  vesta::backward({*this}, grads, retain_graph, create_graph, inputs ? TensorList(*inputs) : TensorList());
}

inline const Tensor& operator+=(const Tensor& t, const Operand& other) { return t.add_(other); }
inline const Tensor& operator-=(const Tensor& t, const Operand& other) { return t.sub_(other); }
inline const Tensor& operator*=(const Tensor& t, const Operand& other) { return t.mul_(other); }
inline const Tensor& operator/=(const Tensor& t, const Operand& other) { return t.div_(other); }
inline const Tensor& operator&=(const Tensor& t, const Operand& other) { return t.bitwise_and_(other); }
inline const Tensor& operator|=(const Tensor& t, const Operand& other) { return t.bitwise_or_(other); }
inline const Tensor& operator^=(const Tensor& t, const Operand& other) { return t.bitwise_xor_(other); }

}  // namespace vesta

#include <torch/print.h>
