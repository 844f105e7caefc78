// CachingAllocator when the requesting stream has no free block: events, other streams, the ladder.
//
// Note [Errors of the driver]: an event call that fails makes its step fail, not the allocation: the next step is
// tried, and if none helps, Error(memory) quotes the driver. A free never fails: a block whose events cannot be
// recorded stays deferred and is tried again. malloc_ distinguishes "no memory" (nullptr) from a broken device, whose
// Error is passed on.
#pragma once
#include <vesta/cuda/memory/caching_allocator.h>

namespace vesta::cuda {

template <MemDriver D>
auto CachingAllocator<D>::find_slowly(const Request& r) -> Block* {
  driver_error_.clear();
  const bool gated = events_allowed(r);
  if (gated) {
    record_deferred(*r.pool);
    constexpr int kQueries = 8;  // enough: an allocation frees at most one block to query
    if (poll(*r.pool, kQueries))
      if (Block* b = find_fit(r)) return b;
    if (r.size >= options_.cross_stream_min)
      if (Block* b = reuse_across_streams(r)) return b;
    if (!r.pool->small) collect_garbage(r);
  }
  if (Block* b = grow(r)) return b;
  return climb(r);
}

/// Saves an idle segment, `whole`, that a request would split: the next request of its size would need another. Memory
/// of other streams that is closer to the requested size is used instead, if there is any.
template <MemDriver D>
auto CachingAllocator<D>::spare_whole(Block* whole, const Request& r) -> Block* {
  if (r.size < options_.cross_stream_min || !events_allowed(r)) return whole;
  Block* b = reuse_across_streams(r);
  return b ? b : whole;
}

/// Returns whether events may be queried and waited for: not while a graph is captured.
template <MemDriver D>
bool CachingAllocator<D>::events_allowed(const Request& r) {
  if (captures_ > 0) return false;
  bool capturing = true;
  attempt([&] { capturing = driver_.is_capturing(streams_.stream(r.stream)); });
  return !capturing;
}

/// Runs a step; returns false if the driver refused.
template <MemDriver D>
template <class F>
bool CachingAllocator<D>::attempt(F&& step) {
  try {
    step();
    return true;
  } catch (const Error& e) {
    if (driver_error_.empty()) driver_error_ = e.message();
    return false;
  }
}

/// Sets aside a freed block that other streams used, until they are done with it.
template <MemDriver D>
void CachingAllocator<D>::free_used(Block* b) {
  Pool& pool = *b->segment->pool;
  b->state = BlockState::deferred;
  pool.deferred.push_back(b);
  if (captures_ == 0) record_deferred(pool);
}

/// Records the events of deferred blocks, as far as the driver allows; those blocks are pending then.
template <MemDriver D>
void CachingAllocator<D>::record_deferred(Pool& pool) {
  for (Block* b = pool.deferred.head; b;) {
    Block* next = b->list_next;
    if (record_uses(b)) {
      pool.deferred.remove(b);
      b->state = BlockState::pending;
      pool.pending.push_back(b);
    }
    b = next;
  }
}

/// Records an event on each stream that used a block; returns false if one is still missing.
template <MemDriver D>
bool CachingAllocator<D>::record_uses(Block* b) {
  bool all = true;
  for (Use<D>* u = b->uses; u; u = u->next) {
    if (u->recorded) continue;
    attempt([&] {
      const Stream s = streams_.stream(u->stream);
      if (driver_.is_capturing(s)) return;
      const Event e = driver_.event_get();
      if (attempt([&] { driver_.event_record(e, s); })) {
        u->event = e;
        u->recorded = true;
      } else {
        driver_.event_put(e);
      }
    });
    all = all && u->recorded;
  }
  return all;
}

/// Returns the events of a block to the driver.
template <MemDriver D>
void CachingAllocator<D>::drop_uses(Block* b) {
  while (Use<D>* u = b->uses) {
    b->uses = u->next;
    if (u->recorded) attempt([&] { driver_.event_put(u->event); });
    uses_.give(u);
  }
}

/// Frees pending blocks whose events are done, with at most `queries` queries; returns whether it freed one. Work of
/// one stream ends in order: if an event is not done, later ones of its stream are not queried.
template <MemDriver D>
bool CachingAllocator<D>::poll(Pool& pool, int queries) {
  uint64_t busy = 0;
  bool any = false;
  for (Block* b = pool.pending.head; b;) {
    Block* next = b->list_next;
    for (Use<D>** at = &b->uses; *at;) {
      Use<D>* u = *at;
      const uint64_t bit = u->stream < 64 ? uint64_t(1) << u->stream : 0;
      bool done = false;
      if (!(busy & bit)) {
        if (queries-- <= 0) return any;
        attempt([&] { done = driver_.event_query(u->event); });
      }
      if (!done) {
        busy |= bit;
        at = &u->next;
        continue;
      }
      *at = u->next;
      attempt([&] { driver_.event_put(u->event); });
      uses_.give(u);
    }
    if (!b->uses) {
      pool.pending.remove(b);
      complete(b);
      any = true;
    }
    b = next;
  }
  return any;
}

template <MemDriver D>
template <class F>
void CachingAllocator<D>::each_pools(F&& f) {
  f(common_);
  for (auto& [id, pools] : private_pools_) f(*pools);
}

template <MemDriver D>
template <class F>
void CachingAllocator<D>::each_pools(F&& f) const {
  f(common_);
  for (const auto& [id, pools] : private_pools_) f(std::as_const(*pools));
}

/// Queries every pending block of every pool; returns whether it freed one.
template <MemDriver D>
bool CachingAllocator<D>::poll_all() {
  bool any = false;
  each_pools([&](Pools& p) {
    for (Pool* pool : {&p.small, &p.large}) {
      record_deferred(*pool);
      any |= poll(*pool, std::numeric_limits<int>::max());
    }
  });
  return any;
}

/// Waits for every pending block of every pool; returns whether it freed one.
template <MemDriver D>
bool CachingAllocator<D>::sync_pending() {
  bool any = false;
  each_pools([&](Pools& p) {
    for (Pool* pool : {&p.small, &p.large}) {
      record_deferred(*pool);
      for (Block* b = pool->pending.head; b;) {
        Block* next = b->list_next;
        const bool done = attempt([&] {
          for (Use<D>* u = b->uses; u; u = u->next) driver_.event_sync(u->event);
        });
        if (done) {
          drop_uses(b);
          pool->pending.remove(b);
          complete(b);
          any = true;
        }
        b = next;
      }
    }
  });
  ++counters_.counts.num_sync_all_streams;
  return any;
}

/// Takes memory of other streams and makes the requesting stream wait for their last work there. See Note [Runs].
template <MemDriver D>
auto CachingAllocator<D>::reuse_across_streams(const Request& r) -> Block* {
  auto [first, last] = alike(r);
  if (!first) std::tie(first, last) = best_run(r);
  if (!first) return nullptr;
  Block* b = take_run(r, first, last);
  if (b) ++counters_.counts.num_steals;
  flush_holes(r.pool->small);
  return b;
}

/// Finds a block of exactly the request's size, freed on another stream or pending: steps that repeat find one.
template <MemDriver D>
auto CachingAllocator<D>::alike(const Request& r) const -> std::pair<Block*, Block*> {
  const auto fits = [&](const Block* b) { return b->size == r.size && acceptable(b->size, r); };
  for (uint32_t i = 0; i < r.pool->bins.size(); ++i) {
    if (i == r.stream || !r.pool->bins[i]) continue;
    Block* b = r.pool->bins[i]->find(r.size);
    if (b && fits(b)) return {b, b};
  }
  int looks = 256;  // the list is long only when streams lag far behind
  for (Block* b = r.pool->pending.head; b && looks; b = b->list_next, --looks)
    if (fits(b)) return {b, b};
  return {nullptr, nullptr};
}

/// Makes a stream wait for all work on a free or pending block; returns the number of waits queued.
template <MemDriver D>
int CachingAllocator<D>::wait_for(Block* b, uint32_t stream) {
  int waits = 0;
  for (Use<D>* u = b->uses; u; u = u->next) {
    if (u->stream == stream) continue;
    driver_.stream_wait(streams_.stream(stream), u->event);
    ++waits;
  }
  return waits + streams_.gate(b->stream_index, b->freed_at, stream);
}

/// Removes a block from the pending ones, because a stream waits for its events; it is in no list then.
template <MemDriver D>
void CachingAllocator<D>::end_pending(Block* b) {
  Pool& pool = *b->segment->pool;
  drop_uses(b);
  pool.pending.remove(b);
  counters_.block_completed(pool.small, b->size);
  note(TraceAction::free_completed, uint64_t(b->data), b->requested, handle_number(b->stream), b->op);
}

/// Takes neighbours, free or pending, as one free block of the requesting stream, which waits for what they wait for.
/// The surplus of the last one stays with its stream, if that one is free already.
template <MemDriver D>
auto CachingAllocator<D>::take_run(const Request& r, Block* first, Block* last) -> Block* {
  blocks_.reserve(1);
  size_t size = 0;
  const bool gated = attempt([&] {
    for (Block* b = first;; b = b->next) {
      size += b->size;
      counters_.counts.num_stream_waits += wait_for(b, r.stream);
      if (b == last) break;
    }
  });
  if (!gated) return nullptr;
  const size_t kept = last->size - (size - r.size);
  if (last->state == BlockState::free && may_split(last, kept)) {
    take_free(last);
    put_free(cut(last, kept));
    put_free(last);
  }
  for (Block* b = first;; b = b->next) {
    if (b->state == BlockState::pending) {
      end_pending(b);
      put_free(b);
    }
    if (b == last) break;
  }
  return make_free(join_run(first, last), r.stream, streams_.mark(r.stream));
}

// Note [Runs]: if there were only one stream, free neighbours would be joined, and a request would be cut from the
// start of the smallest joined block that holds it. The same is done here with runs of free and pending blocks of any
// streams: the smallest run is chosen, and as many blocks from its start as are needed. Choosing the smallest block
// instead, or the smallest window of blocks, leaves pieces on both sides and cost half as much memory again in the
// test of producer and consumer.

/// Finds the blocks for take_run.
template <MemDriver D>
auto CachingAllocator<D>::best_run(const Request& r) const -> std::pair<Block*, Block*> {
  Block* best = nullptr;
  size_t best_size = kUnlimited;
  const auto usable = [](const Block* b) {
    return b && (b->state == BlockState::free || b->state == BlockState::pending);
  };
  for (const Seg* s = r.pool->segments; s; s = s->next) {
    for (Block* b = s->first; b;) {
      Block* from = b;
      size_t size = 0;
      for (; usable(b); b = b->next) size += b->size;
      if (size >= r.size && size < best_size && acceptable(size, r)) {
        best = from;
        best_size = size;
      }
      if (b) b = b->next;
    }
  }
  if (!best) return {nullptr, nullptr};
  Block* last = best;
  for (size_t size = best->size; size < r.size; size += last->size) last = last->next;
  return {best, last};
}

/// Takes the steps of the ladder after growing failed: each step frees more and costs more.
template <MemDriver D>
auto CachingAllocator<D>::climb(const Request& r) -> Block* {
  ++counters_.counts.num_alloc_retries;
  const int64_t start = driver_.now();
  run_callbacks();
  const bool gated = events_allowed(r);
  Block* b = try_again(r, gated);
  if (!b && gated) {
    if (poll_all()) b = try_again(r, gated);
    if (!b) {
      release_cached();
      b = try_again(r, gated);
    }
    if (!b && sync_pending()) {
      release_cached();
      b = try_again(r, gated);
    }
  }
  counters_.counts.ladder_us += driver_.now() - start;
  if (!b) out_of_memory(r);
  return b;
}

template <MemDriver D>
auto CachingAllocator<D>::try_again(const Request& r, bool gated) -> Block* {
  if (Block* b = find_fit(r)) return b;
  if (gated)
    if (Block* b = reuse_across_streams(r)) return b;
  return grow(r);
}

/// Calls the callbacks of add_oom_callback without the lock; does nothing if a callback is running.
template <MemDriver D>
void CachingAllocator<D>::run_callbacks() {
  static constinit thread_local bool inside = false;
  if (inside || callbacks_.empty()) return;
  struct Unlocked {
    AdaptiveMutex& mutex;
    explicit Unlocked(AdaptiveMutex& m) : mutex(m) { mutex.unlock(), inside = true; }
    ~Unlocked() { inside = false, mutex.lock(); }
  };
  const auto callbacks = callbacks_;
  Unlocked guard(mutex_);
  for (const auto& [number, callback] : callbacks) callback();
}

template <MemDriver D>
int CachingAllocator<D>::add_oom_callback(std::function<void()> callback) {
  std::lock_guard lock(mutex_);
  callbacks_.emplace_back(++last_callback_, std::move(callback));
  return last_callback_;
}

template <MemDriver D>
void CachingAllocator<D>::remove_oom_callback(int number) {
  std::lock_guard lock(mutex_);
  std::erase_if(callbacks_, [number](const auto& entry) { return entry.first == number; });
}

}  // namespace vesta::cuda
