// The caching allocator of device memory: requests are cut from segments that stay with the process, so that a
// training step in steady state makes no driver call at all.
//
// A tour of one allocation. allocate(n, S) rounds n up and looks into the bins of stream S: a hit is cut to size, and
// the rest goes back to the bins (this file). A miss (caching_allocator_reuse.h) looks at blocks that other streams
// used, then at blocks that other streams freed, behind an event that S waits for; then the allocator grows
// (caching_allocator_segments.h): by a segment, or by mapping more of an address range. If the device has no more
// memory, it takes the steps of a ladder: callbacks, finished events, returning cached memory, waiting for all
// streams. Then Error(memory) says what holds the memory (caching_allocator_inspect.h). free() joins a block with its
// free neighbours; a block that other streams used (record_stream) is pending until their events are done, or until
// its next user waits for them.
//
// Note [Streams share memory, not neighbours]: a block is free *for its stream*. Two free neighbours of different
// streams are not joined, because a user of the whole would have to wait for both. They are joined when a user does
// wait (reuse_across_streams) or when the host has waited (release_cached). Rejected: a segment per stream as in
// PyTorch, where memory freed on one stream is lost to the others until the device is full.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <vesta/core/base/error.h>
#include <vesta/cuda/memory/adaptive_mutex.h>
#include <vesta/cuda/memory/allocator_options.h>
#include <vesta/cuda/memory/allocator_snapshot.h>
#include <vesta/cuda/memory/allocator_stats.h>
#include <vesta/cuda/memory/block_pool.h>
#include <vesta/cuda/memory/mem_driver.h>
#include <vesta/cuda/memory/stream_table.h>

namespace vesta::cuda {

/// A function that returns the name of the op that the calling thread runs, or nullptr; the name lives as long as the
/// process.
using OpName = const char* (*)();

/// The cache of one device's memory. Any thread may call any member; one mutex guards all.
template <MemDriver D>
class CachingAllocator {
 public:
  using Stream = typename D::Stream;
  using Event = typename D::Event;
  using Block = cuda::Block<D>;

  /// Makes the allocator of `device` over `driver`, which must outlive it.
  CachingAllocator(int device, D& driver, const Options& options = {});
  /// Returns everything to the driver, after waiting for all streams. No block may be used afterwards.
  ~CachingAllocator();
  CachingAllocator(const CachingAllocator&) = delete;
  CachingAllocator& operator=(const CachingAllocator&) = delete;

  /// Allocates at least `nbytes`, 512-byte aligned, for use on `stream`; nullptr for 0 bytes. Error(memory) naming
  /// what holds the memory; the allocator stays usable after it.
  Block* allocate(size_t nbytes, Stream stream);
  /// Frees a block; work on its streams may still be queued. nullptr is ignored. Error(runtime) at a second free.
  void free(Block* block);
  /// Records that work queued on `stream`, which is not the block's own, uses the block: it is reused only after that
  /// work.
  void record_stream(Block* block, Stream stream);
  /// Returns the allocated block that holds an address, or nullptr. Slow: for foreign pointers.
  Block* find(const void* p) const;

  /// Waits for pending events and returns all free segments to the driver. Error(runtime) during a capture.
  void empty_cache();
  /// Limits the reserved bytes to a part of the device's memory, 0 < fraction <= 1.
  void set_fraction(double fraction);
  /// Adds a callback that is called, without the lock, before Error(memory); it may free blocks.
  /// Returns its number.
  int add_oom_callback(std::function<void()> callback);
  void remove_oom_callback(int number);

  /// Makes a private pool and returns its id.
  PoolId begin_pool(PoolKind kind = PoolKind::capture);
  /// Adds an owner to a pool: a second graph that shares it.
  void retain_pool(PoolId id);
  /// Drops an owner. After the last one, memory is returned to the driver: free segments now (the host waits for all
  /// known streams), the others when their blocks are freed. No graph that uses the pool may be replayed any more.
  void end_pool(PoolId id);
  /// Registers a stream that only replays graphs, so that end_pool waits for it.
  void know_stream(Stream stream);
  class PoolScope;
  /// Directs the calling thread's allocations to a private pool as long as the returned object lives.
  PoolScope use_pool(PoolId id) { return PoolScope(*this, id); }

