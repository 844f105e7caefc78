#include <vesta/core/ops/profile.h>

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>

#include <fmt/format.h>

namespace vesta::profiler {
namespace {

/// Returns what a rate is of a peak, in percent. More than all means that a cache had the bytes, or that an algorithm
/// needed fewer operations than are counted. The CPU's peaks say nothing about other devices.
std::string share(const Total& t, double rate, double peak) {
  return t.on_device ? "-" : fmt::format("{:.1f}", std::min(100.0, 100 * rate / std::max(peak, 1.0)));
}

/// Returns a ratio as text; one above 1000 says only that there is next to nothing to compute.
std::string times_faster(double ratio) {
  return ratio <= 0 || ratio > 1000 ? "-" : fmt::format("{:.1f}x", std::max(1.0, ratio));
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
                        double(t.memory) / 1e6, share(t, t.cost.bytes / s, peak.bytes_per_second),
                        share(t, t.cost.operations / s, peak.operations_per_second), times_faster(faster));
  }
  return text;
}

void Profile::export_chrome_trace(const std::string& path) {
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path.c_str(), "w"), &std::fclose);
  VESTA_CHECK(file, runtime, "export_chrome_trace: expected a file that can be written, got ", path, ".");
  fmt::print(file.get(), "{{\"traceEvents\": [");
  const char* comma = "";
  for (const Trace& trace : traces()) {
    for (const Event& e : trace.events) {
      std::string name;
      for (char c : trace.name_of(e)) {
        if (c == '"' || c == '\\') name += '\\';
        name += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
      }
      fmt::print(file.get(), R"({}{{"ph": "X", "name": "{}", "ts": {:.3f}, "dur": {:.3f}, "tid": {}, "pid": {}}})",
                 comma, name, double(e.start) * 1e-3, double(e.end - e.start) * 1e-3, trace.thread, getpid());
      comma = ",\n";
    }
  }
  fmt::print(file.get(), "]}}\n");
}

}  // namespace vesta::profiler
