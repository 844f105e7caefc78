#include <vesta/core/ops/profile.h>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <unordered_map>

#include <fmt/format.h>

namespace vesta::profiler {
namespace {

/// Returns what a rate is of a peak, in percent. More than all means that a cache had the bytes, or that an algorithm
/// needed fewer operations than are counted. The CPU's peaks say nothing about other devices.
std::string share(bool on_device, double rate, double peak) {
  return on_device ? "-" : fmt::format("{:.1f}", std::min(100.0, 100 * rate / std::max(peak, 1.0)));
}

/// Returns a ratio as text; one above 1000 says only that there is next to nothing to compute.
std::string times_faster(double ratio) {
  return ratio <= 0 || ratio > 1000 ? "-" : fmt::format("{:.1f}x", std::max(1.0, ratio));
}

constexpr const char* kCategories[] = {"cpu_op", "user_annotation", "python_function", "cpu_op", "cpu_op"};

/// Returns a string escaped for JSON, without its quotes.
std::string escaped(const std::string& text) {
  std::string r;
  for (char c : text) {
    if (c == '"' || c == '\\') r += '\\';
    r += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  }
  return r;
}

/// Where an event of a trace belongs: a module's path, and the phase.
struct Home {
  std::string layer = "(outside of layers)";
  bool backward = false;
};

/// The homes of all events. A step of backward has the number of the node that an op of forward made.
class Homes {
 public:
  explicit Homes(const std::vector<Trace>& traces) {
    for (const Trace& trace : traces) add(trace);
  }
  const Home& of(const Trace& trace, size_t i) const { return homes_.at(&trace)[i]; }

 private:
  void add(const Trace& trace) {
    constexpr uint64_t kAdds = ~0ull;  // the number of every node that adds into a gradient
    std::vector<Home>& homes = homes_[&trace];
    Home last_step;
    for (const Event& e : trace.events) {
      Home home = e.parent == Event::kNone ? Home{} : homes[e.parent];
      if (e.kind == Kind::layer) home.layer = trace.name_of(e);
      if (e.kind == Kind::function) {
        const auto made = makers_.find(e.first_node);
        home = e.first_node == kAdds ? last_step : made == makers_.end() ? home : made->second;
        home.backward = true;
        last_step = home;
      }
      for (uint64_t n = e.first_node; e.kind == Kind::op && n < e.last_node; ++n) makers_.insert_or_assign(n, home);
      homes.push_back(std::move(home));
    }
  }

  std::unordered_map<uint64_t, Home> makers_;
  std::unordered_map<const Trace*, std::vector<Home>> homes_;
};

/// Returns the time of each event without what it contains, in nanoseconds.
std::vector<int64_t> own_times(const Trace& trace) {
  std::vector<int64_t> own;
  for (const Event& e : trace.events) {
    own.push_back(e.end - e.start);
    if (e.parent != Event::kNone) own[e.parent] -= e.end - e.start;
  }
  return own;
}

/// Returns the memory of each event without what it contains.
std::vector<int64_t> own_memory(const Trace& trace) {
  std::vector<int64_t> own;
  for (const Event& e : trace.events) {
    own.push_back(e.memory);
    if (e.parent != Event::kNone) own[e.parent] -= e.memory;
  }
  return own;
}

}  // namespace

Profile::~Profile() { stop(); }

void Profile::stop() {
  if (std::exchange(stopped_, true)) return;
  traces_ = profiler::stop(session_);
}

const std::vector<Trace>& Profile::traces() {
  if (!stopped_) traces_ = snapshot(session_);
  return traces_;
}

std::vector<Total> Profile::totals() {
  const Peaks peak = peaks();
  std::map<std::pair<Kind, std::string>, Total> by_name;
  for (const Trace& trace : traces()) {
    const std::vector<EventCost> cost = costs(trace);
    std::vector<int64_t> inside(trace.events.size(), 0);
    for (const Event& e : trace.events) {
      if (e.parent != Event::kNone) inside[e.parent] += e.end - e.start;
    }
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& e = trace.events[i];
      Total& t = by_name[{e.kind, trace.name_of(e)}];
      ++t.calls;
      t.seconds += double(e.end - e.start) * 1e-9;
      t.self_seconds += double(e.end - e.start - inside[i]) * 1e-9;
      t.memory += e.memory;
      t.least_seconds += cost[i].least_seconds(peak);
      t.cost.bytes += cost[i].bytes, t.cost.operations += cost[i].operations;
      t.on_device = t.on_device || e.on_device;
    }
  }
  std::vector<Total> all;
  for (auto& [key, total] : by_name) {
    total.kind = key.first, total.name = key.second;
    all.push_back(std::move(total));
  }
  std::ranges::stable_sort(all, std::ranges::greater(), &Total::self_seconds);
  return all;
}