  /// Returns a copy of the counters.
  Stats stats() const;
  void reset_peak();
  void reset_accumulated();
  /// Returns segments, blocks and the history. Error(memory) only for host memory.
  Snapshot snapshot() const;
  /// Starts a new history of up to `max_entries` events, or stops it.
  void record_history(bool on, size_t max_entries = 100000);
  /// Sets the function that names the allocating op, for the history, snapshots and reports.
  void set_op_name(OpName name);
  /// Checks every link, bin and count; Error(runtime) naming what is wrong. For tests.
  void check() const;

  int device() const { return device_; }
  const Options& options() const { return options_; }

 private:
  using Pool = BlockPool<D>;
  using Pools = PoolPair<D>;
  using Seg = Segment<D>;
  using Lock = std::lock_guard<AdaptiveMutex>;
  /// The request of one call of allocate.
  struct Request {
    size_t nbytes;
    size_t size;
    uint32_t stream;
    Pool* pool;
  };
  /// A change of inactive_split: free blocks that are parts of their segments.
  struct Holes {
    int64_t count = 0, bytes = 0;
  };

  // The hit path, below. Functions that change holes_ have a twin that changes a local variable, which stays in
  // registers.
  Pools& current_pools();
  Block* find_fit(const Request& r);
  bool acceptable(size_t size, const Request& r) const;
  bool may_split(const Block* b, size_t size) const;
  Block* cut(Block* b, size_t size) noexcept;
  static void put_free(Block* b, Holes& holes) noexcept;
  static void take_free(Block* b, Holes& holes) noexcept;
  void put_free(Block* b) noexcept { put_free(b, holes_); }
  void take_free(Block* b) noexcept { take_free(b, holes_); }
  Block* join_neighbours(Block* b, Holes& holes) noexcept;
  void absorb_next(Block* b) noexcept;
  Block* make_free(Block* b, uint32_t stream, uint64_t freed_at) noexcept;
  Block* settle(Block* b, Holes& holes) noexcept;
  Block* hand_out(Block* b, const Request& r, Holes holes);
  void flush_holes(bool small);
  void note(TraceAction action, uint64_t addr, size_t size, uint64_t stream, const char* op = nullptr) const;

  // Misses, caching_allocator_reuse.h.
  Block* find_slowly(const Request& r);
  Block* spare_whole(Block* whole, const Request& r);
  bool events_allowed(const Request& r);
  template <class F>
  bool attempt(F&& step);
  void free_used(Block* b);
  bool record_uses(Block* b);
  void complete(Block* b);
  void drop_uses(Block* b);
  void record_deferred(Pool& pool);
  bool poll(Pool& pool, int queries);
  bool poll_all();
  bool sync_pending();
  Block* reuse_across_streams(const Request& r);
  std::pair<Block*, Block*> alike(const Request& r) const;
  Block* take_run(const Request& r, Block* first, Block* last);
  std::pair<Block*, Block*> best_run(const Request& r) const;
  int wait_for(Block* b, uint32_t stream);
  void end_pending(Block* b);
  Block* climb(const Request& r);
  Block* try_again(const Request& r, bool gated);
  void run_callbacks();
  template <class F>
  void each_pools(F&& f) const;
  template <class F>
  void each_pools(F&& f);

  // Segments, caching_allocator_segments.h.
  Block* grow(const Request& r);
  Block* grow_by_segment(const Request& r);
  Block* grow_mapped(const Request& r);
  bool within_limit(size_t bytes) const;
  Seg* expandable_segment(Pool& pool, Stream stream);
  std::pair<Block*, size_t> best_hole(Seg& s, const Request& r) const;
  size_t map_chunks(Seg& s, Block* hole, size_t bytes);
  Block* commit(Block* hole, size_t bytes, uint32_t stream) noexcept;
  void collect_garbage(const Request& r);
  void release_cached();
  void release_pool(Pool& pool);
  bool release_segment(Seg* s);
  void unmap_free(Seg* s);
  Block* unmap_run(Seg* s, Block* first, Block* last);
  size_t unmap_chunks(Seg* s, uint8_t* from, uint8_t* to);
  bool host_waits(Block* first, Block* last);
  Block* join_run(Block* first, Block* last) noexcept;
  void forget(Seg* s) noexcept;
  void destroy(Pool& pool) noexcept;
  void sweep(Pools& pools);
  Pools& pools_of(PoolId id);

