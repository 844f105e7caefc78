// Counters of the allocator under the key names of torch.cuda.memory_stats.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <vesta/core/base/macros.h>

namespace vesta::cuda {

/// One quantity: its value, its highest value, and all that was ever added and removed.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;
};

/// The counted quantities. `active` is allocated or still in use by a stream; `inactive_split` is free within a
/// segment that is not free as a whole. StatCounters counts on the order of the first five.
enum class StatType : uint8_t {
  allocation,
  allocated_bytes,
  requested_bytes,
  active,
  active_bytes,
  inactive_split,
  inactive_split_bytes,
  segment,
  reserved_bytes
};
inline constexpr size_t kStatTypes = 9;
inline constexpr std::array<const char*, kStatTypes> kStatNames = {
    "allocation",     "allocated_bytes",      "requested_bytes", "active",        "active_bytes",
    "inactive_split", "inactive_split_bytes", "segment",         "reserved_bytes"};

/// The pools that are counted separately.
enum class PoolType : uint8_t { all, small_pool, large_pool };
inline constexpr std::array<const char*, 3> kPoolNames = {"all", "small_pool", "large_pool"};

/// The counters that only rise, and the settings that PyTorch lists among them.
struct EventCounts {
  int64_t num_alloc_retries = 0;     // the allocator had to free its own memory or wait
  int64_t num_ooms = 0;              // Error(memory) was thrown
  int64_t num_sync_all_streams = 0;  // the host waited for streams
  int64_t num_device_alloc = 0;      // driver calls that allocate memory
  int64_t num_device_free = 0;       // driver calls that free it
  int64_t num_steals = 0;            // memory moved to another stream, behind an event
  int64_t num_stream_waits = 0;      // waits queued for that
  int64_t ladder_us = 0;             // time spent after growing failed
  int64_t max_split_size = -1;
};

/// The result of CachingAllocator::stats(): a copy of all counters.
struct Stats {
  std::array<std::array<Stat, kStatTypes>, 3> values{};  // by pool, then by type
  Stat oversize_allocations, oversize_segments;
  EventCounts counts;

  /// Returns one quantity of one pool.
  const Stat& get(StatType type, PoolType pool = PoolType::all) const { return values[size_t(pool)][size_t(type)]; }

  /// Returns all quantities as torch.cuda.memory_stats lists them: `allocated_bytes.all.peak` and so on.
  std::vector<std::pair<std::string, int64_t>> items() const {
    std::vector<std::pair<std::string, int64_t>> all;
    const auto add = [&all](const std::string& name, const Stat& s) {
      all.insert(all.end(), {{name + ".current", s.current},
                             {name + ".peak", s.peak},
                             {name + ".allocated", s.allocated},
                             {name + ".freed", s.freed}});
    };
    for (size_t type = 0; type < kStatTypes; ++type)
      for (size_t pool = 0; pool < 3; ++pool)
        add(std::string(kStatNames[type]) + "." + kPoolNames[pool], values[pool][type]);
    add("oversize_allocations", oversize_allocations);
    add("oversize_segments", oversize_segments);
    all.insert(all.end(), {{"num_alloc_retries", counts.num_alloc_retries},
                           {"num_ooms", counts.num_ooms},
                           {"num_sync_all_streams", counts.num_sync_all_streams},
                           {"num_device_alloc", counts.num_device_alloc},
                           {"num_device_free", counts.num_device_free},
                           {"num_steals", counts.num_steals},
                           {"num_stream_waits", counts.num_stream_waits},
                           {"ladder_us", counts.ladder_us},
                           {"max_split_size", counts.max_split_size}});
    return all;
  }
};

/// The counters, made for speed. The total allocated is computed from the current value and the amount freed, sums
/// over pools from the pools, and `active` from `allocation` and what is pending: only values, peaks and frees are
/// updated as they happen. While nothing is pending the peaks of `active` are those of `allocation`, so they are
/// updated at other times only.
class StatCounters {
 public:
  EventCounts counts;
  Stat oversize_allocations, oversize_segments;

  // `small` is 1 for the small pool, 0 for the large one.
  VESTA_INLINE void block_allocated(size_t small, size_t size, size_t requested) {
    add(small, 0, 1);
    add(small, 1, int64_t(size));
    add(small, 2, int64_t(requested));
    if (all_pending_) [[unlikely]]
      raise_active(small);
  }
  /// Counts a free; a `pending` block is still active until block_completed.
  VESTA_INLINE void block_freed(size_t small, size_t size, size_t requested, bool pending) {
    take(small, 0, 1);
    take(small, 1, int64_t(size));
    take(small, 2, int64_t(requested));
    if (pending) [[unlikely]] {
      pending_[0][small] += 1, pending_[1][small] += int64_t(size);
      ++all_pending_;
    }
  }
  void block_completed(size_t small, size_t size) {
    pending_[0][small] -= 1, pending_[1][small] -= int64_t(size);
    --all_pending_;
  }
  VESTA_INLINE void holes_changed(size_t small, int64_t count, int64_t bytes) {
    if (count) change(small, kHoles, count);
    if (bytes) change(small, kHoles + 1, bytes);
  }
  void segments_changed(size_t small, int64_t count, int64_t bytes) {
    change(small, kSegments, count);
    change(small, kSegments + 1, bytes);
  }
  int64_t current(StatType type) const { return value(0, size_t(type)) + value(1, size_t(type)); }

