// Functions that make tensors: sizes or values, then TensorOptions.
#pragma once
#include <functional>

#include <torch/ops.h>

namespace torch {

inline Tensor empty(IntArrayRef size, const TensorOptions& o = {}) {
  return o.finish(vesta::empty(size, o.dtype_opt(), o.device_opt()));
}
inline Tensor zeros(IntArrayRef size, const TensorOptions& o = {}) {
  return o.finish(vesta::zeros(size, o.dtype_opt(), o.device_opt()));
}
inline Tensor ones(IntArrayRef size, const TensorOptions& o = {}) {
  return o.finish(vesta::ones(size, o.dtype_opt(), o.device_opt()));
}
inline Tensor full(IntArrayRef size, Scalar value, const TensorOptions& o = {}) {
  return o.finish(vesta::full(size, value, o.dtype_opt(), o.device_opt()));
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, const TensorOptions& o = {}) {
  return o.finish(vesta::empty_strided(size, stride, o.dtype_opt(), o.device_opt()));
}
inline Tensor scalar_tensor(Scalar value, const TensorOptions& o = {}) {
  return o.finish(vesta::scalar_tensor(value, o.dtype(), o.device_opt()));
}
inline Tensor arange(Scalar end, const TensorOptions& o = {}) {
  return o.finish(vesta::arange(end, o.dtype_opt(), o.device_opt()));
}
inline Tensor arange(Scalar start, Scalar end, const TensorOptions& o = {}) {
  return o.finish(vesta::arange(start, end, 1, o.dtype_opt(), o.device_opt()));
}
inline Tensor arange(Scalar start, Scalar end, Scalar step, const TensorOptions& o = {}) {
  return o.finish(vesta::arange(start, end, step, o.dtype_opt(), o.device_opt()));
}
/// Returns start, start + step, ... up to and with `end`.
inline Tensor range(Scalar start, Scalar end, Scalar step = 1, const TensorOptions& o = {}) {
  const double last = end.real() + step.real() / 2;
  return o.finish(vesta::arange(start.real(), last, step.real(), o.dtype(), o.device_opt()));
}
inline Tensor range(Scalar start, Scalar end, const TensorOptions& o) { return range(start, end, 1, o); }
inline Tensor linspace(Scalar start, Scalar end, int64_t steps, const TensorOptions& o = {}) {
  return o.finish(vesta::linspace(start, end, steps, o.dtype_opt(), o.device_opt()));
}
inline Tensor logspace(Scalar start, Scalar end, int64_t steps, double base = 10, const TensorOptions& o = {}) {
  return o.finish(vesta::logspace(start, end, steps, base, o.dtype_opt(), o.device_opt()));
}
inline Tensor eye(int64_t n, const TensorOptions& o = {}) {
  return o.finish(vesta::eye(n, o.dtype_opt(), o.device_opt()));
}
inline Tensor eye(int64_t n, int64_t m, const TensorOptions& o = {}) {
  return o.finish(vesta::eye(n, m, o.dtype_opt(), o.device_opt()));
}

inline Tensor empty_like(const Tensor& t, const TensorOptions& o = {}) {
  return o.finish(vesta::empty_like(t, o.dtype_opt(), o.device_opt()));
}
inline Tensor zeros_like(const Tensor& t, const TensorOptions& o = {}) {
  return o.finish(vesta::zeros_like(t, o.dtype_opt(), o.device_opt()));
}
inline Tensor ones_like(const Tensor& t, const TensorOptions& o = {}) {
  return o.finish(vesta::ones_like(t, o.dtype_opt(), o.device_opt()));
}
inline Tensor full_like(const Tensor& t, Scalar value, const TensorOptions& o = {}) {
  return o.finish(vesta::full_like(t, value, o.dtype_opt(), o.device_opt()));
}
inline Tensor rand_like(const Tensor& t, const TensorOptions& o = {}) {
  return o.finish(vesta::rand_like(t, nullptr, o.dtype_opt(), o.device_opt()));
}
inline Tensor randn_like(const Tensor& t, const TensorOptions& o = {}) {
  return o.finish(vesta::randn_like(t, nullptr, o.dtype_opt(), o.device_opt()));
}
inline Tensor randint_like(const Tensor& t, int64_t low, int64_t high, const TensorOptions& o = {}) {
  return o.finish(vesta::randint(low, high, t.sizes(), nullptr, o.dtype_opt().value_or(t.dtype()),
                                 o.device_opt().value_or(t.device())));
}
inline Tensor randint_like(const Tensor& t, int64_t high, const TensorOptions& o = {}) {
  return randint_like(t, 0, high, o);
}

// A memory format beside the options, in which it may stand, too.
#define VESTA_WITH_FORMAT(name)                                                                              \
  inline Tensor name(const Tensor& t, const TensorOptions& o, optional<MemoryFormat> format) {                \
    return format ? torch::name(t, o.memory_format(*format)) : torch::name(t, o);                             \
  }
VESTA_WITH_FORMAT(empty_like)
VESTA_WITH_FORMAT(zeros_like)
VESTA_WITH_FORMAT(ones_like)
VESTA_WITH_FORMAT(rand_like)
VESTA_WITH_FORMAT(randn_like)
#undef VESTA_WITH_FORMAT
inline Tensor full_like(const Tensor& t, Scalar value, const TensorOptions& o, optional<MemoryFormat> format) {
  return full_like(t, value, format ? o.memory_format(*format) : o);
}
inline Tensor empty(IntArrayRef size, const TensorOptions& o, optional<MemoryFormat> format) {
  return empty(size, format ? o.memory_format(*format) : o);
}
template <std::same_as<TensorOptions> O>  // an element type alone is Vesta's argument
Tensor tril_indices(int64_t row, int64_t col, int64_t offset, const O& o) {
  return o.finish(vesta::tril_indices(row, col, offset, o.dtype(), o.device_opt()));
}
template <std::same_as<TensorOptions> O>
Tensor triu_indices(int64_t row, int64_t col, int64_t offset, const O& o) {
  return o.finish(vesta::triu_indices(row, col, offset, o.dtype(), o.device_opt()));
}

template <std::same_as<TensorOptions> O>
Tensor fft_fftfreq(int64_t n, double d, const O& o) {
  return o.finish(vesta::fft::fftfreq(n, d, o.dtype_opt(), o.device_opt()));
}
template <std::same_as<TensorOptions> O>
Tensor fft_rfftfreq(int64_t n, double d, const O& o) {
  return o.finish(vesta::fft::rfftfreq(n, d, o.dtype_opt(), o.device_opt()));
}
namespace fft {
template <std::same_as<TensorOptions> O>
Tensor fftfreq(int64_t n, double d, const O& o) {
  return torch::fft_fftfreq(n, d, o);
}
template <std::same_as<TensorOptions> O>
Tensor fftfreq(int64_t n, const O& o) {
  return torch::fft_fftfreq(n, 1, o);
}
template <std::same_as<TensorOptions> O>
Tensor rfftfreq(int64_t n, double d, const O& o) {
  return torch::fft_rfftfreq(n, d, o);
}
template <std::same_as<TensorOptions> O>
Tensor rfftfreq(int64_t n, const O& o) {
  return torch::fft_rfftfreq(n, 1, o);
}
}  // namespace fft

inline Tensor rand(IntArrayRef size, const TensorOptions& o = {}) {
  return o.finish(vesta::rand(size, nullptr, o.dtype_opt(), o.device_opt()));
}
inline Tensor randn(IntArrayRef size, const TensorOptions& o = {}) {
  return o.finish(vesta::randn(size, nullptr, o.dtype_opt(), o.device_opt()));
}
inline Tensor randint(int64_t low, int64_t high, IntArrayRef size, const TensorOptions& o = kLong) {
  return o.finish(vesta::randint(low, high, size, nullptr, o.dtype_opt(), o.device_opt()));
}
inline Tensor randint(int64_t high, IntArrayRef size, const TensorOptions& o = kLong) {
  return randint(0, high, size, o);
}
inline Tensor randperm(int64_t n, const TensorOptions& o = kLong) {
  return o.finish(vesta::randperm(n, nullptr, o.dtype_opt(), o.device_opt()));
}
// Vesta's own form of two numbers and a size would be as good a match, so that these stand in place of all of them.
template <std::same_as<Tensor> T>
Tensor normal(const T& mean, const Tensor& std, optional<Generator*> generator = {}) {
  return vesta::normal(mean, std, generator.value_or(nullptr));
}
template <std::same_as<Tensor> T>
Tensor normal(const T& mean, double std = 1, optional<Generator*> generator = {}) {
  return vesta::normal(mean, std, generator.value_or(nullptr));
}
template <std::same_as<Tensor> T>
Tensor normal(double mean, const T& std, optional<Generator*> generator = {}) {
  return vesta::normal(mean, std, generator.value_or(nullptr));
}
inline Tensor normal(double mean, double std, IntArrayRef size, optional<Generator*> generator = {},
                     const TensorOptions& o = {}) {
  return o.finish(vesta::empty(size, o.dtype_opt(), o.device_opt()).normal_(mean, std, generator.value_or(nullptr)));
}

namespace detail {
/// Returns the dtype that tensors of C++ values of type T have: the default one for reals, int64 for int.
template <class T>
Dtype dtype_of_values() {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) return vesta::default_dtype();
  else if constexpr (std::is_integral_v<T> && sizeof(T) >= 4) return kLong;
  else return vesta::dtype_of<T>;
}
}  // namespace detail

