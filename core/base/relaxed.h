// Relaxed: a small value that several threads may read and write, without order and without cost.
#pragma once
#include <atomic>

namespace vesta {

/// A flag or a set of bits that one thread may change while others look: each sees the old value or the new one. A load
/// and a store are plain instructions. A change of some bits is a load and a store: of two at once, one may be lost.
template <class T>
class Relaxed {
 public:
  constexpr Relaxed(T value = {}) noexcept : value_(value) {}
  Relaxed(const Relaxed&) = delete;
  operator T() const noexcept { return value_.load(std::memory_order_relaxed); }
  T operator=(T value) noexcept {
    value_.store(value, std::memory_order_relaxed);
    return value;
  }
  T operator|=(T bits) noexcept { return *this = T(T(*this) | bits); }
  T operator&=(T bits) noexcept { return *this = T(T(*this) & bits); }

 private:
  std::atomic<T> value_;
};
static_assert(sizeof(Relaxed<bool>) == 1);

}  // namespace vesta