  // Reports, caching_allocator_inspect.h.
  [[noreturn]] void out_of_memory(const Request& r);
  std::string describe_live() const;
  std::string advise(size_t size) const;
  size_t largest_hole() const;
  void check_pool(const Pool& pool, Stats& found) const;
  void check_segment(const Seg& s, Stats& found) const;
  void check_bins(const Pool& pool) const;
  void append_segments(const Pool& pool, std::vector<SegmentInfo>& out) const;

  mutable AdaptiveMutex mutex_;
  int device_;
  D& driver_;
  Options options_;
  size_t total_ = 0;
  size_t limit_ = kUnlimited;
  size_t demand_ = 0;  // the highest active_bytes seen at growth
  StreamTable<D> streams_;
  Slab<Block> blocks_;
  Slab<Use<D>> uses_;
  StatCounters counters_;
  Holes holes_;  // changes of one call that are not counted yet
  Pools common_;
  std::map<PoolId, std::unique_ptr<Pools>> private_pools_;
  uint64_t last_pool_ = 0;
  int captures_ = 0;  // scopes open on pools of captures
  std::vector<std::pair<int, std::function<void()>>> callbacks_;
  int last_callback_ = 0;
  mutable History history_;
  OpName op_name_ = nullptr;
  std::string driver_error_;  // the first error of the driver on the way to Error(memory)
};

/// A scope that directs the calling thread's allocations to a private pool, from construction to destruction on the
/// same thread.
template <MemDriver D>
class CachingAllocator<D>::PoolScope : private PoolScopeLink {
 public:
  PoolScope(CachingAllocator& allocator, PoolId id) : allocator_(allocator) {
    std::lock_guard lock(allocator.mutex_);
    Pools& p = allocator.pools_of(id);
    PoolScopeLink::allocator = &allocator;
    pools = &p;
    ++p.scopes;
    if (p.kind == PoolKind::capture) ++allocator.captures_;
    outer = innermost_pool_scope;
    innermost_pool_scope = this;
  }
  ~PoolScope() {
    PoolScopeLink** at = &innermost_pool_scope;
    while (*at && *at != this) at = &(*at)->outer;  // Python may end scopes out of order
    if (*at) *at = outer;
    std::lock_guard lock(allocator_.mutex_);
    Pools& p = *static_cast<Pools*>(pools);
    --p.scopes;
    if (p.kind == PoolKind::capture) --allocator_.captures_;
  }
  PoolScope(const PoolScope&) = delete;
  PoolScope& operator=(const PoolScope&) = delete;