/// Makes a tensor of nested lists of numbers.
inline Tensor tensor(const vesta::TensorData& data, const TensorOptions& o = {}) {
  return o.finish(vesta::tensor(data, o.dtype_opt(), o.device_opt()));
}
template <class T>
  requires(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>)
Tensor tensor(T value, const TensorOptions& o = {}) {
  const TensorOptions typed = o.has_dtype() ? o : o.dtype(detail::dtype_of_values<T>());
  return typed.finish(vesta::tensor(vesta::TensorData(value), typed.dtype(), o.device_opt()));
}
template <class T>
  requires std::is_arithmetic_v<T>
Tensor tensor(const std::vector<T>& values, const TensorOptions& o = {}) {
  if constexpr (std::is_same_v<T, bool>) {
    const std::vector<uint8_t> bytes(values.begin(), values.end());
    return o.finish(vesta::tensor(bytes, o.dtype_opt().value_or(kBool), o.device_opt()));
  } else {
    return o.finish(vesta::tensor(values, o.dtype_opt().value_or(detail::dtype_of_values<T>()), o.device_opt()));
  }
}
template <class T>
Tensor tensor(Values<T> values, const TensorOptions& o = {}) {
  return tensor(values.vec(), o);
}
template <std::same_as<IntArrayRef> List>  // not a list in braces
Tensor tensor(const List& values, const TensorOptions& o = {}) {
  return tensor(values.vec(), o);
}

/// Makes a tensor over memory that somebody else keeps; `deleter` runs when nobody uses the tensor any more.
inline Tensor from_blob(void* data, IntArrayRef size, const std::function<void(void*)>& deleter,
                        const TensorOptions& o = {}) {
  return o.finish(vesta::from_blob(data, size, o.dtype(), deleter));
}
inline Tensor from_blob(void* data, IntArrayRef size, const TensorOptions& o = {}) {
  return from_blob(data, size, std::function<void(void*)>(), o);
}
inline Tensor from_blob(void* data, IntArrayRef size, IntArrayRef strides, const std::function<void(void*)>& deleter,
                        const TensorOptions& o = {}) {
  return o.finish(vesta::from_blob(data, size, o.dtype(), deleter, vesta::MaybeDims(strides)));
}
inline Tensor from_blob(void* data, IntArrayRef size, IntArrayRef strides, const TensorOptions& o = {}) {
  return from_blob(data, size, strides, std::function<void(void*)>(), o);
}

}  // namespace torch

namespace at { using namespace torch; }
