// CachingAllocator's information about itself: counters, snapshots, the report of Error(memory), and its consistency
// check.
#pragma once
#include <cstdio>

#include <vesta/cuda/memory/caching_allocator.h>

namespace vesta::cuda {

namespace detail {

/// Returns a number of bytes as readable text: "512 B", "3.50 MiB".
inline std::string readable(size_t bytes) {
  char out[40];
  if (bytes < kKiB) std::snprintf(out, sizeof out, "%zu B", bytes);
  else if (bytes < kMiB) std::snprintf(out, sizeof out, "%.2f KiB", double(bytes) / double(kKiB));
  else if (bytes < kGiB) std::snprintf(out, sizeof out, "%.2f MiB", double(bytes) / double(kMiB));
  else std::snprintf(out, sizeof out, "%.2f GiB", double(bytes) / double(kGiB));
  return out;
}

/// Returns the name of a state in PyTorch's snapshots.
inline const char* state_name(BlockState state) {
  if (state == BlockState::allocated) return "active_allocated";
  return state == BlockState::free ? "inactive" : "active_pending_free";
}

}  // namespace detail

template <MemDriver D>
Stats CachingAllocator<D>::stats() const {
  std::lock_guard lock(mutex_);
  return counters_.stats();
}

template <MemDriver D>
void CachingAllocator<D>::reset_peak() {
  std::lock_guard lock(mutex_);
  counters_.reset_peak();
}

template <MemDriver D>
void CachingAllocator<D>::reset_accumulated() {
  std::lock_guard lock(mutex_);
  counters_.reset_accumulated();
}

template <MemDriver D>
void CachingAllocator<D>::record_history(bool on, size_t max_entries) {
  std::lock_guard lock(mutex_);
  history_.record(on, max_entries);
}

template <MemDriver D>
void CachingAllocator<D>::set_op_name(OpName name) {
  std::lock_guard lock(mutex_);
  op_name_ = name;
}

template <MemDriver D>
auto CachingAllocator<D>::find(const void* p) const -> Block* {
  std::lock_guard lock(mutex_);
  const auto* at = static_cast<const uint8_t*>(p);
  Block* found = nullptr;
  const auto look = [&](const Pool& pool) {
    for (Seg* s = pool.segments; s; s = s->next) {
      if (at < s->base || at >= s->base + s->size) continue;
      for (Block* b = s->first; b; b = b->next)
        if (b->state == BlockState::allocated && at >= b->begin() && at < b->end()) found = b;
    }
  };
  each_pools([&](const Pools& p) {
    look(p.small);
    look(p.large);
  });
  return found;
}

template <MemDriver D>
Snapshot CachingAllocator<D>::snapshot() const {
  std::lock_guard lock(mutex_);
  Snapshot all;
  each_pools([&](const Pools& p) {
    append_segments(p.small, all.segments);
    append_segments(p.large, all.segments);
  });
  std::sort(all.segments.begin(), all.segments.end(),
            [](const SegmentInfo& a, const SegmentInfo& b) { return a.address < b.address; });
  note(TraceAction::snapshot, 0, 0, 0);
  all.device_traces = history_.entries();
  return all;
}

/// Appends a pool's segments; each mapped part of an expandable one is listed as a segment.
template <MemDriver D>
void CachingAllocator<D>::append_segments(const Pool& pool, std::vector<SegmentInfo>& out) const {
  for (const Seg* s = pool.segments; s; s = s->next) {
    bool fresh = true;
    for (const Block* b = s->first; b; b = b->next) {
      if (b->state == BlockState::unmapped) {
        fresh = true;
        continue;
      }
      if (fresh) {
        SegmentInfo& info = out.emplace_back();
        info.device = device_;
        info.address = uint64_t(b->data);
        info.stream = handle_number(s->stream);
        info.segment_type = pool.small ? "small" : "large";
        info.segment_pool_id = pool.owner->id;
        info.is_expandable = s->expandable();
        fresh = false;
      }
      SegmentInfo& info = out.back();
      info.total_size += b->size;
      if (b->state == BlockState::allocated) info.allocated_size += b->size;
      if (b->state != BlockState::free) {
        info.active_size += b->size;
        info.requested_size += b->requested;
      }
      info.blocks.push_back({uint64_t(b->data), b->size, b->requested, detail::state_name(b->state), b->op});
    }
  }
}

/// Throws Error(memory): the request, the memory there is, what holds it, and what to try.
template <MemDriver D>
void CachingAllocator<D>::out_of_memory(const Request& r) {
  using detail::readable;
  ++counters_.counts.num_ooms;
  MemInfo info{0, total_};
  attempt([&] { info = driver_.mem_info(); });
  note(TraceAction::oom, info.free, r.nbytes, handle_number(streams_.stream(r.stream)));
  const auto bytes = [&](StatType type) { return size_t(counters_.current(type)); };
  const size_t reserved = bytes(StatType::reserved_bytes), allocated = bytes(StatType::allocated_bytes);
  const size_t active = bytes(StatType::active_bytes);
  std::string message =
      text("allocate: CUDA out of memory: expected room for ", readable(r.nbytes), " (nbytes) on device ", device_,
           ", got a largest free block of ", readable(largest_hole()), ". The device has ", readable(info.total),
           ", of which ", readable(info.free), " are free; reserved here: ", readable(reserved),
           ", of which allocated ", readable(allocated), ", waiting for other streams ", readable(active - allocated),
           ", free in pieces ", readable(reserved - active), ".");
  if (limit_ != kUnlimited) message += text(" The limit is ", readable(limit_), ".");
  message += describe_live();
  if (!driver_error_.empty()) message += text(" The driver said: ", driver_error_);
  fail(Cause::memory, message + advise(r.size));
}

template <MemDriver D>
size_t CachingAllocator<D>::largest_hole() const {
  size_t largest = 0;
  each_pools([&](const Pools& p) {
    for (const Pool* pool : {&p.small, &p.large})
      for (const auto& bins : pool->bins)
        if (bins) bins->visit([&](const Block* b) { largest = std::max(largest, b->size); });
  });
  return largest;
}

/// Lists the ten largest live blocks, with their ops if the history was on.
template <MemDriver D>
std::string CachingAllocator<D>::describe_live() const {
  std::vector<const Block*> live;
  each_pools([&](const Pools& p) {
    for (const Pool* pool : {&p.small, &p.large})
      for (const Seg* s = pool->segments; s; s = s->next)
        for (const Block* b = s->first; b; b = b->next)
          if (b->state == BlockState::allocated) live.push_back(b);
  });
  const size_t shown = std::min<size_t>(live.size(), 10);
  if (!shown) return "";
  std::partial_sort(live.begin(), live.begin() + long(shown), live.end(),
                    [](const Block* a, const Block* b) { return a->requested > b->requested; });
  std::string out = " Largest live blocks:";
  for (size_t i = 0; i < shown; ++i) {
    out += (i ? ", " : " ") + detail::readable(live[i]->requested);
    if (live[i]->op) out += text(" (", live[i]->op, ")");
  }
  return out + ".";
}

/// Returns the setting that would most likely have helped.
template <MemDriver D>
std::string CachingAllocator<D>::advise(size_t size) const {
  const size_t reserved = size_t(counters_.current(StatType::reserved_bytes));
  const size_t unused = reserved - size_t(counters_.current(StatType::active_bytes));
  if (captures_ > 0) return " A graph is being captured, so no memory could be released: run the step once before.";
  if (!options_.expandable && unused >= size)
    return " Enough is free, but fragmented: try VESTA_CUDA_ALLOC_CONF=expandable_segments:True.";
  if (limit_ != kUnlimited && reserved + size > limit_ && size <= total_)
    return " Raise the limit: set_fraction, or per_process_memory_fraction in VESTA_CUDA_ALLOC_CONF.";
  return history_.on() ? " Free tensors or make the batch smaller."
                       : " Free tensors or make the batch smaller; record_history names the ops that hold memory.";
}

/// Checks the links of a segment and adds what they show to `found`.
template <MemDriver D>
void CachingAllocator<D>::check_segment(const Seg& s, Stats& found) const {
  const bool small = s.pool->small;
  auto& line = found.values[size_t(small ? PoolType::small_pool : PoolType::large_pool)];
  const auto count = [&line](StatType one, StatType bytes, size_t size) {
    ++line[size_t(one)].current;
    line[size_t(bytes)].current += int64_t(size);
  };
  size_t mapped = 0;
  const uint8_t* at = s.base;
  for (const Block* b = s.first; b; b = b->next) {
    VESTA_ASSERT(b->begin() == at && b->segment == &s && b->size > 0 && b->size % kMinBlock == 0);
    VESTA_ASSERT(!b->next || b->next->prev == b);
    VESTA_ASSERT(b->prev || b == s.first);
    at += b->size;
    if (b->state != BlockState::unmapped) mapped += b->size;
    if (b->state == BlockState::allocated) {
      count(StatType::allocation, StatType::allocated_bytes, b->size);
      line[size_t(StatType::requested_bytes)].current += int64_t(b->requested);
    }
    if (b->state == BlockState::free) {
      VESTA_ASSERT(!b->uses);
      VESTA_ASSERT(!b->next || b->next->state != BlockState::free || b->next->stream_index != b->stream_index);
      if (b->split()) count(StatType::inactive_split, StatType::inactive_split_bytes, b->size);
    } else if (b->state != BlockState::unmapped) {
      count(StatType::active, StatType::active_bytes, b->size);
    } else {
      VESTA_ASSERT(b->size % s.chunk == 0 && size_t(b->begin() - s.base) % s.chunk == 0);
      VESTA_ASSERT(!b->next || b->next->state != BlockState::unmapped);
    }
    VESTA_ASSERT((b->uses != nullptr) >= (b->state == BlockState::pending || b->state == BlockState::deferred));
  }
  VESTA_ASSERT(at == s.base + s.size && mapped == s.mapped);
  if (mapped) count(StatType::segment, StatType::reserved_bytes, mapped);
}

/// Checks that the bins and lists of a pool hold its free, pending and deferred blocks, each once.
template <MemDriver D>
void CachingAllocator<D>::check_bins(const Pool& pool) const {
  size_t listed = 0, present = 0;
  for (uint32_t i = 0; i < pool.bins.size(); ++i)
    if (pool.bins[i])
      pool.bins[i]->visit([&](const Block* b) {
        VESTA_ASSERT(b->state == BlockState::free && b->stream_index == i && b->segment->pool == &pool);
        VESTA_ASSERT(b->bins == pool.bins[i].get() && b->bin == Bins<D>::bin_of(b->size) &&
                     pool.bins[i]->find(b->size));
        ++listed;
      });
  for (const Block* b = pool.pending.head; b; b = b->list_next, ++listed)
    for (const Use<D>* u = b->uses; u; u = u->next) VESTA_ASSERT(b->state == BlockState::pending && u->recorded);
  for (const Block* b = pool.deferred.head; b; b = b->list_next, ++listed)
    VESTA_ASSERT(b->state == BlockState::deferred);
  for (const Seg* s = pool.segments; s; s = s->next)
    for (const Block* b = s->first; b; b = b->next)
      present += b->state != BlockState::allocated && b->state != BlockState::unmapped;
  VESTA_ASSERT(listed == present);
}

template <MemDriver D>
void CachingAllocator<D>::check_pool(const Pool& pool, Stats& found) const {
  for (const Seg* s = pool.segments; s; s = s->next) {
    VESTA_ASSERT(s->pool == &pool && (!s->next || s->next->prev == s));
    check_segment(*s, found);
  }
  check_bins(pool);
}

template <MemDriver D>
void CachingAllocator<D>::check() const {
  std::lock_guard lock(mutex_);
  Stats found;
  each_pools([&](const Pools& p) {
    check_pool(p.small, found);
    check_pool(p.large, found);
  });
  const Stats counted = counters_.stats();
  for (size_t t = 0; t < kStatTypes; ++t) {
    for (size_t p = 1; p < 3; ++p) {
      found.values[0][t].current += found.values[p][t].current;
      const Stat& s = counted.values[p][t];
      VESTA_CHECK(s.current == found.values[p][t].current, runtime, "internal error: ", kStatNames[t], ".",
                  kPoolNames[p], " counted ", s.current, ", found ", found.values[p][t].current);
      VESTA_ASSERT(s.peak >= s.current);
    }
    VESTA_ASSERT(counted.values[0][t].current == found.values[0][t].current);
  }
}

}  // namespace vesta::cuda
