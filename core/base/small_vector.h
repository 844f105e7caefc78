// A vector whose first N elements need no allocation.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

namespace vesta {

/// A vector of trivially copyable elements, the first N of them inline.
template <class T, size_t N>
  requires std::is_trivially_copyable_v<T>
class SmallVector {
 public:
  SmallVector() = default;
  explicit SmallVector(size_t n, T value = T{}) { resize(n, value); }
  SmallVector(std::initializer_list<T> l) : SmallVector(std::span<const T>(l.begin(), l.size())) {}
  SmallVector(std::span<const T> s) { assign(s); }
  SmallVector(std::span<T> s) { assign(s); }
  SmallVector(const SmallVector& o) { assign(o); }
  SmallVector(SmallVector&& o) noexcept { take(o); }
  SmallVector& operator=(const SmallVector& o) {
    if (this != &o) assign(o);
    return *this;
  }
  SmallVector& operator=(SmallVector&& o) noexcept {
    if (this != &o) {
      if (heap()) delete[] data_;
      take(o);
    }
    return *this;
  }
  ~SmallVector() {
    if (heap()) delete[] data_;
  }

  void assign(std::span<const T> s) {
    reserve(s.size());
    if (!s.empty()) std::memmove(data_, s.data(), s.size() * sizeof(T));
    size_ = s.size();
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    size_t capacity = std::max(n, 2 * capacity_);
    T* grown = new T[capacity];
    std::memcpy(grown, data_, size_ * sizeof(T));
    if (heap()) delete[] data_;
    data_ = grown, capacity_ = capacity;
  }
  void resize(size_t n, T value = T{}) {
    reserve(n);
    for (size_t i = size_; i < n; ++i) data_[i] = value;
    size_ = n;
  }
  void push_back(T v) {
    if (size_ == capacity_) reserve(size_ + 1);
    data_[size_++] = v;
  }
  void pop_back() { --size_; }
  void clear() { size_ = 0; }
  void insert(size_t at, T v) {
    push_back(v);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
  }
  void erase(size_t at) {
    std::memmove(data_ + at, data_ + at + 1, (size_ - at - 1) * sizeof(T));
    --size_;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  operator std::span<const T>() const { return {data_, size_}; }
  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool heap() const { return data_ != inline_; }
  void take(SmallVector& o) noexcept {
    if (o.heap()) {
      data_ = o.data_, capacity_ = o.capacity_;
      o.data_ = o.inline_, o.capacity_ = N;
    } else {
      data_ = inline_, capacity_ = N;
      std::memcpy(inline_, o.inline_, o.size_ * sizeof(T));
    }
    size_ = o.size_, o.size_ = 0;
  }
  T inline_[N];
  T* data_ = inline_;
  size_t size_ = 0, capacity_ = N;
};

/// Sizes or strides; up to six dimensions need no allocation.
using Dims = SmallVector<int64_t, 6>;
/// A view of sizes, strides or dimension lists.
using IntSpan = std::span<const int64_t>;

}  // namespace vesta
