// The cache of page-locked host memory, which asynchronous copies between host and device need.
//
// Sizes are powers of two; up to 2 MiB they are cut from segments of 4 MiB, because driver calls are slow. Code that
// queues a copy says so (record_use), and an event is recorded at once; a freed block is reused only after all its
// events are done. Unlike device memory, host memory is used by the host at once, so no stream can wait in its place.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/cuda/memory/allocator_options.h>
#include <vesta/cuda/memory/mem_driver.h>

namespace vesta::cuda {

/// The byte counts of a PinnedAllocator.
struct PinnedStats {
  int64_t reserved_bytes = 0;  // from the driver
  int64_t allocated_bytes = 0;  // held by callers
  int64_t pending_bytes = 0;  // freed, but in use by a stream
  int64_t retired_bytes = 0;  // freed, but read by a captured graph
  int64_t num_host_alloc = 0;
  int64_t num_host_free = 0;
};

/// The cache of page-locked memory for all devices. Any thread may call any member.
template <HostMemDriver D>
class PinnedAllocator {
 public:
  using Stream = typename D::Stream;
  using Event = typename D::Event;

  /// A range of page-locked memory. Callers read the first three members.
  struct Block {
    void* data = nullptr;
    size_t size = 0;
    size_t requested = 0;

   private:
    friend class PinnedAllocator;
    struct Use {
      Stream stream{};
      Event event{};
      bool has_event = false;
      bool recorded = false;
    };
    std::vector<Use> uses;
    size_t segment = 0;  // its base, as a number
    bool allocated = false;
    bool captured = false;  // a graph reads or writes it: never reused
  };

  /// Makes an allocator over `driver`, which must outlive it.
  explicit PinnedAllocator(D& driver) : driver_(driver) {}
  ~PinnedAllocator();
  PinnedAllocator(const PinnedAllocator&) = delete;
  PinnedAllocator& operator=(const PinnedAllocator&) = delete;

  /// Allocates at least `nbytes`, 512-byte aligned; nullptr for 0 bytes. Error(memory) if the host has no more.
  Block* allocate(size_t nbytes);
  /// Records that work that uses the block was just queued on `stream`.
  void record_use(Block* block, Stream stream);
  /// Frees a block; copies may still be queued. nullptr is ignored. Error(runtime) at a second free.
  void free(Block* block);
  /// Returns the allocated block that holds an address, or nullptr if the address is not page-locked by us.
  Block* find(const void* p) const;
  /// Waits for pending blocks and returns all free segments to the driver. Error(runtime) during a capture.
  void empty_cache();
  PinnedStats stats() const;

  /// A scope in which events are not queried: make one for as long as a graph is captured anywhere.
  class CaptureScope {
   public:
    explicit CaptureScope(PinnedAllocator& allocator) : allocator_(allocator) { change(1); }
    ~CaptureScope() { change(-1); }
    CaptureScope(const CaptureScope&) = delete;
    CaptureScope& operator=(const CaptureScope&) = delete;

   private:
    void change(int by) {
      std::lock_guard lock(allocator_.mutex_);
      allocator_.captures_ += by;
    }
    PinnedAllocator& allocator_;
  };

 private:
  using Use = typename Block::Use;
  struct Segment {
    size_t size = 0;
    size_t busy = 0;  // blocks that are not in a bin
    std::vector<std::unique_ptr<Block>> blocks;
  };
  static constexpr size_t kSegment = 4 * kMiB;
  static constexpr size_t kLargestSlot = 2 * kMiB;

  static size_t bin_of(size_t size) { return size_t(std::bit_width(size)) - 1; }
  Block* take(size_t size);
  bool grow(size_t size);
  bool done(Block* b, bool wait);
  bool record(Use& use);
  void put(Block* b);
  void poll(size_t most, bool wait);
  void release();
  template <class F>
  static bool attempt(F&& step) {
    try {
      step();
      return true;
    } catch (const Error&) {
      return false;
    }
  }

