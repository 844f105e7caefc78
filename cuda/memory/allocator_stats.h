// Counters of the allocator under the key names of torch.cuda.memory_stats.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace vesta::cuda {

/// Follows one quantity: its value, its highest value, and all that was ever added and taken away.
struct Stat {
  int64_t current = 0;
  int64_t peak = 0;
  int64_t allocated = 0;
  int64_t freed = 0;
};

/// Names the counted quantities. `active` is allocated or still in use by a stream; `inactive_split` is free within a
/// segment that is not free as a whole. The order matters: an allocation changes the first five, at once.
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

/// Names the pools that are counted apart.
enum class PoolType : uint8_t { all, small_pool, large_pool };
inline constexpr std::array<const char*, 3> kPoolNames = {"all", "small_pool", "large_pool"};

/// Holds counts that only rise, and settings that PyTorch lists among them.
struct EventCounts {
  int64_t num_alloc_retries = 0;     // the allocator had to free memory of its own or wait
  int64_t num_ooms = 0;              // Error(memory) was thrown
  int64_t num_sync_all_streams = 0;  // the host waited for streams
  int64_t num_device_alloc = 0;      // driver calls that give memory
  int64_t num_device_free = 0;       // driver calls that take it away
  int64_t num_steals = 0;            // memory went to another stream, gated by an event
  int64_t num_stream_waits = 0;      // waits queued for that
  int64_t ladder_us = 0;             // time spent after growing failed
  int64_t max_split_size = -1;
};

/// Is what CachingAllocator::stats() returns: a copy of all counters.
struct Stats {
  std::array<std::array<Stat, kStatTypes>, 3> values{};  // by pool, then by type
  Stat oversize_allocations, oversize_segments;
  EventCounts counts;

  /// Returns one quantity of one pool.
  const Stat& get(StatType type, PoolType pool = PoolType::all) const { return values[size_t(pool)][size_t(type)]; }

  /// Returns all as torch.cuda.memory_stats lists them: `allocated_bytes.all.peak` and so on.
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

/// Counts, quickly: quantities that change together are neighbours, and the sums over pools are formed when read.
/// Only the peak of a sum must be followed as it happens.
class StatCounters {
 public:
  EventCounts counts;
  Stat oversize_allocations, oversize_segments;

  void block_allocated(bool small, size_t size, size_t requested) {
    const int64_t by[5] = {1, int64_t(size), int64_t(requested), 1, int64_t(size)};
    add<0, 5>(small, by);
  }
  void block_freed(bool small, size_t size, size_t requested) {
    const int64_t by[3] = {1, int64_t(size), int64_t(requested)};
    take<0, 3>(small, by);
  }
  void block_completed(bool small, size_t size) {
    const int64_t by[2] = {1, int64_t(size)};
    take<3, 2>(small, by);
  }
  void holes_changed(bool small, int64_t count, int64_t bytes) {
    change<5>(small, count);
    change<6>(small, bytes);
  }
  void segments_changed(bool small, int64_t count, int64_t bytes) {
    change<7>(small, count);
    change<8>(small, bytes);
  }
  int64_t current(StatType type) const { return all_[size_t(type)]; }
  int64_t current(StatType type, bool small) const { return lines_[small].current[size_t(type)]; }

  void reset_peak() {
    for (Line& line : lines_) line.peak = line.current;
    all_peak_ = all_;
    oversize_allocations.peak = oversize_allocations.current;
    oversize_segments.peak = oversize_segments.current;
  }
  void reset_accumulated() {
    for (Line& line : lines_) line.allocated = line.freed = {};
    for (Stat* s : {&oversize_allocations, &oversize_segments}) s->allocated = s->freed = 0;
    const int64_t split = counts.max_split_size;
    counts = {};
    counts.max_split_size = split;
  }

  Stats stats() const {
    Stats s;
    for (size_t t = 0; t < kStatTypes; ++t) {
      for (size_t small = 0; small < 2; ++small) {
        const Line& line = lines_[small];
        Stat& one = s.values[small ? size_t(PoolType::small_pool) : size_t(PoolType::large_pool)][t];
        one = {line.current[t], line.peak[t], line.allocated[t], line.freed[t]};
        s.values[0][t].allocated += one.allocated;
        s.values[0][t].freed += one.freed;
      }
      s.values[0][t].current = all_[t];
      s.values[0][t].peak = all_peak_[t];
    }
    s.oversize_allocations = oversize_allocations;
    s.oversize_segments = oversize_segments;
    s.counts = counts;
    return s;
  }

  static void increase(Stat& s, int64_t by) {
    s.current += by;
    s.peak = std::max(s.peak, s.current);
    s.allocated += by;
  }
  static void decrease(Stat& s, int64_t by) {
    s.current -= by;
    s.freed += by;
  }

 private:
  using Row = std::array<int64_t, kStatTypes>;
  struct Line {
    Row current{}, peak{}, allocated{}, freed{};
  };

  template <size_t first, size_t n>
  void add(bool small, const int64_t (&by)[n == 0 ? 1 : n]) {
    Line& line = lines_[small];
    for (size_t i = 0; i < n; ++i) {
      line.allocated[first + i] += by[i];
      const int64_t now = line.current[first + i] += by[i];
      line.peak[first + i] = std::max(line.peak[first + i], now);
      const int64_t sum = all_[first + i] += by[i];
      all_peak_[first + i] = std::max(all_peak_[first + i], sum);
    }
  }
  template <size_t first, size_t n>
  void take(bool small, const int64_t (&by)[n]) {
    Line& line = lines_[small];
    for (size_t i = 0; i < n; ++i) {
      line.freed[first + i] += by[i];
      line.current[first + i] -= by[i];
      all_[first + i] -= by[i];
    }
  }
  template <size_t at>
  void change(bool small, int64_t by) {
    const int64_t one[1] = {by < 0 ? -by : by};
    if (by > 0) add<at, 1>(small, one);
    if (by < 0) take<at, 1>(small, one);
  }

  Line lines_[2];  // large, small
  Row all_{}, all_peak_{};
};

}  // namespace vesta::cuda
