#include <vesta/cuda/lib/channels_last.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <unordered_map>
#include <vector>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/allocator.h>

namespace vesta::cuda {
namespace {

using DeviceBlock = DeviceAllocator::Block;
constexpr int64_t kMostKept = 8;  // the part of a device's memory: 1 / kMostKept

/// A kept copy, its source, and how often it will be read.
struct Kept {
  Tensor copy;
  Dims sizes, strides;
  const void* data;
  DType dtype;
  uint32_t version;
  Stream stream;
  int readers = 1;  // to come

  Kept(const Tensor& copy, const Tensor& of, Stream stream)
      : copy(copy),
        sizes(of.sizes()),
        strides(of.strides()),
        data(of.impl()->data()),
        dtype(of.dtype()),
        version(of.impl()->storage()->writes()),
        stream(stream) {}
  bool is_of(const Tensor& t, Stream on) const {
    return data == t.impl()->data() && dtype == t.dtype() && version == t.impl()->storage()->writes() && stream == on &&
           std::ranges::equal(sizes, t.sizes()) && std::ranges::equal(strides, t.strides());
  }
  int64_t nbytes() const { return int64_t(copy.impl()->storage()->nbytes()); }
};
using Copies = std::vector<Kept>;

/// The copies, by the block of their source. Copies are removed under the lock and destroyed after it, because freeing
/// them comes back here.
struct Shelf {
  std::mutex lock;
  std::unordered_map<const void*, Copies> copies;
  std::array<int64_t, kMaxDevices> bytes{};
  std::array<bool, kMaxDevices> helps{};  // its allocator asks for memory
  std::atomic<uint64_t> made{0}, taken{0};

  static Shelf& get() {
    static auto& all = *new Shelf;  // never destroyed: other threads may compute as the process ends
    return all;
  }
  Copies take_all(const void* block) {
    std::lock_guard guard(lock);
    const auto at = copies.find(block);
    if (at == copies.end()) return {};
    Copies gone = std::move(at->second);
    copies.erase(at);
    for (const Kept& k : gone) bytes[size_t(k.stream.device())] -= k.nbytes();
    return gone;
  }
  /// Returns the kept copy of t, which is removed with its last reader; undefined if there is none.
  Tensor take(const void* block, const Tensor& t, Stream on) {
    Copies gone;
    std::lock_guard guard(lock);
    const auto at = copies.find(block);
    if (at == copies.end()) return {};
    Tensor found;
    for (Kept& k : at->second) {
      if (!k.is_of(t, on)) continue;
      found = k.copy, --k.readers;
      break;
    }
    drop_useless(at, t, gone);
    return found;
  }
  void put(DeviceBlock* block, const Tensor& copy, const Tensor& t, Stream on, int64_t most) {
    Kept kept(copy, t, on);
    Copies gone;
    const int device = on.device();
    std::lock_guard guard(lock);
    if (const auto at = copies.find(block); at != copies.end()) {
      for (Kept& k : at->second) {
        if (!k.is_of(t, on)) continue;
        std::swap(k.copy, kept.copy);  // two forwards read one tensor: the newer copy serves both
        ++k.readers;
        return;
      }
      drop_useless(at, t, gone);
    }
    if (bytes[size_t(device)] + kept.nbytes() > most) return;
    bytes[size_t(device)] += kept.nbytes();
    std::atomic_ref(block->watched).store(true, std::memory_order_relaxed);
    copies[block].push_back(std::move(kept));
    if (std::exchange(helps[size_t(device)], true)) return;
    allocator(device).add_oom_callback([this, device] { clear(device); });
  }
  /// Moves to `gone` the copies that nobody will read: copies without readers, and those of older versions of t's
  /// memory.
  void drop_useless(std::unordered_map<const void*, Copies>::iterator at, const Tensor& t, Copies& gone) {
    Copies left;
    for (Kept& k : at->second) {
      const bool stays = k.readers > 0 && k.version == t.impl()->storage()->writes();
      if (!stays) bytes[size_t(k.stream.device())] -= k.nbytes();
      (stays ? left : gone).push_back(std::move(k));
    }
    if (left.empty()) copies.erase(at);
    else at->second = std::move(left);
  }
  void clear(int device) {
    std::vector<Copies> gone;
    std::lock_guard guard(lock);
    for (auto at = copies.begin(); at != copies.end();) {
      const bool here = at->second.front().stream.device() == device;
      if (here) gone.push_back(std::move(at->second));
      at = here ? copies.erase(at) : std::next(at);
    }
    bytes[size_t(device)] = 0;
  }
};

/// Returns the block of an allocator of ours that holds a tensor's memory, or null.
DeviceBlock* block_of(const Tensor& t) {
  const Storage& s = *t.impl()->storage();
  return s.resizable() ? static_cast<DeviceBlock*>(s.context()) : nullptr;
}

}  // namespace

Tensor channels_last(const Tensor& t, LayoutUse use) {
  Shelf& shelf = Shelf::get();
  const int device = t.device().index();
  const Stream stream = current_stream(device);
  DeviceBlock* block = block_of(t);
  if (use.takes && block && std::atomic_ref(block->watched).load(std::memory_order_relaxed) && !stream.is_captured()) {
    if (Tensor found = shelf.take(block, t, stream); found.defined()) {
      shelf.taken.fetch_add(1, std::memory_order_relaxed);
      return found;
    }
  }
  Tensor laid = contiguous_values(channels_behind(t));
  if (reinterpret_cast<uintptr_t>(laid.impl()->data()) % 16 != 0) laid = clone(laid);
  if (laid.impl()->storage() == t.impl()->storage()) return laid;  // it had this layout already
  shelf.made.fetch_add(1, std::memory_order_relaxed);
  if (use.keeps && block && !stream.is_captured())
    shelf.put(block, laid, t, stream, int64_t(properties(device).total_memory) / kMostKept);
  return laid;
}

void forget_layouts(const void* block) { Shelf::get().take_all(block); }

LayoutCounters layout_counters() {
  Shelf& shelf = Shelf::get();
  std::lock_guard guard(shelf.lock);
  LayoutCounters c{shelf.made.load(), shelf.taken.load(), 0};
  for (int64_t bytes : shelf.bytes) c.kept_bytes += bytes;
  return c;
}

}  // namespace vesta::cuda
