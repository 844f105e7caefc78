// The streams an allocator has seen, and the events that order one after another.
//
// Memory freed on stream A is free for A at once: what A queues later runs later. For stream B, and for the host, it
// is free when A has reached the point of the free. Each stream counts its frees; a block remembers the count. One
// event per stream marks a count, so that one record and one wait are enough for many blocks.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include <vesta/cuda/memory/mem_driver.h>

namespace vesta::cuda {

template <EventDriver D>
class StreamTable {
 public:
  using Stream = typename D::Stream;

  explicit StreamTable(D& driver) : driver_(driver) {}
  ~StreamTable() {
    for (State& s : states_)
      if (s.has_event) try {
          driver_.event_put(s.event);
        } catch (...) {  // the device is gone, or shutting down
        }
  }
  StreamTable(const StreamTable&) = delete;
  StreamTable& operator=(const StreamTable&) = delete;

  /// Returns the stream's index, which never changes.
  uint32_t index(Stream s) {
    const Recent& r = recent_[slot(s)];
    if (r.known && r.stream == s) [[likely]]
      return r.index;
    return find(s);
  }
  size_t size() const { return states_.size(); }
  Stream stream(uint32_t i) const { return states_[i].stream; }

  /// Counts a free on a stream and returns the count: work queued on the stream so far comes before it.
  uint64_t mark(uint32_t i) noexcept { return ++states_[i].marks; }
  uint64_t marks(uint32_t i) const noexcept { return states_[i].marks; }

  /// Makes stream `to` wait for what `from` had queued at `mark`; returns the number of waits queued (0 or 1).
  int gate(uint32_t from, uint64_t mark, uint32_t to) {
    State& a = states_[from];
    State& b = states_[to];
    if (from == to || mark <= a.host_saw) return 0;
    if (b.waited.size() < states_.size()) b.waited.resize(states_.size());
    if (b.waited[from] >= mark) return 0;
    cover(a, mark);
    driver_.stream_wait(b.stream, a.event);
    b.waited[from] = a.event_at;
    return 1;
  }

  /// Makes the host wait for what stream `i` had queued at `mark`.
  void sync(uint32_t i, uint64_t mark) {
    State& s = states_[i];
    if (mark <= s.host_saw) return;
    cover(s, mark);
    driver_.event_sync(s.event);
    s.host_saw = s.event_at;
  }

  /// Makes the host wait for everything queued on every known stream.
  void sync_all() {
    for (uint32_t i = 0; i < states_.size(); ++i) sync(i, mark(i));
  }

 private:
  struct State {
    Stream stream{};
    uint64_t marks = 0;
    uint64_t event_at = 0;  // the count when the event was last recorded
    uint64_t host_saw = 0;  // the highest count that the host has seen reached
    typename D::Event event{};
    bool has_event = false;
    std::vector<uint64_t> waited;  // by stream: the count that this one has waited for
  };
  struct Recent {
    Stream stream{};
    uint32_t index = 0;
    bool known = false;
  };

  static size_t slot(Stream s) {
    const uint64_t n = handle_number(s);
    return (n ^ (n >> 4) ^ (n >> 10)) % 64;
  }

  uint32_t find(Stream s) {
    auto [at, fresh] = indices_.try_emplace(handle_number(s), uint32_t(states_.size()));
    if (fresh) {
      try {
        states_.emplace_back().stream = s;
      } catch (...) {
        indices_.erase(at);
        throw;
      }
    }
    recent_[slot(s)] = {s, at->second, true};
    return at->second;
  }

  void cover(State& s, uint64_t mark) {
    if (s.event_at >= mark) return;
    if (!s.has_event) {
      s.event = driver_.event_get();
      s.has_event = true;
    }
    driver_.event_record(s.event, s.stream);
    s.event_at = s.marks;
  }

  D& driver_;
  std::vector<State> states_;
  std::unordered_map<uint64_t, uint32_t> indices_;
  std::array<Recent, 64> recent_{};
};

}  // namespace vesta::cuda
