// The argument types of ops: lists that accept braces, optional lists, tensor lists, and the destination of an op.
#pragma once
#include <concepts>
#include <initializer_list>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <vesta/core/base/small_vector.h>
#include <vesta/core/parameter.h>
#include <vesta/core/scalar.h>

namespace vesta {

/// A view of a list of integers; takes `{2, 3}`, one number, Dims, a vector or a span. Valid during the call only.
class IntList : public IntSpan {
 public:
  IntList() = default;
  IntList(IntSpan s) : IntSpan(s) {}
  IntList(const Dims& d) : IntSpan(d.data(), d.size()) {}
  IntList(const std::vector<int64_t>& v) : IntSpan(v) {}
  IntList(std::initializer_list<int64_t> l) : IntSpan(l.begin(), l.size()) {}
  IntList(const int64_t& one) : IntSpan(&one, 1) {}
  /// Returns a copy.
  std::vector<int64_t> vec() const { return {begin(), end()}; }
  /// Returns a view of the elements from `start` on, all of them or `count`. Error(index): there are fewer.
  IntList slice(size_t start, size_t count) const {
    VESTA_CHECK(start <= size() && count <= size() - start, index, "slice: expected elements below ", size(), ", got ",
                start, " and ", count, " more.");
    return subspan(start, count);
  }
  IntList slice(size_t start) const { return slice(start, start <= size() ? size() - start : 1); }
};

/// An IntList whose place takes no single int in Python, as PyTorch's `int[]` (`int[1]` takes one).
using IntTuple = IntList;

/// A list of dimensions or none: `sum()` and `sum({0, 1})` and `sum(1)`. Keeps its own copy.
class MaybeDims {
 public:
  MaybeDims() = default;
  MaybeDims(std::nullopt_t) {}
  template <std::integral T>
    requires(!std::same_as<T, bool>)  // a flag is no dimension
  MaybeDims(T one) : given_(true), dims_{int64_t(one)} {}
  MaybeDims(std::initializer_list<int64_t> l) : given_(true), dims_(l) {}
  MaybeDims(IntSpan s) : given_(true), dims_(s) {}
  MaybeDims(const Dims& d) : given_(true), dims_(d) {}
  MaybeDims(const std::vector<int64_t>& v) : given_(true), dims_(IntSpan(v)) {}
  explicit operator bool() const { return given_; }
  const Dims& operator*() const { return dims_; }

 private:
  bool given_ = false;
  Dims dims_;
};

/// A view of a list of tensors; takes `{a, b}`, a vector or a span. Valid during the call only.
class TensorList : public std::span<const Tensor> {
 public:
  using Span = std::span<const Tensor>;
  TensorList() = default;
  TensorList(Span s) : Span(s) {}
  TensorList(const std::vector<Tensor>& v);
  TensorList(std::initializer_list<Tensor> l);
};

/// A list of tensors in which entries may be undefined: the indices of `x[:, i]`.
using MaybeTensorList = TensorList;

/// A tensor or none: Python's None. Views a tensor; valid during the call only.
class MaybeTensor {
 public:
  MaybeTensor() = default;
  MaybeTensor(std::nullopt_t) {}
  MaybeTensor(const Tensor& t) : tensor_(&t) {}
  template <std::same_as<std::optional<Tensor>> T>  // not braces
  MaybeTensor(const T& t) : tensor_(t ? &*t : nullptr) {}
  bool defined() const;
  explicit operator bool() const { return defined(); }
  /// Returns the tensor; an undefined one where there is none.
  const Tensor& operator*() const;
  const Tensor* operator->() const { return &**this; }
  operator const Tensor&() const { return **this; }

 private:
  const Tensor* tensor_ = nullptr;
};

/// A tensor or a number in a tensor's place: `add(x, 2)`, `where(c, x, 0.0)`. Valid during the call only.
class VESTA_API Operand {
 public:
  Operand(const Tensor& t) : tensor_(&t) {}
  Operand(Scalar number);
  template <class T>
    requires std::is_arithmetic_v<T>
  Operand(T number) : Operand(Scalar(number)) {}
  Operand(complex128 number) : Operand(Scalar(number)) {}
  ~Operand();
  Operand(const Operand&) = delete;
  operator const Tensor&() const { return *tensor_; }

 protected:
  Operand() = default;
  const Tensor* tensor_ = nullptr;

 private:
  alignas(void*) unsigned char own_[sizeof(void*)];  // the tensor made of a number
};

/// An Operand or none: `clamp(x, {}, 1)`.
class VESTA_API MaybeOperand {
 public:
  MaybeOperand() = default;
  MaybeOperand(std::nullopt_t) {}
  MaybeOperand(const Tensor& t) : tensor_(t) {}
  template <class T>
    requires(std::is_arithmetic_v<T> || std::same_as<T, Scalar> || std::same_as<T, complex128>)
  MaybeOperand(T number) : number_(std::in_place, Scalar(number)) {}
  template <std::same_as<std::optional<Tensor>> T>
  MaybeOperand(const T& t) : tensor_(t) {}
  template <std::same_as<std::optional<Scalar>> T>
  MaybeOperand(const T& number) {
    if (number) number_.emplace(*number);
  }
  operator MaybeTensor() const { return number_ ? MaybeTensor(static_cast<const Tensor&>(*number_)) : tensor_; }

 private:
  MaybeTensor tensor_;
  std::optional<Operand> number_;
};

/// A bool that no number converts to: tells var(x, true) from var(x, 1).
class Flag {
 public:
  template <std::same_as<bool> T>
  Flag(T on) : on_(on) {}
  operator bool() const { return on_; }

 private:
  bool on_;
};

/// A string that the literal 0 does not convert to, for parameters that also take integers: conv2d's padding.
class TextOnly : public std::string_view {
 public:
  TextOnly(std::string_view text) : std::string_view(text) {}
  template <size_t n>
  TextOnly(const char (&text)[n]) : std::string_view(text, n - 1) {}
};

/// The destination of an op: fresh memory, a tensor given as out=, or its own first operand.
struct Out {
  enum Kind : uint8_t { fresh, given, inplace };
  const Tensor* tensor = nullptr;
  Kind kind = fresh;
};

}  // namespace vesta
