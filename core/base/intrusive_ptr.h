// A pointer to an object that counts its own references.
#pragma once
#include <atomic>
#include <cstdint>
#include <utility>

namespace vesta {

/// A base that counts references in the object; `T::destroy(T*)` runs when the last one is dropped.
class RefCounted {
 public:
  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  /// Counts the first reference, to an object that no other thread sees yet: no locked instruction is needed.
  void retain_first() const noexcept { refs_.store(1, std::memory_order_relaxed); }
  /// Drops a reference; returns whether it was the last.
  bool release() const noexcept {
    if (refs_.load(std::memory_order_acquire) == 1) {  // sole owner: no other thread can raise the count
      refs_.store(0, std::memory_order_relaxed);
      return true;
    }
    return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire); }

 protected:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

/// A pointer that owns one reference to a RefCounted object, or none.
template <class T>
class intrusive_ptr {
 public:
  constexpr intrusive_ptr() noexcept = default;
  constexpr intrusive_ptr(std::nullptr_t) noexcept {}
  explicit intrusive_ptr(T* p) noexcept : p_(p) {
    if (p_) p_->retain();
  }
  template <class U>
    requires std::convertible_to<U*, T*>
  intrusive_ptr(const intrusive_ptr<U>& o) noexcept : intrusive_ptr(static_cast<T*>(o.get())) {}
  template <class U>
    requires std::convertible_to<U*, T*>
  intrusive_ptr(intrusive_ptr<U>&& o) noexcept : p_(o.detach()) {}
  intrusive_ptr(const intrusive_ptr& o) noexcept : intrusive_ptr(o.p_) {}
  intrusive_ptr(intrusive_ptr&& o) noexcept : p_(std::exchange(o.p_, nullptr)) {}
  intrusive_ptr& operator=(const intrusive_ptr& o) noexcept {
    intrusive_ptr(o).swap(*this);
    return *this;
  }
  intrusive_ptr& operator=(intrusive_ptr&& o) noexcept {
    intrusive_ptr(std::move(o)).swap(*this);
    return *this;
  }
  ~intrusive_ptr() {
    if (p_ && p_->release()) T::destroy(p_);
  }

  /// Takes the first reference to a new object.
  static intrusive_ptr first(T* p) noexcept {
    p->retain_first();
    return adopt(p);
  }
  /// Takes over a reference that is already counted.
  static intrusive_ptr adopt(T* p) noexcept {
    intrusive_ptr r;
    r.p_ = p;
    return r;
  }
  /// Releases the counted reference to the caller, who owns it now.
  T* detach() noexcept { return std::exchange(p_, nullptr); }
  void swap(intrusive_ptr& o) noexcept { std::swap(p_, o.p_); }
  void reset() noexcept { intrusive_ptr().swap(*this); }

  T* get() const noexcept { return p_; }
  T& operator*() const noexcept { return *p_; }
  T* operator->() const noexcept { return p_; }
  explicit operator bool() const noexcept { return p_ != nullptr; }
  friend bool operator==(const intrusive_ptr& a, const intrusive_ptr& b) noexcept { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

}  // namespace vesta