  void reset_peak() {
    for (size_t t = 0; t < kStatTypes; ++t) {
      for (size_t small = 0; small < 2; ++small) peak_[t][small] = value(small, t);
      all_peak_[t] = value(0, t) + value(1, t);
    }
    oversize_allocations.peak = oversize_allocations.current;
    oversize_segments.peak = oversize_segments.current;
  }
  void reset_accumulated() {
    for (size_t small = 0; small < 2; ++small) {
      for (size_t t = 0; t < kStatTypes; ++t) {
        freed_before_[t][small] = freed(small, t);
        current_before_[t][small] = value(small, t);
      }
    }
    for (Stat* s : {&oversize_allocations, &oversize_segments}) s->allocated = s->freed = 0;
    const int64_t split = counts.max_split_size;
    counts = {};
    counts.max_split_size = split;
  }

  Stats stats() const {
    Stats s;
    for (size_t t = 0; t < kStatTypes; ++t) {
      Stat& all = s.values[size_t(PoolType::all)][t];
      for (size_t small = 0; small < 2; ++small) {
        Stat& one = s.values[size_t(small ? PoolType::small_pool : PoolType::large_pool)][t];
        one.current = value(small, t);
        one.peak = is_active(t) ? std::max(peak_[t][small], peak_[t - kActive][small]) : peak_[t][small];
        one.freed = freed(small, t) - freed_before_[t][small];
        one.allocated = one.current - current_before_[t][small] + one.freed;
        all.current += one.current;
        all.allocated += one.allocated;
        all.freed += one.freed;
      }
      all.peak = is_active(t) ? std::max(all_peak_[t], all_peak_[t - kActive]) : all_peak_[t];
    }
    s.oversize_allocations = oversize_allocations;
    s.oversize_segments = oversize_segments;
    s.counts = counts;
    return s;
  }

  static void increase(Stat& s, int64_t by) {
    s.current += by;
    raise(s.peak, s.current);
    s.allocated += by;
  }
  static void decrease(Stat& s, int64_t by) {
    s.current -= by;
    s.freed += by;
  }

 private:
  using Rows = std::array<std::array<int64_t, 2>, kStatTypes>;  // by type, then large and small
  static constexpr size_t kActive = size_t(StatType::active), kHoles = size_t(StatType::inactive_split),
                          kSegments = size_t(StatType::segment);

  /// Raises a peak. New peaks are rare: a branch costs less than a conditional store.
  static VESTA_INLINE void raise(int64_t& peak, int64_t now) {
    if (now > peak) [[unlikely]]
      peak = now;
  }
  VESTA_INLINE void add(size_t small, size_t t, int64_t by) {
    const int64_t now = current_[t][small] += by;
    raise(peak_[t][small], now);
    raise(all_peak_[t], now + current_[t][small ^ 1]);
  }
  VESTA_INLINE void take(size_t small, size_t t, int64_t by) {
    current_[t][small] -= by;
    freed_[t][small] += by;
  }
  VESTA_INLINE void change(size_t small, size_t t, int64_t by) { by > 0 ? add(small, t, by) : take(small, t, -by); }
  [[gnu::noinline]] void raise_active(size_t small) {
    for (size_t t = kActive; t < kActive + 2; ++t) {
      raise(peak_[t][small], value(small, t));
      raise(all_peak_[t], value(0, t) + value(1, t));
    }
  }
  static bool is_active(size_t t) { return t == kActive || t == kActive + 1; }
  int64_t value(size_t small, size_t t) const {
    return is_active(t) ? current_[t - kActive][small] + pending_[t - kActive][small] : current_[t][small];
  }
  int64_t freed(size_t small, size_t t) const {
    return is_active(t) ? freed_[t - kActive][small] - pending_[t - kActive][small] : freed_[t][small];
  }

  Rows current_{}, peak_{}, freed_{};  // for `active` only the peak is used
  Rows current_before_{}, freed_before_{};
  std::array<int64_t, kStatTypes> all_peak_{};
  std::array<std::array<int64_t, 2>, 2> pending_{};  // blocks, then bytes
  int64_t all_pending_ = 0;                          // blocks
};

}  // namespace vesta::cuda
