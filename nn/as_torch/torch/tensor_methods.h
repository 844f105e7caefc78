// The methods of libtorch's Tensor, Scalar and Error that Vesta's have not: macros that core/tensor.h and its like
// expand in the classes. They are defined in tensor.h. Whoever includes this comes before all headers of Vesta.
#pragma once
#if defined(VESTA_TENSOR_WITHOUT_OPS)
#error "<torch/torch.h> is for programs: it needs a Tensor with the methods of ops."
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

namespace torch {
struct TensorOptions;
struct DeviceType;
struct ScalarType;
struct MutableGrad;
struct TypeProperties;
struct HookResult;
enum class Layout : int8_t;
enum class MemoryFormat : int8_t;
template <class T>
struct DefaultPtrTraits;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class index_t = int64_t>
class TensorAccessor;
template <class T, size_t N, template <class> class PtrTraits = DefaultPtrTraits, class index_t = int64_t>
class GenericPackedTensorAccessor;
}  // namespace torch
namespace vesta::autograd { class Node; }

#define VESTA_ERROR_MORE_METHODS                                    \
  const std::string& msg() const noexcept { return message_; }      \
  const char* what_without_backtrace() const noexcept { return what(); }

// clang-format off
#define VESTA_SCALAR_MORE_METHODS                                                    \
  operator double() const { return to<double>(); }                                     \
  double toDouble() const { return to<double>(); }                                   \
  float toFloat() const { return to<float>(); }                                      \
  int64_t toLong() const { return to<int64_t>(); }                                   \
  int toInt() const { return to<int>(); }                                            \
  bool toBool() const { return to<bool>(); }                                         \
  bool isFloatingPoint() const { return kind_ == DType::float64; }                   \
  bool isIntegral(bool include_bool = false) const {                                 \
    return kind_ == DType::int64 || (include_bool && kind_ == DType::bool_);         \
  }                                                                                  \
  bool isBoolean() const { return kind_ == DType::bool_; }                           \
  bool isComplex() const { return kind_ == DType::complex128; }                      \
  DType type() const { return kind_; }

