// The part of CachingAllocator that takes memory from the driver and returns it, and its private pools.
//
// An expandable segment is an address range as large as the device, mapped chunk by chunk where it is needed; its
// unmapped parts are blocks as well (BlockState::unmapped), always whole chunks. Free memory at the end of the mapped
// part then grows instead of being left over, which helps programs whose sizes change.
#pragma once
#include <vesta/cuda/memory/caching_allocator.h>

namespace vesta::cuda {

/// Returns a new free block of the request's stream that holds it, or nullptr.
template <MemDriver D>
auto CachingAllocator<D>::grow(const Request& r) -> Block* {
  if (options_.expandable && !r.pool->no_va) {
    Block* b = grow_mapped(r);
    if (b || !r.pool->no_va) return b;
  }
  return grow_by_segment(r);
}

template <MemDriver D>
bool CachingAllocator<D>::within_limit(size_t bytes) const {
  return size_t(counters_.current(StatType::reserved_bytes)) + bytes <= limit_;
}

template <MemDriver D>
auto CachingAllocator<D>::grow_by_segment(const Request& r) -> Block* {
  const size_t size = segment_size(r.size);
  if (!within_limit(size)) return nullptr;
  blocks_.reserve(1);
  auto s = std::make_unique<Seg>();
  void* base = driver_.malloc_(size);
  if (!base) return nullptr;
  s->base = static_cast<uint8_t*>(base);
  s->size = s->mapped = size;
  s->stream = streams_.stream(r.stream);
  Block* b = s->first = blocks_.take();
  b->data = base;
  b->size = size;
  b->segment = s.get();
  r.pool->link(s.release());
  counters_.segments_changed(r.pool->small, 1, int64_t(size));
  ++counters_.counts.num_device_alloc;
  if (size >= options_.max_split_size) StatCounters::increase(counters_.oversize_segments, 1);
  note(TraceAction::segment_alloc, uint64_t(base), size, handle_number(b->segment->stream));
  return make_free(b, r.stream, 0);
}

/// Maps what is missing for the request at the best position in the pool's address range.
template <MemDriver D>
auto CachingAllocator<D>::grow_mapped(const Request& r) -> Block* {
  Seg* s = expandable_segment(*r.pool, streams_.stream(r.stream));
  if (!s) return nullptr;
  const auto [hole, bytes] = best_hole(*s, r);
  if (!hole || !within_limit(bytes)) return nullptr;
  blocks_.reserve(1);
  const size_t mapped = map_chunks(*s, hole, bytes);
  if (mapped == 0) return nullptr;
  Block* b = commit(hole, mapped, r.stream);  // what was mapped before the device was full is kept
  flush_holes(r.pool->small);
  return b->size >= r.size ? b : nullptr;
}

/// Returns the pool's address range, reserved on first use; nullptr if the driver has none.
template <MemDriver D>
auto CachingAllocator<D>::expandable_segment(Pool& pool, Stream stream) -> Seg* {
  if (pool.expandable) return pool.expandable;
  const size_t size = (total_ + total_ / 8 + kLargeSegment - 1) / kLargeSegment * kLargeSegment;
  blocks_.reserve(1);
  auto s = std::make_unique<Seg>();
  void* base = nullptr;
  attempt([&] { base = driver_.va_reserve(size); });
  if (!base) {
    pool.no_va = true;
    return nullptr;
  }
  s->base = static_cast<uint8_t*>(base);
  s->size = size;
  s->chunk = pool.small ? kSmallSegment : kLargeSegment;
  s->stream = stream;
  Block* b = s->first = blocks_.take();
  b->data = base;
  b->size = size;
  b->segment = s.get();
  b->state = BlockState::unmapped;
  pool.link(s.get());
  return pool.expandable = s.release();
}

/// Returns the unmapped block that needs the fewest new bytes to hold the request together with the free blocks of the
/// stream around it, and those bytes.
template <MemDriver D>
auto CachingAllocator<D>::best_hole(Seg& s, const Request& r) const -> std::pair<Block*, size_t> {
  std::pair<Block*, size_t> best{nullptr, kUnlimited};
  const auto usable = [&r](const Block* b) {
    return b && b->state == BlockState::free && b->stream_index == r.stream ? b->size : 0;
  };
  for (Block* hole = s.first; hole; hole = hole->next) {
    if (hole->state != BlockState::unmapped) continue;
    const size_t before = usable(hole->prev);
    const size_t missing = r.size > before ? r.size - before : r.size;  // a block that is too large is not extended
    size_t bytes = (missing + s.chunk - 1) / s.chunk * s.chunk;
    if (bytes > hole->size) {
      if (hole->size + usable(hole->next) < missing) continue;
      bytes = hole->size;
    }
    if (bytes < best.second) best = {hole, bytes};
  }
  return best;
}

/// Maps the first `bytes` of a hole; returns how many the driver gave.
template <MemDriver D>
size_t CachingAllocator<D>::map_chunks(Seg& s, Block* hole, size_t bytes) {
  size_t mapped = 0;
  bool given = true;
  while (given && mapped < bytes) {
    given = false;
    attempt([&] { given = driver_.va_map(s.base, size_t(hole->begin() - s.base) + mapped, s.chunk); });
    if (given) mapped += s.chunk;
    counters_.counts.num_device_alloc += given;
  }
  return mapped;
}

/// Turns the first `bytes` of a hole, now mapped, into a free block.
template <MemDriver D>
auto CachingAllocator<D>::commit(Block* hole, size_t bytes, uint32_t stream) noexcept -> Block* {
  Seg* s = hole->segment;
  if (bytes < hole->size) cut(hole, bytes)->state = BlockState::unmapped;
  counters_.segments_changed(s->pool->small, s->mapped == 0, int64_t(bytes));
  s->mapped += bytes;
  note(TraceAction::segment_map, uint64_t(hole->data), bytes, handle_number(s->stream));
  return make_free(hole, stream, 0);
}

// Note [Waste]: a program whose sizes grow leaves segments behind that are too small for it. PyTorch keeps them until
// the device is full; a step of a GPT with random lengths then holds up to twice what it uses. Here old segments
// partly make up for a new one: if more than `max_waste` of the highest demand so far would lie idle, whole idle
// segments are returned first, beginning with the longest unused one. Programs of fixed shapes never grow after their
// first steps, and so never pay for it. Expandable segments do not need it.

/// Returns idle segments to the driver before growing by one for `r`, if too much lies idle or a threshold of the
/// limit is passed.
template <MemDriver D>
void CachingAllocator<D>::collect_garbage(const Request& r) {
  const auto reserved = [&] { return size_t(counters_.current(StatType::reserved_bytes)); };
  const size_t next = segment_size(r.size);
  const size_t demand = demand_ = std::max(demand_, size_t(counters_.current(StatType::active_bytes)) + r.size);
  size_t allowed = kUnlimited;
  if (options_.max_waste > 0) allowed = demand + std::max(size_t(options_.max_waste * double(demand)), kSmallWaste);
  if (options_.gc_threshold > 0)
    allowed = std::min(allowed, size_t(options_.gc_threshold * double(std::min(limit_, total_))) + next);
  if (reserved() + next <= allowed) return;
  std::vector<std::pair<uint64_t, Seg*>> idle;
  for (Seg* s = common_.large.segments; s; s = s->next) {
    const Block* b = s->first;
    if (!s->expandable() && b->state == BlockState::free && !b->split() && b->size < next)
      idle.emplace_back(streams_.marks(b->stream_index) - b->freed_at, s);
  }
  std::sort(idle.begin(), idle.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto [age, s] : idle) {
    if (reserved() + next <= allowed) break;
    release_segment(s);
  }
  flush_holes(false);
}

/// Returns all free memory to the driver, in pools that may do so.
template <MemDriver D>
void CachingAllocator<D>::release_cached() {
  bool graphs_done = true;
  for (auto& [id, pools] : private_pools_)
    if (pools->dead() && pools->kind == PoolKind::capture)
      graphs_done = attempt([&] { streams_.sync_all(); });  // its replays ran on their own streams
  each_pools([&](Pools& p) {
    if (!p.releasable() || (p.kind == PoolKind::capture && !graphs_done)) return;
    release_pool(p.small);
    release_pool(p.large);
  });
  std::erase_if(private_pools_, [](const auto& entry) {
    return entry.second->dead() && !entry.second->small.segments && !entry.second->large.segments;
  });
}

template <MemDriver D>
void CachingAllocator<D>::release_pool(Pool& pool) {
  for (Seg* s = pool.segments; s;) {
    Seg* next = s->next;
    if (!s->expandable()) {
      release_segment(s);
    } else {
      unmap_free(s);
      if (pool.owner->dead() && s->mapped == 0 && attempt([&] { driver_.va_release(s->base, s->size); })) forget(s);
    }
    s = next;
  }
  flush_holes(pool.small);
}

/// Returns a plain segment to the driver if all of it is free.
template <MemDriver D>
bool CachingAllocator<D>::release_segment(Seg* s) {
  Block* last = s->first;
  for (Block* b = s->first; b; last = b, b = b->next)
    if (b->state != BlockState::free) return false;
  if (!host_waits(s->first, last)) return false;
  Block* whole = join_run(s->first, last);
  if (!attempt([&] { driver_.free_(s->base); })) {
    put_free(whole);
    return false;
  }
  counters_.segments_changed(s->pool->small, -1, -int64_t(s->size));
  ++counters_.counts.num_device_free;
  if (s->size >= options_.max_split_size) StatCounters::decrease(counters_.oversize_segments, 1);
  note(TraceAction::segment_free, uint64_t(s->base), s->size, handle_number(s->stream));
  forget(s);
  return true;
}

/// Waits until the streams of free neighbours are done with them.
template <MemDriver D>
bool CachingAllocator<D>::host_waits(Block* first, Block* last) {
  return attempt([&] {
    for (Block* b = first;; b = b->next) {
      streams_.sync(b->stream_index, b->freed_at);
      if (b == last) break;
    }
  });
}

/// Takes a run of free blocks from their bins and joins them; the caller has ordered their streams.
template <MemDriver D>
auto CachingAllocator<D>::join_run(Block* first, Block* last) noexcept -> Block* {
  for (Block* b = first;; b = b->next) {
    take_free(b);
    if (b == last) break;
  }
  for (bool more = first != last; more;) {
    more = first->next != last;
    absorb_next(first);
  }
  first->freed_at = 0;
  return first;
}

/// Deletes a segment that was returned to the driver, and its one block.
template <MemDriver D>
void CachingAllocator<D>::forget(Seg* s) noexcept {
  s->pool->unlink(s);
  blocks_.give(s->first);
  delete s;
}

/// Unmaps all whole chunks of an expandable segment that are free.
template <MemDriver D>
void CachingAllocator<D>::unmap_free(Seg* s) {
  for (Block* b = s->first; b; b = b->next) {
    if (b->state != BlockState::free) continue;
    Block* last = b;
    while (last->next && last->next->state == BlockState::free) last = last->next;
    b = unmap_run(s, b, last);
  }
}

/// Unmaps the whole chunks within a run of free blocks; returns the block from which to continue.
template <MemDriver D>
auto CachingAllocator<D>::unmap_run(Seg* s, Block* first, Block* last) -> Block* {
  const size_t begin = size_t(first->begin() - s->base), end = size_t(last->end() - s->base);
  const size_t low = (begin + s->chunk - 1) / s->chunk * s->chunk, high = end / s->chunk * s->chunk;
  if (low >= high || !host_waits(first, last)) return last;
  blocks_.reserve(2);
  Block* b = join_run(first, last);
  const size_t gone = unmap_chunks(s, s->base + low, s->base + high);
  if (gone == 0) {
    put_free(b);
    return b;
  }
  Block* hole = low > begin ? cut(b, low - begin) : b;
  if (hole->size > gone) put_free(cut(hole, gone));
  if (hole != b) put_free(b);
  hole->state = BlockState::unmapped;
  s->mapped -= gone;
  counters_.segments_changed(s->pool->small, s->mapped == 0 ? -1 : 0, -int64_t(gone));
  note(TraceAction::segment_unmap, uint64_t(hole->data), gone, handle_number(s->stream));
  if (hole->next && hole->next->state == BlockState::unmapped) absorb_next(hole);
  if (!hole->prev || hole->prev->state != BlockState::unmapped) return hole;
  hole = hole->prev;
  absorb_next(hole);
  return hole;
}

/// Unmaps chunk by chunk; returns the bytes unmapped before the driver refused.
template <MemDriver D>
size_t CachingAllocator<D>::unmap_chunks(Seg* s, uint8_t* from, uint8_t* to) {
  uint8_t* at = from;
  attempt([&] {
    for (; at < to; at += s->chunk) {
      driver_.va_unmap(s->base, size_t(at - s->base), s->chunk);
      ++counters_.counts.num_device_free;
    }
  });
  return size_t(at - from);
}

template <MemDriver D>
void CachingAllocator<D>::empty_cache() {
  Lock lock(mutex_);
  VESTA_CHECK(captures_ == 0, runtime,
              "empty_cache: expected no graph capture under way, got one. Call it before or after.");
  sync_pending();
  release_cached();
}

template <MemDriver D>
void CachingAllocator<D>::set_fraction(double fraction) {
  VESTA_CHECK(fraction > 0 && fraction <= 1, value, "set_fraction: expected 0 < fraction <= 1, got ", fraction,
              " (fraction).");
  std::lock_guard lock(mutex_);
  limit_ = fraction < 1 ? size_t(fraction * double(total_)) : kUnlimited;
}

template <MemDriver D>
auto CachingAllocator<D>::pools_of(PoolId id) -> Pools& {
  const auto at = private_pools_.find(id);
  VESTA_CHECK(at != private_pools_.end() && !at->second->dead(), value,
              "pool: expected one that begin_pool made and end_pool did not end, got (", id.capture, ", ", id.user,
              ") (id).");
  return *at->second;
}

template <MemDriver D>
PoolId CachingAllocator<D>::begin_pool(PoolKind kind) {
  std::lock_guard lock(mutex_);
  auto pools = std::make_unique<Pools>();
  ++last_pool_;
  pools->id = kind == PoolKind::capture ? PoolId{last_pool_, 0} : PoolId{0, last_pool_};
  pools->kind = kind;
  const PoolId id = pools->id;
  private_pools_.emplace(id, std::move(pools));
  return id;
}

template <MemDriver D>
void CachingAllocator<D>::retain_pool(PoolId id) {
  std::lock_guard lock(mutex_);
  ++pools_of(id).references;
}

template <MemDriver D>
void CachingAllocator<D>::end_pool(PoolId id) {
  std::lock_guard lock(mutex_);
  Pools& pools = pools_of(id);
  VESTA_CHECK(pools.references > 1 || pools.scopes == 0, runtime,
              "end_pool: expected no use_pool scope of the pool to be open, got ", pools.scopes, ".");
  if (--pools.references == 0) sweep(pools);
}

template <MemDriver D>
void CachingAllocator<D>::know_stream(Stream stream) {
  std::lock_guard lock(mutex_);
  streams_.index(stream);
}

/// Returns the free memory of a dead pool to the driver, and removes the pool when nothing is left. During a capture
/// nothing can be waited for; then the next call, or empty_cache, does it.
template <MemDriver D>
void CachingAllocator<D>::sweep(Pools& pools) {
  if (captures_ > 0) return;
  if (!attempt([&] { streams_.sync_all(); })) return;
  for (Pool* pool : {&pools.small, &pools.large}) {
    record_deferred(*pool);
    poll(*pool, std::numeric_limits<int>::max());
    release_pool(*pool);
  }
  if (!pools.small.segments && !pools.large.segments) private_pools_.erase(PoolId(pools.id));
}

template <MemDriver D>
CachingAllocator<D>::~CachingAllocator() {
  attempt([&] { streams_.sync_all(); });
  each_pools([&](Pools& p) {
    destroy(p.small);
    destroy(p.large);
  });
}

/// Returns everything to the driver, allocated or not; what the driver refuses is lost with the device.
template <MemDriver D>
void CachingAllocator<D>::destroy(Pool& pool) noexcept {
  while (Seg* s = pool.segments) {
    uint8_t* mapped_from = s->base;
    for (Block* b = s->first; b; b = b->next) {
      drop_uses(b);
      if (b->state != BlockState::unmapped) continue;
      unmap_chunks(s, mapped_from, b->begin());
      mapped_from = b->end();
    }
    attempt([&] {
      if (!s->expandable()) return driver_.free_(s->base);
      unmap_chunks(s, mapped_from, s->base + s->size);
      driver_.va_release(s->base, s->size);
    });
    pool.unlink(s);
    delete s;
  }
}

}  // namespace vesta::cuda
