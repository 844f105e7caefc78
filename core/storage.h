// Storage: a block of memory on a device, shared by every tensor that views it.
#pragma once
#include <atomic>
#include <cstddef>

#include <vesta/core/base/intrusive_ptr.h>
#include <vesta/core/base/relaxed.h>
#include <vesta/core/device.h>

namespace vesta {

struct Memory;

/// A counter of writes for tensors that do not count for the others over their memory (`x.data`), and its last writer.
struct VersionCounter : RefCounted {
  std::atomic<uint32_t> version{0};
  const char* last_writer = "";
  static void destroy(VersionCounter* c) noexcept { delete c; }
};

class Storage;

/// The port by which a storage lets go of what is kept of its contents elsewhere (packed weights); set by the kernels
/// that keep it.
struct PackedPort {
  void (*drop)(const Storage* storage) noexcept = nullptr;
};
extern VESTA_API PackedPort packed_port;

/// A block of memory on one device. All aliases share it, and with it one version counter: every write through any of
/// them increments `version` and records the writing op, so that the error for an overwritten saved tensor can name
/// it. Tensors with a counter of their own increment that one instead (TensorImpl::bump); `writes` counts all.
class VESTA_API Storage : public RefCounted {
 public:
  /// A function that frees `context`'s memory when the storage dies.
  using Deleter = void (*)(void* context);

  /// Allocates `nbytes` on `device`, not initialised, at least 64-byte aligned. Error(memory) if there is none.
  static intrusive_ptr<Storage> allocate(size_t nbytes, Device device);
  /// Wraps memory that another owner holds; `deleter(context)` runs when the last tensor releases it. A read-only block
  /// refuses writes.
  static intrusive_ptr<Storage> wrap(void* data, size_t nbytes, Device device, void* context, Deleter deleter,
                                     bool read_only = false);
  static void destroy(Storage* s) noexcept;
  /// Returns the bytes on the CPU that the calling thread has allocated, less those that it has freed.
  static int64_t thread_balance() noexcept;

  void* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool read_only() const { return read_only_; }
  /// Returns the context by which the allocating backend identifies the memory.
  void* context() const { return context_; }
  /// Returns what frees the memory; null where it lies beside this header.
  Deleter deleter() const { return deleter_; }
  /// Makes `deleter(context)` run instead of the function that frees the memory, which it then has to do.
  void free_by(Deleter deleter, void* context) { deleter_ = deleter, context_ = context; }
  /// Returns whether resize_ may replace the memory: not if it is lent from outside.
  bool resizable() const { return !lent_; }
  /// Replaces the memory by a block of `nbytes`, keeping the first bytes. Aliases see the new block.
  void resize(size_t nbytes);
  /// Moves the bytes to `memory` of the CPU, which must have room for them. The storage then holds it as if wrapped:
  /// it is no longer resizable. Aliases see the new block. Returns the old block, for the caller to free; a null
  /// deleter means that it belongs to this header.
  [[nodiscard]] Memory move_to(const Memory& memory);

  uint32_t version() const { return writes() - unversioned_.load(std::memory_order_relaxed); }
  /// Counts every write to the memory: what a cache of its values compares. A write counts when it begins, where it may
  /// fail in the middle, and when it has ended.
  uint32_t writes() const { return writes_.load(std::memory_order_acquire); }
  /// The bytes of the smallest memory of which packed forms are kept: less is packed in no time.
  static constexpr size_t kLeastPacked = 16 * 1024;
  /// Returns whether `writes` counts all that is ever written: the memory is this storage's own, and no program knows
  /// its address.
  bool counts_all_writes() const { return !lent_ && !handed_out_; }
  /// Records that a program gets the address (numpy(), data_ptr(), DLPack), so that writes may come that nobody counts.
  /// There is no way back. Kernels, whose ops count their writes, do not call it.
  void hand_out() const {
    if (!handed_out_) [[unlikely]]
      forget_packed();
  }
  /// Records that packed forms of the contents are kept, which packed_port.drop lets go of when the storage dies.
  void expect_drop() const { packed_ = true; }
  const char* last_writer() const { return last_writer_; }
  /// Records a write by `op`, whose name must live forever (a literal or an Op's name).
  void bump(const char* op) {
    count_write();
    last_writer_ = op;
  }
  /// Records a write that another counter takes: `writes` grows, `version` does not.
  void bump_unversioned() {
    unversioned_.fetch_add(1, std::memory_order_relaxed);
    count_write();
  }
  /// Records that a write begins, where packed forms may be kept.
  void begin_write() {
    if (nbytes_ >= kLeastPacked) bump_unversioned();
  }

 private:
  Storage() = default;
  void forget_packed() const;
  /// Where packed forms may be kept, neither of two threads that write at once may hide the other.
  void count_write() {
    if (nbytes_ >= kLeastPacked) writes_.fetch_add(1, std::memory_order_acq_rel);
    else writes_.store(writes_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }

  void* data_ = nullptr;
  size_t nbytes_ = 0;
  void* context_ = nullptr;
  Deleter deleter_ = nullptr;  // null: the small block follows this header
  const char* last_writer_ = "";
  std::atomic<uint32_t> writes_{0};
  std::atomic<uint32_t> unversioned_{0};
  Device device_;
  uint16_t block_ = 64;  // bytes of the pool block that holds this header and, for a small tensor, its data
  bool read_only_ = false;
  Relaxed<bool> lent_ = false;
  mutable Relaxed<bool> handed_out_ = false;
  mutable Relaxed<bool> packed_ = false;  // set for large blocks only
};
static_assert(sizeof(Storage) <= 64, "a Storage header fills one cache line; the data of a small tensor follow it");

using StoragePtr = intrusive_ptr<Storage>;

}  // namespace vesta