#define VESTA_TENSOR_MORE_METHODS                                                                                   \
  /* Assignment to a temporary writes its elements: x[0] = y. */                                                    \
  Tensor(const Tensor&) = default;                                                                                  \
  Tensor(Tensor&&) noexcept = default;                                                                              \
  Tensor& operator=(const Tensor&) & = default;                                                                     \
  Tensor& operator=(Tensor&&) & noexcept = default;                                                                 \
  const Tensor& operator=(const Tensor& from) && { copy_(from); return *this; }                                     \
  const Tensor& operator=(Tensor&& from) && { copy_(from); return *this; }                                          \
  const Tensor& operator=(Scalar value) && { fill_(value); return *this; }                                          \
  /* Facts. */                                                                                                      \
  DType scalar_type() const { return dtype(); }                                                                     \
  ::torch::TensorOptions options() const;                                                                           \
  ::torch::Layout layout() const;                                                                                   \
  int64_t ndimension() const { return dim(); }                                                                      \
  int64_t itemsize() const { return element_size(); }                                                               \
  size_t nbytes() const { return size_t(numel() * element_size()); }                                                \
  int64_t get_device() const { return device().is_cpu() ? -1 : device().index(); }                                  \
  bool is_cpu() const { return device().is_cpu(); }                                                                 \
  bool is_cuda() const { return device().is_cuda(); }                                                               \
  bool is_meta() const { return device().is_meta(); }                                                               \
  bool is_signed() const;                                                                                           \
  bool is_nonzero() const { return item().to<bool>(); }                                                             \
  bool is_contiguous(::torch::MemoryFormat format) const;                                                           \
  bool is_same_size(const Tensor& other) const;                                                                     \
  bool is_alias_of(const Tensor& other) const;                                                                      \
  bool is_inference() const;                                                                                        \
  ::torch::TypeProperties type() const;                                                                             \
  Tensor mH() const { return mT().conj(); }                                                                         \
  bool is_view() const;                                                                                             \
  size_t use_count() const { return impl_ ? size_t(impl_->use_count()) : 0; }                                       \
  std::string toString() const;                                                                                     \
  void print() const;                                                                                               \
  void reset() { impl_ = {}; }                                                                                      \
  TensorImpl* unsafeGetTensorImpl() const { return impl_.get(); }                                                   \
  /* Memory. */                                                                                                     \
  template <class T>                                                                                                \
  T* mutable_data_ptr() const { return data_ptr<T>(); }                                                             \
  template <class T>                                                                                                \
  const std::remove_const_t<T>* const_data_ptr() const { return data_ptr<std::remove_const_t<T>>(); }               \
  void* mutable_data_ptr() const { return data_ptr(); }                                                             \
  const void* const_data_ptr() const { return data_ptr(); }                                                         \
  template <class T, size_t N>                                                                                      \
  ::torch::TensorAccessor<T, N> accessor() const;                                                                   \
  template <class T, size_t N, template <class> class PtrTraits = ::torch::DefaultPtrTraits, class index_t = int64_t>\
  ::torch::GenericPackedTensorAccessor<T, N, PtrTraits, index_t> generic_packed_accessor() const;                   \
  VESTA_PACKED_ACCESSOR(packed_accessor, int64_t) VESTA_PACKED_ACCESSOR(packed_accessor32, int32_t)                 \
  VESTA_PACKED_ACCESSOR(packed_accessor64, int64_t)                                                                 \
  /* Conversions. */                                                                                                \
  Tensor to(const ::torch::TensorOptions& options, bool non_blocking = false, bool copy = false) const;             \
  Tensor to(DType dtype, bool non_blocking, bool copy = false) const;                                               \
  Tensor to(Device device, bool non_blocking, bool copy = false) const;                                             \
  Tensor to(DeviceType device, bool non_blocking = false, bool copy = false) const;                                 \
  Tensor to(const ::torch::DeviceType& device, bool non_blocking = false, bool copy = false) const;                 \
  Tensor to(Device device, DType dtype, bool non_blocking = false, bool copy = false) const;                        \
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false) const;                               \
  Tensor to(const ::torch::ScalarType& dtype, bool non_blocking = false, bool copy = false) const;                  \
  Tensor to(Device device, const ::torch::ScalarType& dtype, bool non_blocking = false, bool copy = false) const;   \
  template <class To>                                                                                               \
  Tensor to(const To& to_what, bool, bool copy, std::optional<::torch::MemoryFormat> format) const {                \
    Tensor r = to(to_what, false, copy);                                                                            \
    return format ? r.contiguous(*format) : r;                                                                      \
  }                                                                                                                 \
  Tensor to(Device device, DType dtype, bool, bool copy, std::optional<::torch::MemoryFormat> format) const {       \
    Tensor r = to(device, dtype, false, copy);                                                                      \
    return format ? r.contiguous(*format) : r;                                                                      \
  }                                                                                                                 \
  Tensor toType(DType dtype) const { return to(dtype); }                                                            \
  Tensor type_as(const Tensor& other) const { return to(other.dtype()); }                                           \
  Tensor cpu() const { return to(Device(DeviceType::cpu)); }                                                        \
  Tensor cuda() const { return to(Device(DeviceType::cuda)); }                                                      \
  Tensor contiguous(::torch::MemoryFormat format) const;                                                            \
  Tensor clone(::torch::MemoryFormat format) const;                                                                  \
  Tensor clone(const std::optional<::torch::MemoryFormat>& format) const {                                          \
    return format ? clone(*format) : clone();                                                                       \
  }                                                                                                                 \
  bool is_pinned() const;                                                                                           \
  Tensor pin_memory() const;                                                                                        \
  Tensor alias() const;                                                                                             \
  Tensor sum(DType dtype) const { return sum(MaybeDims(), false, dtype); }                                          \
  Tensor mean(DType dtype) const { return mean(MaybeDims(), false, dtype); }                                        \
  /* A flag says whether a deviation is unbiased; as a number it would be a correction, too. */                     \
  Tensor var(const MaybeDims& dim, bool unbiased, bool keepdim = false) const {                                     \
    return var(dim, MaybeScalar(Scalar(int64_t(unbiased))), keepdim);                                               \
  }                                                                                                                 \
  Tensor std(const MaybeDims& dim, bool unbiased, bool keepdim = false) const {                                     \
    return std(dim, MaybeScalar(Scalar(int64_t(unbiased))), keepdim);                                               \
  }                                                                                                                 \
  Tensor new_empty(IntList size, const ::torch::TensorOptions& options) const;                                      \
  Tensor new_zeros(IntList size, const ::torch::TensorOptions& options) const;                                      \
  Tensor new_ones(IntList size, const ::torch::TensorOptions& options) const;                                       \
  Tensor new_full(IntList size, Scalar value, const ::torch::TensorOptions& options) const;                         \
  Tensor new_empty_strided(IntList size, IntList stride, const ::torch::TensorOptions& options) const;              \
  Tensor new_empty(IntList size, DType dtype) const { return new_empty(size, MaybeDType(dtype)); }                  \
  Tensor new_zeros(IntList size, DType dtype) const { return new_zeros(size, MaybeDType(dtype)); }                  \
  Tensor new_ones(IntList size, DType dtype) const { return new_ones(size, MaybeDType(dtype)); }                    \
  Tensor new_full(IntList size, Scalar value, DType dtype) const { return new_full(size, value, MaybeDType(dtype)); } \
  /* Subscripts. */                                                                                                 \
  Tensor index(const std::vector<Index>& at) const;                                                                 \
  Tensor index(const std::vector<Tensor>& at) const;                                                                \
  Tensor operator[](const Tensor& at) const;                                                                        \
  Tensor operator[](const Scalar& at) const { return (*this)[at.to<int64_t>()]; }                                   \
  const Tensor& index_put_(std::initializer_list<Index> at, Scalar value) const;                                    \
  const Tensor& index_put_(const std::vector<Index>& at, const Tensor& value) const;                                \
  const Tensor& index_put_(const std::vector<Index>& at, Scalar value) const;                                       \
  Tensor where(const Tensor& condition, const Operand& other) const;                                                \
  /* Autograd. */                                                                                                   \
  const Tensor& requires_grad_(bool on = true) const { return set_requires_grad(on); }                              \
  std::shared_ptr<autograd::Node> grad_fn() const;                                                                  \
  ::torch::MutableGrad mutable_grad() const;                                                                        \
  void retain_grad() const;                                                                                         \
  bool retains_grad() const;                                                                                        \
  uint32_t output_nr() const;                                                                                       \
  const Tensor& detach_() const;                                                                                    \
  Tensor data() const { return variable_data(); }                                                                   \
  Tensor tensor_data() const { return variable_data(); }                                                            \
  void set_data(const Tensor& data) const;                                                                          \
  template <class Hook>                                                                                             \
  unsigned register_hook(Hook hook) const;                                                                          \
  void remove_hook(unsigned id) const;                                                                              \
  void backward(const Tensor& gradient, std::optional<bool> retain_graph, bool create_graph = false,                \
                const std::optional<std::vector<Tensor>>& inputs = {}) const;                                       \
  /* Sums. */                                                                                                       \
  Tensor count_nonzero() const { return count_nonzero(IntList()); }                                                 \
  Tensor norm(const std::optional<Scalar>& p, DType dtype) const { return to(dtype).norm(p ? p->real() : 2); }      \
  Tensor norm(const std::optional<Scalar>& p, const MaybeDims& dim, bool keepdim = false) const {                   \
    return norm(p ? p->real() : 2, dim, keepdim);                                                                   \
  }                                                                                                                 \
  Tensor norm(const std::optional<Scalar>& p, const MaybeDims& dim, bool keepdim, DType dtype) const {              \
    return to(dtype).norm(p ? p->real() : 2, dim, keepdim);                                                         \
  }                                                                                                                 \
  /* Sparse tensors. */                                                                                             \
  int64_t sparse_dim() const;                                                                                       \
  int64_t dense_dim() const { return dim() - sparse_dim(); }                                                        \
  bool is_coalesced() const;                                                                                        \
  Tensor indices() const;                                                                                           \
  Tensor values() const;                                                                                            \
  /* Transforms of frames. */                                                                                       \
  Tensor stft(int64_t n_fft, MaybeInt hop_length = {}, MaybeInt win_length = {},                                    \
              const std::optional<Tensor>& window = {}, bool center = true, std::string_view pad_mode = "reflect",  \
              bool normalized = false, std::optional<bool> onesided = {}, std::optional<bool> return_complex = {},  \
              std::optional<bool> align_to_window = {}) const;                                                      \
  Tensor stft(int64_t n_fft, MaybeInt hop_length, MaybeInt win_length, const std::optional<Tensor>& window,         \
              bool normalized, std::optional<bool> onesided = {}, std::optional<bool> return_complex = {},          \
              std::optional<bool> align_to_window = {}) const;                                                      \
  Tensor istft(int64_t n_fft, MaybeInt hop_length = {}, MaybeInt win_length = {},                                   \
               const std::optional<Tensor>& window = {}, bool center = true, bool normalized = false,               \
               std::optional<bool> onesided = {}, MaybeInt length = {}, bool return_complex = false) const;         \
  /* Other names. */                                                                                                \
  VESTA_TENSOR_OTHER_NAMES

