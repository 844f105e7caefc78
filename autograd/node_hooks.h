// The kinds of hooks, and the lists of them that a node owns. They are registered through hooks.h.
//
// Hooks come and go on any thread while a backward runs on another one: each list has a lock. A run takes a copy of the
// list and calls the hooks of that, unlocked; nothing that may run a user's code or wait happens under a lock.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::autograd {

class GradList;  // <vesta/autograd/node.h>

/// A hook that is called with the gradient of a tensor as soon as it is complete.
class VESTA_API TensorHook {
 public:
  virtual ~TensorHook() = default;
  /// Returns a replacement, or an undefined tensor to keep `grad`.
  virtual Tensor call(const Tensor& grad) = 0;
};

/// A hook that is called before a node runs. It may replace the incoming gradients (some may be undefined).
class VESTA_API NodePreHook {
 public:
  virtual ~NodePreHook() = default;
  virtual void call(GradList& grad_outputs) = 0;
};

/// A hook that is called after a node ran. It may replace the gradients of the node's inputs.
class VESTA_API NodePostHook {
 public:
  virtual ~NodePostHook() = default;
  virtual void call(GradList& grad_inputs, const GradList& grad_outputs) = 0;
};

/// A hook that is called with a leaf after a gradient was added to its grad.
class VESTA_API PostAccumulateHook {
 public:
  virtual ~PostAccumulateHook() = default;
  virtual void call(const Tensor& leaf) = 0;
};

/// The id of a registered hook; 0 is none.
using HookId = uint64_t;

/// A lock that is held for a few instructions or, rarely, for one addition. It spins, then yields, and fits in a byte.
class VESTA_API TinyLock {
 public:
  void lock() noexcept {
    if (held_.exchange(true, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  void unlock() noexcept { held_.store(false, std::memory_order_release); }

 private:
  void wait() noexcept;
  std::atomic<bool> held_{false};
};

/// The hooks of one kind, in order of registration.
template <class Hook>
class HookList {
 public:
  struct Entry {
    HookId id;
    uint32_t input_nr;  // of tensor hooks on a node: the output of the op they belong to
    std::shared_ptr<Hook> hook;  // shared: a hook that removes itself while it runs lives on until it returns
  };
  void add(Entry e) {
    std::lock_guard lock(lock_);
    entries_.push_back(std::move(e));
  }
  /// Removes a hook, if it is here.
  void remove(HookId id) {
    std::shared_ptr<Hook> gone;  // dies after the lock is released
    std::lock_guard lock(lock_);
    for (size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].id != id) continue;
      gone = std::move(entries_[i].hook);
      entries_.erase(entries_.begin() + int64_t(i));
      return;
    }
  }
  bool empty() const {
    std::lock_guard lock(lock_);
    return entries_.empty();
  }
  /// Returns a snapshot of the hooks.
  std::vector<Entry> now() const {
    std::lock_guard lock(lock_);
    return entries_;
  }
  /// Calls f for each entry, until it returns another number than 0; f runs under the lock.
  template <class F>
  int visit(F f) const {
    std::lock_guard lock(lock_);
    for (const Entry& e : entries_) {
      if (int r = f(e)) return r;
    }
    return 0;
  }

 private:
  mutable TinyLock lock_;
  std::vector<Entry> entries_;
};

/// The slot in which retain_grad() keeps a non-leaf's gradient. It is shared by the tensor and the node that computed
/// it, so that neither owns the other.
struct RetainedGrad : RefCounted {
  Tensor get() {
    std::lock_guard lock(lock_);
    return grad_;
  }
  void set(Tensor grad) {
    std::lock_guard lock(lock_);
    std::swap(grad_, grad);
  }
  /// Replaces the gradient, if it still is `before` (or undefined, as `before` is); returns whether it was.
  bool replace(const Tensor& before, Tensor grad) {
    std::lock_guard lock(lock_);
    const bool unchanged = before.defined() ? grad_.defined() && grad_.is_same(before) : !grad_.defined();
    if (unchanged) std::swap(grad_, grad);
    return unchanged;
  }
  static void destroy(RetainedGrad* r) noexcept { delete r; }

 private:
  Tensor grad_;
  TinyLock lock_;
};

/// The retained gradients of a node, by the number of the output.
class RetainedList {
 public:
  using Entry = std::pair<uint32_t, intrusive_ptr<RetainedGrad>>;
  void add(uint32_t output_nr, intrusive_ptr<RetainedGrad> place) {
    std::lock_guard lock(lock_);
    entries_.emplace_back(output_nr, std::move(place));
  }
  void remove(const intrusive_ptr<RetainedGrad>& place) {
    std::lock_guard lock(lock_);
    std::erase_if(entries_, [&](const Entry& e) { return e.second == place; });
  }
  /// Returns a snapshot of the slots.
  std::vector<Entry> now() const {
    std::lock_guard lock(lock_);
    return entries_;
  }

 private:
  mutable TinyLock lock_;
  std::vector<Entry> entries_;
};

/// All hooks of a node. A leaf owns its hooks, and its accumulator borrows them.
struct VESTA_API NodeHooks {
  HookList<TensorHook> tensor;
  HookList<NodePreHook> pre;
  HookList<NodePostHook> post;
  HookList<PostAccumulateHook> post_accumulate;
  RetainedList retained;
  std::string module_path;  // which module the op ran in, for anomaly reports; empty where unknown
  std::shared_ptr<void> attached;  // what a language binding keeps with the node (Python's metadata)
  void* stream = nullptr;  // of devices with streams: where the op ran
};

}  // namespace vesta::autograd
