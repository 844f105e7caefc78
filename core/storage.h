// Storage: a block of memory on a device, shared by every tensor that views it.
#pragma once
#include <atomic>
#include <cstddef>

#include <vesta/core/base/intrusive_ptr.h>
#include <vesta/core/device.h>

namespace vesta {

struct Memory;

/// Owns memory on one device. All aliases share it, and with it one version counter: every write through any of them
/// raises `version` and notes the writing op, so that a stale saved tensor can name its culprit.
class VESTA_API Storage : public RefCounted {
 public:
  /// Frees `context`'s memory when the storage dies.
  using Deleter = void (*)(void* context);

  /// Allocates `nbytes` on `device`, not initialised; at least 64-byte aligned. Error(memory) when there is none.
  static intrusive_ptr<Storage> allocate(size_t nbytes, Device device);
  /// Wraps memory owned by somebody else; `deleter(context)` runs when the last tensor lets go. A read-only block
  /// refuses writes.
  static intrusive_ptr<Storage> wrap(void* data, size_t nbytes, Device device, void* context, Deleter deleter,
                                     bool read_only = false);
  static void destroy(Storage* s) noexcept;

  void* data() const { return data_; }
  size_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool read_only() const { return read_only_; }
  /// Returns what the backend that allocated the memory knows it by.
  void* context() const { return context_; }
  /// Returns whether resize_ may replace the memory: not where it is lent from outside.
  bool resizable() const { return !lent_; }
  /// Replaces the memory by a block of `nbytes`, keeping the first bytes. Aliases see the new block.
  void resize(size_t nbytes);
  /// Moves the bytes to `memory` of the CPU, which has room for them and is the storage's from now on as if wrapped:
  /// not resizable any more. Aliases see the new block. Returns the old one, for the caller to free; a null deleter
  /// means that it belongs to this header.
  [[nodiscard]] Memory move_to(const Memory& memory);

  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  const char* last_writer() const { return last_writer_; }
  /// Notes a write by `op`, whose name must live for ever (a literal or an Op's name).
  void bump(const char* op) {
    version_.store(version() + 1, std::memory_order_relaxed);
    last_writer_ = op;
  }

 private:
  Storage() = default;
  void* data_ = nullptr;
  size_t nbytes_ = 0;
  void* context_ = nullptr;
  Deleter deleter_ = nullptr;  // null: the small block lies behind this header
  const char* last_writer_ = "";
  std::atomic<uint32_t> version_{0};
  Device device_;
  uint16_t block_ = 64;  // bytes of the pool block that holds this header and, for a small tensor, its data
  bool read_only_ = false;
  bool lent_ = false;
};
static_assert(sizeof(Storage) <= 64, "a Storage header fills one cache line; the data of a small tensor follow it");

using StoragePtr = intrusive_ptr<Storage>;

}  // namespace vesta