  mutable std::mutex mutex_;
  D& driver_;
  std::array<std::vector<Block*>, 64> bins_;
  std::vector<Block*> pending_;
  std::map<uintptr_t, Segment> segments_;
  PinnedStats stats_;
  int captures_ = 0;
};

template <HostMemDriver D>
auto PinnedAllocator<D>::allocate(size_t nbytes) -> Block* {
  if (nbytes == 0) return nullptr;
  std::lock_guard lock(mutex_);
  Block* b = nullptr;
  if (nbytes <= kMaxRequest) {
    const size_t size = std::bit_ceil(std::max(nbytes, kMinBlock));
    if (captures_ == 0) poll(8, false);
    b = take(size);
    if (!b && grow(size)) b = take(size);
    for (bool wait : {false, true}) {  // the host is full: return what is free, then wait for what will be
      if (b || captures_ > 0) break;
      poll(pending_.size(), wait);
      if ((b = take(size))) break;
      release();
      if (grow(size)) b = take(size);
    }
  }
  VESTA_CHECK(b, memory, "pin_memory: expected ", nbytes,
              " bytes of page-locked memory (nbytes), got none: ", stats_.reserved_bytes, " bytes are reserved, ",
              stats_.allocated_bytes, " allocated, ", stats_.pending_bytes,
              " in use by streams. Pin less, or free pinned tensors.");
  b->requested = nbytes;
  return b;
}

template <HostMemDriver D>
void PinnedAllocator<D>::record_use(Block* b, Stream stream) {
  if (!b) return;
  std::lock_guard lock(mutex_);
  VESTA_CHECK(b->allocated, runtime, "record_use: expected an allocated block, got one that is free.");
  bool capturing = true;
  attempt([&] { capturing = driver_.is_capturing(stream); });
  if (capturing) {
    b->captured = true;
    return;
  }
  auto at = std::find_if(b->uses.begin(), b->uses.end(), [&](const Use& u) { return u.stream == stream; });
  if (at == b->uses.end()) at = b->uses.insert(at, Use{stream, Event{}, false, false});
  at->recorded = false;
  record(*at);  // if the driver refuses, a later event of the stream will do
}

template <HostMemDriver D>
void PinnedAllocator<D>::free(Block* b) {
  if (!b) return;
  std::lock_guard lock(mutex_);
  VESTA_CHECK(b->allocated, runtime, "free: expected an allocated block of pinned memory, got one that is free.");
  if (!b->captured && !b->uses.empty()) pending_.push_back(b);
  b->allocated = false;
  stats_.allocated_bytes -= int64_t(b->size);
  if (b->captured) stats_.retired_bytes += int64_t(b->size);
  else if (!b->uses.empty()) stats_.pending_bytes += int64_t(b->size);
  else put(b);
}

template <HostMemDriver D>
auto PinnedAllocator<D>::find(const void* p) const -> Block* {
  std::lock_guard lock(mutex_);
  auto at = segments_.upper_bound(uintptr_t(p));
  if (at == segments_.begin()) return nullptr;
  --at;
  const size_t offset = uintptr_t(p) - at->first;
  if (offset >= at->second.size) return nullptr;
  Block* b = at->second.blocks[offset / at->second.blocks.front()->size].get();
  return b->allocated ? b : nullptr;
}

template <HostMemDriver D>
void PinnedAllocator<D>::empty_cache() {
  std::lock_guard lock(mutex_);
  VESTA_CHECK(captures_ == 0, runtime,
              "empty_cache: expected no graph capture under way, got one. Call it before or after.");
  poll(pending_.size(), true);
  release();
}

template <HostMemDriver D>
PinnedStats PinnedAllocator<D>::stats() const {
  std::lock_guard lock(mutex_);
  return stats_;
}

template <HostMemDriver D>
PinnedAllocator<D>::~PinnedAllocator() {
  poll(pending_.size(), true);
  for (auto& [base, segment] : segments_) {
    for (auto& b : segment.blocks)
      for (Use& u : b->uses)
        if (u.has_event) attempt([&] { driver_.event_put(u.event); });
    attempt([this, at = base] { driver_.host_free(reinterpret_cast<void*>(at)); });
  }
}

/// Takes a free block of exactly `size`.
template <HostMemDriver D>
auto PinnedAllocator<D>::take(size_t size) -> Block* {
  auto& bin = bins_[bin_of(size)];
  if (bin.empty()) return nullptr;
  Block* b = bin.back();
  bin.pop_back();
  ++segments_.find(b->segment)->second.busy;
  b->allocated = true;
  stats_.allocated_bytes += int64_t(size);
  return b;
}

/// Adds a segment of blocks of `size`; returns false if the host has no more.
template <HostMemDriver D>
bool PinnedAllocator<D>::grow(size_t size) {
  Segment s;
  s.size = size <= kLargestSlot ? kSegment : size;
  for (size_t i = 0; i < s.size / size; ++i) s.blocks.push_back(std::make_unique<Block>());
  auto& bin = bins_[bin_of(size)];
  bin.reserve(bin.size() + s.blocks.size());
  std::map<uintptr_t, Segment> node;  // what may fail for lack of host memory comes before the driver's memory
  node.emplace(0, std::move(s));
  void* base = driver_.host_malloc(node.begin()->second.size);
  if (!base) return false;
  auto handle = node.extract(node.begin());
  handle.key() = uintptr_t(base);
  Segment& added = segments_.insert(std::move(handle)).position->second;
  for (size_t i = 0; i < added.blocks.size(); ++i) {
    Block* b = added.blocks[i].get();
    b->data = static_cast<uint8_t*>(base) + i * size;
    b->size = size;
    b->segment = uintptr_t(base);
    bin.push_back(b);
  }
  std::reverse(bin.end() - long(added.blocks.size()), bin.end());  // lowest address first
  stats_.reserved_bytes += int64_t(added.size);
  ++stats_.num_host_alloc;
  return true;
}

/// Puts an unused block into its bin, which has room because the block came from there.
template <HostMemDriver D>
void PinnedAllocator<D>::put(Block* b) {
  bins_[bin_of(b->size)].push_back(b);
  --segments_.find(b->segment)->second.busy;
}

template <HostMemDriver D>
bool PinnedAllocator<D>::record(Use& use) {
  return attempt([&] {
    if (!use.has_event) use.event = driver_.event_get();
    use.has_event = true;
    driver_.event_record(use.event, use.stream);
    use.recorded = true;
  });
}

/// Returns whether all uses of a block are over, or waits until they are; also false if the driver cannot tell.
template <HostMemDriver D>
bool PinnedAllocator<D>::done(Block* b, bool wait) {
  while (!b->uses.empty()) {
    Use& u = b->uses.back();
    if (!u.recorded && !record(u)) return false;
    bool over = false;
    attempt([&] {
      if (wait) driver_.event_sync(u.event);
      over = wait || driver_.event_query(u.event);
    });
    if (!over) return false;
    attempt([&] { driver_.event_put(u.event); });
    b->uses.pop_back();
  }
  return true;
}

/// Checks up to `most` pending blocks and frees those that are done; the others go to the end of the list.
template <HostMemDriver D>
void PinnedAllocator<D>::poll(size_t most, bool wait) {
  const size_t looks = std::min(most, pending_.size());
  size_t kept = 0;
  for (size_t i = 0; i < looks; ++i) {
    Block* b = pending_[i];
    if (!done(b, wait)) {
      pending_[kept++] = b;
      continue;
    }
    stats_.pending_bytes -= int64_t(b->size);
    put(b);
  }
  std::rotate(pending_.begin(), pending_.begin() + long(looks), pending_.end());
  pending_.erase(pending_.end() - long(looks - kept), pending_.end());
}

/// Returns segments to the driver of which nothing is in use.
template <HostMemDriver D>
void PinnedAllocator<D>::release() {
  for (auto at = segments_.begin(); at != segments_.end();) {
    auto here = at++;
    if (here->second.busy > 0) continue;
    if (!attempt([&] { driver_.host_free(reinterpret_cast<void*>(here->first)); })) continue;
    std::erase_if(bins_[bin_of(here->second.blocks.front()->size)],
                  [&](const Block* b) { return b->segment == here->first; });
    stats_.reserved_bytes -= int64_t(here->second.size);
    ++stats_.num_host_free;
    segments_.erase(here);
  }
}

}  // namespace vesta::cuda