std::string Profile::table(size_t rows) {
  const std::vector<Total> all = totals();
  const Peaks peak = peaks();
  double sum = 0;
  for (const Total& t : all) sum += t.self_seconds;
  std::string text = fmt::format("{:<44} {:>8} {:>9} {:>7} {:>10} {:>10} {:>8} {:>8} {:>8}\n", "Name", "Calls",
                                 "Self ms", "Self %", "Total ms", "Memory MB", "% of bw", "% of FMA", "Could be");
  for (size_t i = 0; i < std::min(rows, all.size()); ++i) {
    const Total& t = all[i];
    const double s = std::max(t.self_seconds, 1e-12), faster = t.least_seconds > 0 ? s / t.least_seconds : 0;
    text += fmt::format("{:<44.44} {:>8} {:>9.3f} {:>7.1f} {:>10.3f} {:>10.2f} {:>8} {:>8} {:>8}\n", t.name, t.calls,
                        t.self_seconds * 1e3, 100 * t.self_seconds / std::max(sum, 1e-12), t.seconds * 1e3,
                        double(t.memory) / 1e6, share(t.on_device, t.cost.bytes / s, peak.bytes_per_second),
                        share(t.on_device, t.cost.operations / s, peak.operations_per_second), times_faster(faster));
  }
  return text;
}

std::vector<LayerTotal> Profile::layers() {
  const Peaks peak = peaks();
  const Homes homes(traces());
  std::map<std::string, LayerTotal> by_name;
  for (const Trace& trace : traces_) {
    const std::vector<EventCost> cost = costs(trace);
    const std::vector<int64_t> times = own_times(trace), memory = own_memory(trace);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Home& home = homes.of(trace, i);
      LayerTotal& t = by_name[home.layer];
      (home.backward ? t.backward_seconds : t.forward_seconds) += double(times[i]) * 1e-9;
      t.calls += trace.events[i].kind == Kind::layer;
      t.memory += home.backward ? 0 : memory[i];
      t.cost.bytes += cost[i].bytes, t.cost.operations += cost[i].operations;
      t.least_seconds += cost[i].least_seconds(peak);
      t.on_device = t.on_device || cost[i].on_device;
    }
  }
  std::vector<LayerTotal> all;
  for (auto& [name, total] : by_name) {
    total.name = name;
    all.push_back(std::move(total));
  }
  std::ranges::stable_sort(all, std::ranges::greater(),
                           [](const LayerTotal& t) { return t.forward_seconds + t.backward_seconds; });
  return all;
}

std::string Profile::layer_table(size_t rows) {
  const std::vector<LayerTotal> all = layers();
  const Peaks peak = peaks();
  std::string text =
      fmt::format("{:<44} {:>8} {:>11} {:>11} {:>10} {:>9} {:>9} {:>8} {:>8} {:>8}\n", "Layer", "Calls", "Forward ms",
                  "Backward ms", "Memory MB", "GB moved", "GFLOP", "% of bw", "% of FMA", "Could be");
  for (size_t i = 0; i < std::min(rows, all.size()); ++i) {
    const LayerTotal& t = all[i];
    const double s = std::max(t.forward_seconds + t.backward_seconds, 1e-12);
    text += fmt::format("{:<44.44} {:>8} {:>11.3f} {:>11.3f} {:>10.2f} {:>9.3f} {:>9.3f} {:>8} {:>8} {:>8}\n", t.name,
                        t.calls, t.forward_seconds * 1e3, t.backward_seconds * 1e3, double(t.memory) / 1e6,
                        t.cost.bytes / 1e9, t.cost.operations / 1e9,
                        share(t.on_device, t.cost.bytes / s, peak.bytes_per_second),
                        share(t.on_device, t.cost.operations / s, peak.operations_per_second),
                        times_faster(t.on_device || t.least_seconds <= 0 ? 0 : s / t.least_seconds));
  }
  return text;
}

void Profile::export_chrome_trace(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  VESTA_CHECK(file, runtime, "export_chrome_trace: expected a file that can be written, got ", path, ".");
  fmt::print(file.get(), "{{\"traceEvents\": [");
  const int pid = getpid();
  fmt::print(file.get(), R"({{"ph": "M", "name": "process_name", "pid": {}, "tid": 0, "args": {{"name": "{}"}}}})", pid,
             program_invocation_short_name);
  const Homes homes(traces());
  for (const Trace& trace : traces_) {
    fmt::print(file.get(), R"(,{}{{"ph": "M", "name": "thread_name", "pid": {}, "tid": {}, "args": {{"name": "{}"}}}})",
               "\n", pid, trace.thread, trace.thread == pid ? "main thread" : "thread");
    const std::vector<EventCost> cost = costs(trace);
    for (size_t i = 0; i < trace.events.size(); ++i) {
      const Event& e = trace.events[i];
      const Home& home = homes.of(trace, i);
      fmt::print(file.get(), R"(,{}{{"ph": "X", "name": "{}", "ts": {:.3f}, "dur": {:.3f}, "tid": {}, "pid": {}, )",
                 "\n", escaped(trace.name_of(e)), double(e.start) * 1e-3, double(e.end - e.start) * 1e-3, trace.thread,
                 pid);
      fmt::print(
          file.get(),
          R"("cat": "{}", "args": {{"Phase": "{}", "Layer": "{}", "Bytes": {}, "Operations": {}, "Memory": {}}}}})",
          kCategories[int(e.kind)], home.backward ? "backward" : "forward", escaped(home.layer), cost[i].bytes,
          cost[i].operations, e.memory);
    }
  }
  fmt::print(file.get(), "]}}\n");
}

}  // namespace vesta::profiler
