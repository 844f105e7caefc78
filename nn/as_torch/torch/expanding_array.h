// ExpandingArray: sizes of D dimensions, of which one number stands for all.
#pragma once
#include <array>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <vector>

#include <torch/exceptions.h>

namespace torch {

/// An array of D values, made of D values or of one that is repeated.
template <size_t D, class T = int64_t>
class ExpandingArray {
 public:
  ExpandingArray(std::initializer_list<T> values) { assign(values.begin(), values.size()); }
  ExpandingArray(const std::vector<T>& values) { assign(values.begin(), values.size()); }
  ExpandingArray(ArrayRef<T> values) { assign(values.begin(), values.size()); }
  ExpandingArray(T value) { values_.fill(value); }
  ExpandingArray(const std::array<T, D>& values) : values_(values) {}

  std::array<T, D>& operator*() { return values_; }
  const std::array<T, D>& operator*() const { return values_; }
  std::array<T, D>* operator->() { return &values_; }
  const std::array<T, D>* operator->() const { return &values_; }
  operator ArrayRef<T>() const { return std::span<const T>(values_); }
  size_t size() const { return D; }
  friend bool operator==(const ExpandingArray&, const ExpandingArray&) = default;

 protected:
  ExpandingArray() = default;
  template <class At>
  void assign(At at, size_t count) {
    TORCH_CHECK(count == D, "Expected ", D, " values, but instead got ", count);
    for (T& v : values_) v = *at++;
  }
  std::array<T, D> values_;
};

template <size_t D, class T>
std::ostream& operator<<(std::ostream& to, const ExpandingArray<D, T>& values) {
  if (values.size() == 1) return to << (*values)[0];
  to << '[';
  for (size_t i = 0; i < D; ++i) to << (i ? ", " : "") << (*values)[i];
  return to << ']';
}

/// An ExpandingArray whose elements may be missing.
template <size_t D, class T = int64_t>
class ExpandingArrayWithOptionalElem : public ExpandingArray<D, std::optional<T>> {
 public:
  using Base = ExpandingArray<D, std::optional<T>>;
  using Base::Base;
  ExpandingArrayWithOptionalElem(std::initializer_list<T> values) { this->assign(values.begin(), values.size()); }
  ExpandingArrayWithOptionalElem(const std::vector<T>& values) { this->assign(values.begin(), values.size()); }
  ExpandingArrayWithOptionalElem(T value) : Base(std::optional<T>(value)) {}
  ExpandingArrayWithOptionalElem(const std::array<T, D>& values) { this->assign(values.begin(), D); }
};

template <size_t D, class T>
std::ostream& operator<<(std::ostream& to, const ExpandingArrayWithOptionalElem<D, T>& values) {
  to << (D == 1 ? "" : "[");
  for (size_t i = 0; i < D; ++i) {
    to << (i ? ", " : "");
    if (const auto& v = (*values)[i]) to << *v;
    else to << "None";
  }
  return to << (D == 1 ? "" : "]");
}

}  // namespace torch
