// Tensors of values that the program holds: `tensor({{1, 2}, {3, 4}})`, `tensor(vector)`, `from_blob(pointer, sizes)`.
#pragma once
#include <functional>
#include <initializer_list>
#include <vector>

#include <vesta/core/ops/factory.h>

namespace vesta {

/// A number, or lists of numbers of equal lengths in braces, to any depth.
class VESTA_API TensorData {
 public:
  template <class T>
    requires(std::is_arithmetic_v<T>)
  TensorData(T value) : TensorData(Scalar(value)) {}
  TensorData(complex128 value) : TensorData(Scalar(value)) {}
  TensorData(std::initializer_list<TensorData> parts);

  const Dims& sizes() const { return sizes_; }
  /// Returns the dtype that a tensor of these values has: bool, int64, the default floating type or its complex type.
  DType dtype() const { return dtype_; }
  const std::vector<Scalar>& values() const { return values_; }

 private:
  explicit TensorData(Scalar value) : dtype_(dtype_of_value(value)), values_{value} {}
  Dims sizes_;
  DType dtype_ = default_dtype();
  std::vector<Scalar> values_;
};

/// Makes a tensor of these values; without `dtype` of data.dtype(). ValueError: lists of different lengths side by
/// side.
VESTA_API Tensor tensor(const TensorData& data, MaybeDType dtype = {}, MaybeDevice device = {});
/// Makes a tensor [n] of a vector's values and of its element type, or of `dtype`. ValueError: a value does not fit in
/// it.
template <class T>
Tensor tensor(const std::vector<T>& values, MaybeDType dtype = {}, MaybeDevice device = {});

/// Makes a view of memory that the caller owns and keeps alive, or that `deleter` frees when the last tensor over it
/// dies. Without `strides` the memory is contiguous. ValueError: a null pointer for a tensor with elements, or negative
/// sizes or strides.
VESTA_API Tensor from_blob(void* data, IntList sizes, DType dtype = DType::float32,
                           std::function<void(void*)> deleter = {}, MaybeDims strides = {});

namespace detail {
VESTA_API Tensor copied(const void* values, int64_t count, DType from, MaybeDType dtype, MaybeDevice device);
}  // namespace detail

template <class T>
Tensor tensor(const std::vector<T>& values, MaybeDType dtype, MaybeDevice device) {
  return detail::copied(values.data(), int64_t(values.size()), dtype_of<T>, dtype, device);
}

}  // namespace vesta
