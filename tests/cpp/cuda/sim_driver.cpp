#include "sim_driver.h"

#include <algorithm>
#include <numeric>

#include <vesta/core/base/error.h>

namespace sim {

using vesta::Cause;
using vesta::fail;
using vesta::text;

Device::Device(const DeviceOptions& options) : options_(options), random_(options.seed) {
  streams_.resize(1);  // stream 0 is there from the start
}

// ---- Counting and failing -------------------------------------------------------------------------------------------

bool Device::refused(Call c) {
  ++counts_[size_t(c)];
  tick();
  if (failures_ == 0) return false;
  if (until_failure_ > 1) {
    --until_failure_;
    return false;
  }
  --failures_;
  return true;
}

void Device::require(Call c) {
  if (refused(c)) vesta::fail(Cause::device, "sim: call ", int(c), " was made to fail.");
}

void Device::fail(int64_t k, int64_t many) {
  Lock lock(mutex_);
  until_failure_ = k;
  failures_ = many;
}

int64_t Device::calls() const {
  Lock lock(mutex_);
  return std::accumulate(counts_.begin(), counts_.end(), int64_t(0));
}

int64_t Device::memory_calls() const {
  Lock lock(mutex_);
  int64_t sum = 0;
  for (Call c : {Call::malloc_, Call::free_, Call::va_reserve, Call::va_map, Call::va_unmap, Call::va_release,
                 Call::host_malloc, Call::host_free})
    sum += counts_[size_t(c)];
  return sum;
}

void Device::complain(const std::string& what) {
  if (violations_.size() < 100) violations_.push_back(what);
}

// ---- Memory ---------------------------------------------------------------------------------------------------------

uintptr_t Device::addresses(size_t n) {
  // Addresses are reused, as on a device, so that a stale use of one is detected.
  if (auto at = spare_addresses_.find(n); at != spare_addresses_.end()) {
    const uintptr_t base = at->second;
    spare_addresses_.erase(at);
    return base;
  }
  const uintptr_t base = next_address_;
  constexpr uintptr_t kPage = 2 << 20;
  next_address_ += (n + 2 * kPage - 1) / kPage * kPage;
  return base;
}

void* Device::malloc_(size_t n) {
  Lock lock(mutex_);
  if (refused(Call::malloc_) || n > options_.memory - used_) return nullptr;
  used_ += n;
  const uintptr_t base = addresses(n);
  mallocs_[base] = n;
  return reinterpret_cast<void*>(base);
}

void Device::free_(void* p) {
  Lock lock(mutex_);
  require(Call::free_);
  const auto at = mallocs_.find(uintptr_t(p));
  if (at == mallocs_.end()) return complain("free_ of what malloc_ did not give");
  check_unused(at->first, at->first + at->second);
  used_ -= at->second;
  spare_addresses_.emplace(at->second, at->first);
  mallocs_.erase(at);
}

void* Device::va_reserve(size_t n) {
  Lock lock(mutex_);
  if (refused(Call::va_reserve) || n > options_.addresses - reserved_addresses_) return nullptr;
  reserved_addresses_ += n;
  const uintptr_t base = addresses(n);
  ranges_[base] = n;
  return reinterpret_cast<void*>(base);
}

bool Device::va_map(void* base, size_t offset, size_t n) {
  Lock lock(mutex_);
  const bool no = refused(Call::va_map);
  const auto range = ranges_.find(uintptr_t(base));
  if (range == ranges_.end() || offset + n > range->second) complain("va_map outside a reserved range");
  const auto after = mapped_.lower_bound(uintptr_t(base) + offset);
  if (after != mapped_.end() && after->first < uintptr_t(base) + offset + n) complain("va_map of what is mapped");
  if (no || n > options_.memory - used_) return false;
  used_ += n;
  mapped_[uintptr_t(base) + offset] = n;
  return true;
}

void Device::va_unmap(void* base, size_t offset, size_t n) {
  Lock lock(mutex_);
  require(Call::va_unmap);
  const auto at = mapped_.find(uintptr_t(base) + offset);
  if (at == mapped_.end() || at->second != n) return complain("va_unmap of what is not mapped so");
  check_unused(at->first, at->first + n);
  used_ -= n;
  mapped_.erase(at);
}

void Device::va_release(void* base, size_t n) {
  Lock lock(mutex_);
  require(Call::va_release);
  const auto at = ranges_.find(uintptr_t(base));
  if (at == ranges_.end() || at->second != n) return complain("va_release of what is not reserved so");
  const auto inside = mapped_.lower_bound(at->first);
  if (inside != mapped_.end() && inside->first < at->first + n) complain("va_release of what is mapped");
  reserved_addresses_ -= n;
  ranges_.erase(at);
}

vesta::cuda::MemInfo Device::mem_info() {
  Lock lock(mutex_);
  require(Call::mem_info);
  return {options_.memory - used_, options_.memory};
}

void* Device::host_malloc(size_t n) {
  Lock lock(mutex_);
  if (refused(Call::host_malloc)) return nullptr;
  host_used_ += n;
  const uintptr_t base = addresses(n);
  host_[base] = n;
  return reinterpret_cast<void*>(base);
}

void Device::host_free(void* p) {
  Lock lock(mutex_);
  require(Call::host_free);
  const auto at = host_.find(uintptr_t(p));
  if (at == host_.end()) return complain("host_free of what host_malloc did not give");
  check_unused(at->first, at->first + at->second);
  host_used_ -= at->second;
  spare_addresses_.emplace(at->second, at->first);
  host_.erase(at);
}

// ---- Events ---------------------------------------------------------------------------------------------------------

Device::Event Device::event_get() {
  Lock lock(mutex_);
  require(Call::event_get);
  ++live_events_;
  if (spare_events_.empty()) {
    events_.push_back({true, nullptr});
    return Event(events_.size());  // 0 is no event
  }
  const Event e = spare_events_.back();
  spare_events_.pop_back();
  events_[e - 1].taken = true;
  return e;
}

Device::EventState& Device::event(Event e) {
  if (e == 0 || e > events_.size() || !events_[e - 1].taken) {
    complain("an event was used that nobody holds");
    vesta::fail(Cause::device, "sim: no such event.");
  }
  return events_[e - 1];
}

void Device::event_put(Event e) {
  Lock lock(mutex_);
  require(Call::event_put);
  event(e).taken = false;
  --live_events_;
  spare_events_.push_back(e);
}

void Device::event_record(Event e, Stream s) {
  Lock lock(mutex_);
  require(Call::event_record);
  auto mark = std::make_shared<Mark>(Mark{s, false, captures_.contains(s)});
  event(e).mark = mark;
  Op op{Op::record, {}, 0, mark};
  if (mark->captured) captures_[s]->branches[s].push_back(op);
  else streams_[s].queue.push_back(op);
}

bool Device::event_query(Event e) {
  Lock lock(mutex_);
  require(Call::event_query);
  if (!captures_.empty()) complain("event_query during a capture");
  const auto& mark = event(e).mark;
  if (mark && mark->captured) complain("event_query of a captured event");
  return !mark || mark->done;
}

void Device::event_sync(Event e) {
  Lock lock(mutex_);
  require(Call::event_sync);
  if (!captures_.empty()) complain("event_sync during a capture");
  const auto mark = event(e).mark;
  if (mark && mark->captured) return complain("event_sync of a captured event");
  if (mark) force(*mark);
}

void Device::stream_wait(Stream s, Event e) {
  Lock lock(mutex_);
  require(Call::stream_wait);
  const auto mark = event(e).mark;
  if (!mark) return;
  if (captures_.contains(s) && !mark->captured) return complain("a capture waits for what is outside");
  Op op{Op::wait, {}, 0, mark};
  if (!mark->captured) return streams_[s].queue.push_back(op);
  const auto from = captures_.find(mark->stream);
  if (from == captures_.end()) return complain("a wait for an event of a capture that is over");
  const auto graph = from->second;
  captures_[s] = graph;  // the wait pulls the stream into the capture
  graph->branches[s].push_back(op);
}

bool Device::is_capturing(Stream s) {
  Lock lock(mutex_);
  require(Call::is_capturing);
  return captures_.contains(s);
}

int64_t Device::now() {
  Lock lock(mutex_);
  return ++now_;
}

// ---- The program's side ---------------------------------------------------------------------------------------------

Device::Stream Device::stream() {
  Lock lock(mutex_);
  streams_.emplace_back();
  return streams_.size() - 1;
}

void Device::cut_at(uintptr_t at) {
  auto after = owners_.upper_bound(at);
  if (after == owners_.begin()) return;
  auto piece = std::prev(after);
  if (piece->first == at || piece->second.high <= at) return;
  owners_.emplace(at, piece->second);
  piece->second.high = at;
}

/// Lists the owners, present and earlier, with unfinished kernels on a range.
std::vector<Owner> Device::users(uintptr_t low, uintptr_t high) const {
  std::vector<Owner> found;
  const auto add = [&](const Owner& o) {
    const bool overlaps = o->low < high && o->high > low;
    if (overlaps && (o->outstanding > 0 || o->captured) && std::find(found.begin(), found.end(), o) == found.end())
      found.push_back(o);
  };
  auto at = owners_.upper_bound(low);
  if (at != owners_.begin()) --at;
  for (; at != owners_.end() && at->first < high; ++at) {
    if (at->second.high <= low) continue;
    add(at->second.owner);
    for (const Owner& o : at->second.owner->before) add(o);
  }
  return found;
}

Owner Device::own(void* p, size_t n, int pool) {
  Lock lock(mutex_);
  const uintptr_t low = uintptr_t(p), high = low + n;
  auto owner = std::make_shared<Range>();
  owner->low = low;
  owner->high = high;
  owner->pool = pool;
  owner->before = users(low, high);
  cut_at(low);
  cut_at(high);
  for (auto at = owners_.lower_bound(low); at != owners_.end() && at->first < high; at = owners_.erase(at))
    if (at->second.owner->alive) complain("memory was handed out that has an owner");
  owners_.emplace(low, Piece{high, owner});
  return owner;
}

void Device::disown(const Owner& owner) {
  Lock lock(mutex_);
  if (!owner->alive) complain("memory was given back twice");
  owner->alive = false;
}

void Device::check_unused(uintptr_t low, uintptr_t high) {
  if (!captures_.empty()) complain("memory was taken away during a capture");
  for (const Owner& o : users(low, high))
    if (o->outstanding > 0) complain("memory was taken away under a kernel");
  cut_at(low);
  cut_at(high);
  for (auto at = owners_.lower_bound(low); at != owners_.end() && at->first < high; at = owners_.erase(at))
    if (at->second.owner->alive) complain("memory was taken away from its owner");
}

void Device::kernel(Stream s, std::vector<Owner> touched, int64_t duration) {
  Lock lock(mutex_);
  for (const Owner& o : touched)
    if (!o->alive) complain("a kernel was queued on memory that was given back");
  Op op{Op::kernel, std::move(touched), duration, nullptr};
  if (const auto capture = captures_.find(s); capture != captures_.end()) {
    for (const Owner& o : op.touched) {
      o->captured = true;
      if (o->pool != capture->second->pool) complain("a graph uses memory outside its pool");
    }
    capture->second->branches[s].push_back(std::move(op));
  } else {
    for (const Owner& o : op.touched) ++o->outstanding;
    streams_[s].queue.push_back(std::move(op));
  }
  tick();
}

void Device::order(Stream first, Stream second) {
  Lock lock(mutex_);
  auto mark = std::make_shared<Mark>(Mark{first, false, captures_.contains(first)});
  if (mark->captured) {
    const auto graph = captures_[first];
    captures_[second] = graph;
    graph->branches[first].push_back({Op::record, {}, 0, mark});
    graph->branches[second].push_back({Op::wait, {}, 0, mark});
    return;
  }
  streams_[first].queue.push_back({Op::record, {}, 0, mark});
  streams_[second].queue.push_back({Op::wait, {}, 0, mark});
}

void Device::synchronize() {
  Lock lock(mutex_);
  drain(~uint64_t(0));
}

void Device::begin_capture(Stream s, int pool) {
  Lock lock(mutex_);
  auto graph = std::make_shared<Graph>();
  graph->pool = pool;
  graph->origin = s;
  captures_[s] = graph;
}

std::shared_ptr<Graph> Device::end_capture(Stream s) {
  Lock lock(mutex_);
  const auto graph = captures_.at(s);
  std::erase_if(captures_, [&](const auto& entry) { return entry.second == graph; });
  return graph;
}

/// Queues a graph: each branch on a stream for replays, after the earlier work of `s`, and `s` after them all.
void Device::launch(const std::shared_ptr<Graph>& graph, Stream s) {
  Lock lock(mutex_);
  if (graph->last_launch) force(*graph->last_launch);
  std::map<Mark*, std::shared_ptr<Mark>> marks;
  const auto mark_of = [&](const std::shared_ptr<Mark>& m, Stream at) {
    auto& copy = marks[m.get()];
    if (!copy) copy = std::make_shared<Mark>(Mark{at, false, false});
    return copy;
  };
  const auto begun = std::make_shared<Mark>(Mark{s, false, false});
  streams_[s].queue.push_back({Op::record, {}, 0, begun});
  std::map<uint64_t, Stream> streams;
  for (const auto& [branch, ops] : graph->branches) {
    if (!replay_streams_.contains(branch)) replay_streams_[branch] = stream();
    streams[branch] = replay_streams_[branch];
  }
  for (const auto& [branch, ops] : graph->branches) {
    const Stream on = streams[branch];
    streams_[on].queue.push_back({Op::wait, {}, 0, begun});
    for (Op op : ops) {
      if (op.mark) op.mark = mark_of(op.mark, streams[op.mark->stream]);
      for (const Owner& o : op.touched) {
        ++o->outstanding;
        for (auto at = owners_.lower_bound(o->low); at != owners_.end() && at->first < o->high; ++at)
          if (at->second.owner->pool != graph->pool) complain("memory of a graph has another owner");
      }
      streams_[on].queue.push_back(std::move(op));
    }
    const auto ended = std::make_shared<Mark>(Mark{on, false, false});
    streams_[on].queue.push_back({Op::record, {}, 0, ended});
    streams_[s].queue.push_back({Op::wait, {}, 0, ended});
  }
  graph->last_launch = std::make_shared<Mark>(Mark{s, false, false});
  streams_[s].queue.push_back({Op::record, {}, 0, graph->last_launch});
  tick();
}

// ---- The device's side ----------------------------------------------------------------------------------------------

void Device::start(const Op& op) {
  for (const Owner& o : op.touched) {
    for (const Owner& earlier : o->before)
      if (earlier->outstanding > 0) complain("a kernel started while one of an earlier owner was unfinished");
    std::erase_if(o->before, [](const Owner& e) { return e->outstanding == 0 && !e->captured; });
  }
}

/// Runs the next op of a stream; returns false if there is none or it must wait. `hurry`: ignore the clock.
bool Device::step(Stream s, bool hurry) {
  StreamState& state = streams_[s];
  if (state.queue.empty()) return false;
  Op& op = state.queue.front();
  if (op.kind == Op::wait && !op.mark->done) return false;
  if (op.kind == Op::kernel && !state.running) {
    start(op);
    state.running = true;
    state.free_at = std::max(state.free_at, now_) + op.duration;
    return true;
  }
  if (op.kind == Op::kernel) {
    if (!hurry && state.free_at > now_) return false;
    now_ = std::max(now_, state.free_at);
    for (const Owner& o : op.touched) --o->outstanding;
    state.running = false;
  }
  if (op.kind == Op::record) op.mark->done = true;
  state.queue.pop_front();
  return true;
}

/// Runs all that can run on all streams but one.
void Device::drain(uint64_t except) {
  for (bool any = true; any;) {
    any = false;
    for (Stream s = 0; s < streams_.size(); ++s)
      while (s != except && step(s, true)) any = true;
  }
}

/// Runs as little as possible until a mark is reached.
void Device::force(Mark& mark) {
  while (!mark.done) {
    if (step(mark.stream, true)) continue;
    if (streams_[mark.stream].queue.empty()) return complain("a wait for what was never queued");
    force(*streams_[mark.stream].queue.front().mark);
  }
}

void Device::tick() {
  switch (options_.policy) {
    case Policy::eager: return drain(~uint64_t(0));
    case Policy::lazy: return;
    case Policy::random:
      for (uint64_t n = random_() % 6; n > 0; --n) step(random_() % streams_.size(), true);
      return;
    case Policy::adversarial:
      if (random_() % 32 == 0) victim_ = random_() % streams_.size();
      return drain(victim_);
    case Policy::timed:
      ++now_;
      for (bool any = true; any;) {
        any = false;
        for (Stream s = 0; s < streams_.size(); ++s)
          while (step(s, false)) any = true;
      }
  }
}

}  // namespace sim