 private:
  CachingAllocator& allocator_;
};

template <MemDriver D>
CachingAllocator<D>::CachingAllocator(int device, D& driver, const Options& options)
    : device_(device), driver_(driver), options_(options), streams_(driver) {
  total_ = driver_.mem_info().total;
  if (options_.max_split_size != kUnlimited) counters_.counts.max_split_size = int64_t(options_.max_split_size);
  set_fraction(options_.fraction);
}

template <MemDriver D>
auto CachingAllocator<D>::allocate(size_t nbytes, Stream stream) -> Block* {
  if (nbytes == 0) return nullptr;
  Lock lock(mutex_);
  Pools& pools = current_pools();
  Request r{nbytes, nbytes, streams_.index(stream), &pools.large};
  if (nbytes > kMaxRequest) [[unlikely]]
    out_of_memory(Request(r));  // a copy, so that this one stays in registers
  r.size = round_size(nbytes, options_);
  if (r.size <= kSmallSize) r.pool = &pools.small;
  Block* b = find_fit(r);
  Holes holes;
  if (!b || (b->size - r.size > kSmallSize && !b->split() && r.pool->bins.size() > 1)) [[unlikely]] {
    b = b ? spare_whole(b, Request(r)) : find_slowly(Request(r));
    holes = std::exchange(holes_, {});
  }
  return hand_out(b, r, holes);
}

template <MemDriver D>
void CachingAllocator<D>::free(Block* b) {
  if (!b) return;
  Lock lock(mutex_);
  VESTA_CHECK(b->state == BlockState::allocated, runtime, "free: expected an allocated block, got one that is free.");
  Pool& pool = *b->segment->pool;
  counters_.block_freed(pool.small, b->size, b->requested, b->uses != nullptr);
  if (b->size >= options_.max_split_size) StatCounters::decrease(counters_.oversize_allocations, 1);
  if (history_.on()) [[unlikely]] {
    note(TraceAction::free_requested, uint64_t(b->data), b->requested, handle_number(b->stream), b->op);
    if (!b->uses) note(TraceAction::free_completed, uint64_t(b->data), b->requested, handle_number(b->stream), b->op);
  }
  b->freed_at = streams_.mark(b->stream_index);
  if (b->uses) [[unlikely]]
    return free_used(b);
  Holes holes;
  settle(b, holes);
  counters_.holes_changed(pool.small, holes.count, holes.bytes);
  if (pool.owner->dead()) [[unlikely]]
    sweep(*pool.owner);
}

template <MemDriver D>
void CachingAllocator<D>::record_stream(Block* b, Stream stream) {
  if (!b) return;
  Lock lock(mutex_);
  VESTA_CHECK(b->state == BlockState::allocated, runtime,
              "record_stream: expected an allocated block, got one that is free.");
  if (b->stream == stream) return;
  const uint32_t index = streams_.index(stream);
  for (Use<D>* u = b->uses; u; u = u->next)
    if (u->stream == index) return;
  Use<D>* use = uses_.take();
  use->stream = index;
  use->next = b->uses;
  b->uses = use;
}

template <MemDriver D>
auto CachingAllocator<D>::current_pools() -> Pools& {
  for (PoolScopeLink* s = innermost_pool_scope; s; s = s->outer)
    if (s->allocator == this) return *static_cast<Pools*>(s->pools);
  return common_;
}

template <MemDriver D>
VESTA_INLINE auto CachingAllocator<D>::find_fit(const Request& r) -> Block* {
  Block* b = r.pool->bins_of(r.stream).find(r.size);
  return b && acceptable(b->size, r) ? b : nullptr;
}

/// Returns whether max_split_size allows a block of `size` for a request.
template <MemDriver D>
bool CachingAllocator<D>::acceptable(size_t size, const Request& r) const {
  if (size < options_.max_split_size) [[likely]]
    return true;
  return r.size >= options_.max_split_size && size - r.size < options_.max_non_split_rounding;
}

template <MemDriver D>
bool CachingAllocator<D>::may_split(const Block* b, size_t size) const {
  const size_t rest = b->size - size;
  if (b->segment->pool->small || b->segment->expandable()) return rest >= kMinBlock;
  return rest > kSmallSize && size < options_.max_split_size;
}

/// Shortens a block that is in no list and returns the rest, which is in no list either. blocks_ has one in reserve.
template <MemDriver D>
VESTA_INLINE auto CachingAllocator<D>::cut(Block* b, size_t size) noexcept -> Block* {
  Block* rest = blocks_.take();
  rest->data = b->begin() + size;
  rest->size = b->size - size;
  rest->stream = b->stream;
  rest->stream_index = b->stream_index;
  rest->bins = b->bins;
  rest->freed_at = b->freed_at;
  rest->segment = b->segment;
  rest->prev = b;
  rest->next = b->next;
  if (b->next) b->next->prev = rest;
  b->next = rest;
  b->size = size;
  return rest;
}

template <MemDriver D>
VESTA_INLINE void CachingAllocator<D>::put_free(Block* b, Holes& holes) noexcept {
  b->state = BlockState::free;
  b->bins->insert(b);
  if (b->split()) {
    ++holes.count;
    holes.bytes += int64_t(b->size);
  }
}

template <MemDriver D>
VESTA_INLINE void CachingAllocator<D>::take_free(Block* b, Holes& holes) noexcept {
  b->bins->remove(b);
  if (b->split()) {
    --holes.count;
    holes.bytes -= int64_t(b->size);
  }
}

/// Joins a block with the one after it, which is in no list.
template <MemDriver D>
VESTA_INLINE void CachingAllocator<D>::absorb_next(Block* b) noexcept {
  Block* gone = b->next;
  b->size += gone->size;
  b->freed_at = std::max(b->freed_at, gone->freed_at);
  b->next = gone->next;
  if (b->next) b->next->prev = b;
  blocks_.give(gone);
}

/// Joins a block that is in no list with its free neighbours of the same stream; returns the whole, in no list.
template <MemDriver D>
VESTA_INLINE auto CachingAllocator<D>::join_neighbours(Block* b, Holes& holes) noexcept -> Block* {
  const auto joins = [b](const Block* n) { return n && n->state == BlockState::free && n->bins == b->bins; };
  const bool with_next = joins(b->next);
  const bool with_prev = joins(b->prev);
  if (with_next) take_free(b->next, holes);  // both leave their bins while they still have all neighbours
  if (with_prev) take_free(b->prev, holes);
  if (with_next) absorb_next(b);
  if (!with_prev) return b;
  Block* whole = b->prev;
  absorb_next(whole);
  return whole;
}

/// Makes a block that is in no list a free one of `stream`, joined with its neighbours.
template <MemDriver D>
auto CachingAllocator<D>::make_free(Block* b, uint32_t stream, uint64_t freed_at) noexcept -> Block* {
  b->stream = streams_.stream(stream);
  b->stream_index = stream;
  b->bins = b->segment->pool->bins[stream].get();
  b->freed_at = freed_at;
  return settle(b, holes_);
}

/// Puts a block that is in no list into the bins of its stream, joined with its neighbours.
template <MemDriver D>
VESTA_INLINE auto CachingAllocator<D>::settle(Block* b, Holes& holes) noexcept -> Block* {
  b->requested = 0;
  b->op = nullptr;
  b = join_neighbours(b, holes);
  put_free(b, holes);
  return b;
}

/// Cuts a free block of the request's stream to size and gives it to the caller.
template <MemDriver D>
VESTA_INLINE auto CachingAllocator<D>::hand_out(Block* b, const Request& r, Holes holes) -> Block* {
  const bool split = may_split(b, r.size);
  if (split) blocks_.reserve(1);
  take_free(b, holes);
  if (split) put_free(cut(b, r.size), holes);
  b->state = BlockState::allocated;
  b->requested = r.nbytes;
  counters_.block_allocated(r.pool->small, b->size, r.nbytes);
  counters_.holes_changed(r.pool->small, holes.count, holes.bytes);
  if (b->size >= options_.max_split_size) StatCounters::increase(counters_.oversize_allocations, 1);
  if (history_.on()) [[unlikely]] {
    b->op = op_name_ ? op_name_() : nullptr;
    note(TraceAction::alloc, uint64_t(b->data), r.nbytes, handle_number(b->stream), b->op);
  }
  return b;
}

/// Counts what the call changed in inactive_split.
template <MemDriver D>
void CachingAllocator<D>::flush_holes(bool small) {
  counters_.holes_changed(small, holes_.count, holes_.bytes);
  holes_ = {};
}

template <MemDriver D>
void CachingAllocator<D>::note(TraceAction action, uint64_t addr, size_t size, uint64_t stream, const char* op) const {
  if (!history_.on()) [[likely]]
    return;
  history_.push({action, device_, addr, size, stream, driver_.now(), op});
}

/// Returns a block to the bins of its own stream, once no other stream uses it any more.
template <MemDriver D>
void CachingAllocator<D>::complete(Block* b) {
  Pool& pool = *b->segment->pool;
  counters_.block_completed(pool.small, b->size);
  note(TraceAction::free_completed, uint64_t(b->data), b->requested, handle_number(b->stream), b->op);
  settle(b, holes_);
  flush_holes(pool.small);
}

}  // namespace vesta::cuda

#include <vesta/cuda/memory/caching_allocator_inspect.h>
#include <vesta/cuda/memory/caching_allocator_reuse.h>
#include <vesta/cuda/memory/caching_allocator_segments.h>