#define VESTA_PACKED_ACCESSOR(name, index_t)                                                                        \
  template <class T, size_t N, template <class> class PtrTraits = ::torch::DefaultPtrTraits>                        \
  ::torch::GenericPackedTensorAccessor<T, N, PtrTraits, index_t> name() const {                                     \
    return generic_packed_accessor<T, N, PtrTraits, index_t>();                                                     \
  }
#define VESTA_OTHER_NAME(other, name)                                                                               \
  template <class... A>                                                                                             \
  decltype(auto) other(A&&... a) const { return this->name(std::forward<A>(a)...); }
#define VESTA_OTHER_NAME_INPLACE(other, name)                                                                       \
  VESTA_OTHER_NAME(other, name)                                                                                     \
  VESTA_OTHER_NAME(other##_, name##_)
#define VESTA_TENSOR_OTHER_NAMES                                                                                    \
  VESTA_OTHER_NAME_INPLACE(absolute, abs) VESTA_OTHER_NAME_INPLACE(arccos, acos)                                    \
  VESTA_OTHER_NAME_INPLACE(arccosh, acosh) VESTA_OTHER_NAME_INPLACE(arcsin, asin)                                   \
  VESTA_OTHER_NAME_INPLACE(arcsinh, asinh) VESTA_OTHER_NAME_INPLACE(arctan, atan)                                   \
  VESTA_OTHER_NAME_INPLACE(arctan2, atan2) VESTA_OTHER_NAME_INPLACE(arctanh, atanh)                                 \
  VESTA_OTHER_NAME_INPLACE(clip, clamp) VESTA_OTHER_NAME_INPLACE(divide, div) VESTA_OTHER_NAME(ger, outer)          \
  VESTA_OTHER_NAME_INPLACE(true_divide, div) VESTA_OTHER_NAME_INPLACE(fix, trunc)                                   \
  VESTA_OTHER_NAME_INPLACE(multiply, mul) VESTA_OTHER_NAME_INPLACE(subtract, sub)                                   \
  VESTA_OTHER_NAME_INPLACE(negative, neg) VESTA_OTHER_NAME_INPLACE(greater, gt)                                     \
  VESTA_OTHER_NAME_INPLACE(greater_equal, ge) VESTA_OTHER_NAME_INPLACE(less, lt)                                    \
  VESTA_OTHER_NAME_INPLACE(less_equal, le) VESTA_OTHER_NAME_INPLACE(not_equal, ne)                                  \
  VESTA_OTHER_NAME(moveaxis, movedim) VESTA_OTHER_NAME_INPLACE(swapdims, transpose) VESTA_OTHER_NAME(numpy_T, t)
// clang-format on
