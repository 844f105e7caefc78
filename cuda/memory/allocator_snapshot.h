// The state and the history of the allocator, in the layout of torch.cuda.memory._snapshot(), so that PyTorch's viewers
// can open it.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include <vesta/core/base/error.h>

namespace vesta::cuda {

/// The id of a private pool, PyTorch's pair: captures are numbered in the first number, pools of the user in the
/// second; {0, 0} is the common pool.
struct PoolId {
  uint64_t capture = 0;
  uint64_t user = 0;
  auto operator<=>(const PoolId&) const = default;
};

/// A block of a segment; `state` is active_allocated, active_pending_free or inactive.
struct BlockInfo {
  uint64_t address = 0;
  size_t size = 0;
  size_t requested_size = 0;
  const char* state = "inactive";
  const char* op = nullptr;  // the op that allocated it, when the history was on
};

/// A piece of memory from the driver.
struct SegmentInfo {
  int device = 0;
  uint64_t address = 0;
  size_t total_size = 0;
  size_t allocated_size = 0;
  size_t active_size = 0;
  size_t requested_size = 0;
  uint64_t stream = 0;
  const char* segment_type = "large";  // or small
  PoolId segment_pool_id;
  bool is_expandable = false;
  std::vector<BlockInfo> blocks;
};

/// The kind of an event, with the names of PyTorch's traces.
enum class TraceAction : uint8_t {
  alloc,
  free_requested,
  free_completed,
  segment_alloc,
  segment_free,
  segment_map,
  segment_unmap,
  snapshot,
  oom
};
inline constexpr const char* kTraceActionNames[] = {"alloc",         "free_requested", "free_completed",
                                                    "segment_alloc", "segment_free",   "segment_map",
                                                    "segment_unmap", "snapshot",       "oom"};

/// One event of the history. If the action is oom, `addr` is the device's free memory.
struct TraceEntry {
  TraceAction action = TraceAction::alloc;
  int device = 0;
  uint64_t addr = 0;
  size_t size = 0;
  uint64_t stream = 0;
  int64_t time_us = 0;
  const char* op = nullptr;
};

/// The result of CachingAllocator::snapshot(); `device_traces` is oldest first.
struct Snapshot {
  std::vector<SegmentInfo> segments;
  std::vector<TraceEntry> device_traces;
};

/// The last events, up to a number.
class History {
 public:
  bool on() const { return on_; }
  /// Starts anew with room for `max_entries`, or stops and keeps what it has.
  void record(bool on, size_t max_entries) {
    on_ = on;
    if (!on) return;
    VESTA_CHECK(max_entries > 0, value, "record_history: expected at least 1, got 0 (max_entries).");
    entries_.clear();
    entries_.shrink_to_fit();
    next_ = 0;
    room_ = max_entries;
  }
  void push(const TraceEntry& entry) noexcept {
    if (entries_.size() < room_) {
      try {
        entries_.push_back(entry);
      } catch (const std::bad_alloc&) {  // the host has no more memory: the ring ends here
        room_ = entries_.size();
        if (!room_) return;
        next_ %= room_;
        entries_[next_] = entry;
      }
    } else {
      entries_[next_] = entry;
    }
    next_ = (next_ + 1) % room_;
  }
  /// Returns the events, oldest first.
  std::vector<TraceEntry> entries() const {
    std::vector<TraceEntry> sorted = entries_;
    if (entries_.size() == room_) std::rotate(sorted.begin(), sorted.begin() + long(next_), sorted.end());
    return sorted;
  }

 private:
  std::vector<TraceEntry> entries_;
  size_t next_ = 0;
  size_t room_ = 0;
  bool on_ = false;
};

namespace detail {

inline std::string json_string(std::string_view s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out.push_back('\\');
    if (uint8_t(c) >= 0x20) out.push_back(c);  // names of ops hold no control characters
  }
  return out + "\"";
}

inline std::string json_frames(const char* op) {
  if (!op) return "[]";
  return text("[{\"name\": ", json_string(op), ", \"filename\": \"\", \"line\": 0}]");
}

inline std::string json_of(const BlockInfo& b) {
  return text("{\"address\": ", b.address, ", \"size\": ", b.size, ", \"requested_size\": ", b.requested_size,
              ", \"state\": \"", b.state, "\", \"frames\": ", json_frames(b.op), "}");
}

inline std::string json_of(const SegmentInfo& s) {
  std::string out =
      text("{\"device\": ", s.device, ", \"address\": ", s.address, ", \"total_size\": ", s.total_size,
           ", \"allocated_size\": ", s.allocated_size, ", \"active_size\": ", s.active_size,
           ", \"requested_size\": ", s.requested_size, ", \"stream\": ", s.stream, ", \"segment_type\": \"",
           s.segment_type, "\", \"segment_pool_id\": [", s.segment_pool_id.capture, ", ", s.segment_pool_id.user,
           "], \"is_expandable\": ", s.is_expandable ? "true" : "false", ", \"frames\": [], \"blocks\": [");
  for (size_t i = 0; i < s.blocks.size(); ++i) out += (i ? ", " : "") + json_of(s.blocks[i]);
  return out + "]}";
}

inline std::string json_of(const TraceEntry& t) {
  return text("{\"action\": \"", kTraceActionNames[size_t(t.action)], "\", \"",
              t.action == TraceAction::oom ? "device_free" : "addr", "\": ", t.addr, ", \"size\": ", t.size,
              ", \"stream\": ", t.stream, ", \"time_us\": ", t.time_us, ", \"frames\": ", json_frames(t.op), "}");
}

}  // namespace detail

/// Writes a snapshot as JSON with the keys of PyTorch's dict; traces are under their device's index.
inline std::string to_json(const Snapshot& snapshot, int device) {
  std::string out = "{\"segments\": [";
  for (size_t i = 0; i < snapshot.segments.size(); ++i) out += (i ? ", " : "") + detail::json_of(snapshot.segments[i]);
  out += "], \"device_traces\": [";
  for (int i = 0; i < device; ++i) out += "[], ";
  out += "[";
  for (size_t i = 0; i < snapshot.device_traces.size(); ++i)
    out += (i ? ", " : "") + detail::json_of(snapshot.device_traces[i]);
  return out + "]]}";
}

}  // namespace vesta::cuda
