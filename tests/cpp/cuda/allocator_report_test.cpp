// Counters, snapshots and the history, in PyTorch's terms.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <map>
#include <set>

using namespace sim;
using vesta::cuda::TraceAction;

namespace {

thread_local const char* current_op = nullptr;

std::map<std::string, int64_t> items_of(const Cache& cache) {
  const auto items = cache.stats().items();
  return {items.begin(), items.end()};
}

}  // namespace

TEST_CASE("the counters have the keys of torch.cuda.memory_stats", "[cuda][allocator][a8]") {
  Rig rig;
  const auto items = items_of(rig.cache);
  for (const char* name : {"allocation", "segment", "active", "inactive_split", "allocated_bytes", "reserved_bytes",
                           "active_bytes", "inactive_split_bytes", "requested_bytes"})
    for (const char* pool : {"all", "small_pool", "large_pool"})
      for (const char* what : {"current", "peak", "allocated", "freed"})
        CHECK(items.contains(std::string(name) + "." + pool + "." + what));
  for (const char* name :
       {"num_alloc_retries", "num_ooms", "num_sync_all_streams", "num_device_alloc", "num_device_free",
        "max_split_size", "oversize_allocations.current", "oversize_segments.peak"})
    CHECK(items.contains(name));
  CHECK(items.at("max_split_size") == -1);
}

TEST_CASE("the counters count", "[cuda][allocator][a8]") {
  Rig rig;
  Held a = rig.get(1000), b = rig.get(3 * kMiB), c = rig.get(100);
  auto items = items_of(rig.cache);
  CHECK(items["allocation.all.current"] == 3);
  CHECK(items["allocation.small_pool.current"] == 2);
  CHECK(items["allocated_bytes.small_pool.current"] == 1536);
  CHECK(items["requested_bytes.all.current"] == int64_t(1100 + 3 * kMiB));
  CHECK(items["reserved_bytes.all.current"] == int64_t(22 * kMiB));
  CHECK(items["segment.all.current"] == 2);
  CHECK(items["inactive_split.all.current"] == 2);
  CHECK(items["inactive_split_bytes.large_pool.current"] == int64_t(17 * kMiB));
  CHECK(items["num_device_alloc"] == 2);
  rig.put(b);
  rig.put(a);
  items = items_of(rig.cache);
  CHECK(items["allocated_bytes.all.current"] == 512);
  CHECK(items["allocated_bytes.all.peak"] == int64_t(1536 + 3 * kMiB));
  CHECK(items["allocated_bytes.all.freed"] == int64_t(1024 + 3 * kMiB));
  CHECK(items["inactive_split_bytes.large_pool.current"] == 0);
  rig.cache.reset_peak();
  rig.cache.reset_accumulated();
  items = items_of(rig.cache);
  CHECK(items["allocated_bytes.all.peak"] == 512);
  CHECK(items["allocated_bytes.all.allocated"] == 0);
  CHECK(items["allocated_bytes.all.current"] == 512);
  rig.put(c);
  CHECK(items_of(rig.cache)["allocation.all.freed"] == 1);
  rig.cache.empty_cache();
  CHECK(items_of(rig.cache)["num_device_free"] == 2);
}

TEST_CASE("peaks of active memory count what streams still use", "[cuda][allocator][a8]") {
  Rig rig({.policy = Policy::lazy});
  const auto side = rig.device.stream();
  const auto peaks = [&](const char* pool) {
    auto items = items_of(rig.cache);
    return std::make_pair(items[std::string("active_bytes.") + pool + ".peak"],
                          items[std::string("allocated_bytes.") + pool + ".peak"]);
  };
  Held a = rig.get(3 * kMiB);
  rig.use(a, side);
  rig.put(a);  // pending: the side stream has not run
  CHECK(rig.now(StatType::active) == 1);
  CHECK(rig.now(StatType::allocation) == 0);
  Held small = rig.get(1000);
  CHECK(peaks("all") == std::make_pair(int64_t(3 * kMiB + 1024), int64_t(3 * kMiB)));
  CHECK(peaks("large_pool") == std::make_pair(int64_t(3 * kMiB), int64_t(3 * kMiB)));
  Held b = rig.get(512 * kKiB);
  CHECK(peaks("small_pool") == std::make_pair(int64_t(512 * kKiB + 1024), int64_t(512 * kKiB + 1024)));
  CHECK(peaks("all") == std::make_pair(int64_t(3 * kMiB + 512 * kKiB + 1024), int64_t(3 * kMiB)));
  rig.put(b);
  rig.cache.reset_peak();  // to the current values, the pending block included
  CHECK(peaks("all") == std::make_pair(int64_t(3 * kMiB + 1024), int64_t(1024)));
  rig.cache.empty_cache();
  rig.cache.reset_peak();
  CHECK(peaks("all") == std::make_pair(int64_t(1024), int64_t(1024)));
  CHECK(items_of(rig.cache)["active_bytes.all.freed"] == int64_t(3 * kMiB + 512 * kKiB));
  rig.put(small);
}

TEST_CASE("a snapshot lists segments and blocks", "[cuda][allocator][a8]") {
  Rig rig({.policy = Policy::lazy});
  const auto side = rig.device.stream();
  rig.cache.record_history(true, 1000);
  rig.cache.set_op_name([] { return current_op; });
  current_op = "exp";
  Held a = rig.get(1000);
  current_op = "add";
  Held b = rig.get(3 * kMiB, side), c = rig.get(2000);
  rig.use(c, side);
  rig.put(c);
  const auto shot = rig.cache.snapshot();
  REQUIRE(shot.segments.size() == 2);
  const auto& small = shot.segments[0];
  CHECK(small.segment_type == std::string("small"));
  CHECK(small.total_size == 2 * kMiB);
  CHECK(small.allocated_size == 1024);
  CHECK(small.active_size == 1024 + 2048);
  CHECK(small.requested_size == 3000);
  CHECK_FALSE(small.is_expandable);
  REQUIRE(small.blocks.size() == 3);
  CHECK(small.blocks[0].state == std::string("active_allocated"));
  CHECK(small.blocks[0].op == std::string("exp"));
  CHECK(small.blocks[1].state == std::string("active_pending_free"));
  CHECK(small.blocks[2].state == std::string("inactive"));
  CHECK(shot.segments[1].stream == side);
  CHECK(shot.segments[1].segment_type == std::string("large"));
  for (const auto& s : shot.segments) {
    uint64_t at = s.address;
    for (const auto& block : s.blocks) {
      CHECK(block.address == at);
      at += block.size;
    }
    CHECK(at == s.address + s.total_size);
  }
  const std::string json = to_json(shot, 0);
  for (const char* part : {"\"segments\": [{\"device\": 0, \"address\": ", "\"segment_type\": \"small\"",
                           "\"segment_pool_id\": [0, 0]", "\"frames\": [{\"name\": \"exp\"", "\"device_traces\": [[",
                           "\"action\": \"segment_alloc\"", "\"action\": \"free_requested\"", "\"time_us\": "})
    CHECK_THAT(json, Catch::Contains(part));
  CHECK(std::count(json.begin(), json.end(), '{') == std::count(json.begin(), json.end(), '}'));
  rig.put(a);
  rig.put(b);
}

TEST_CASE("the history keeps the last events with their ops", "[cuda][allocator][a8]") {
  constexpr size_t kEntries = 100000;
  Rig rig({.memory = 40 * kMiB});
  rig.cache.set_op_name([] { return current_op; });
  current_op = "early";
  rig.cache.record_history(true, kEntries);
  Held first = rig.get(30 * kMiB);
  CHECK_THROWS_AS(rig.cache.allocate(30 * kMiB, 0), vesta::Error);
  rig.put(first);
  rig.cache.empty_cache();
  std::set<TraceAction> seen;
  for (const auto& e : rig.cache.snapshot().device_traces) seen.insert(e.action);
  CHECK(seen == std::set{TraceAction::segment_alloc, TraceAction::alloc, TraceAction::oom, TraceAction::free_requested,
                         TraceAction::free_completed, TraceAction::segment_free, TraceAction::snapshot});
  current_op = "late";
  for (size_t i = 0; i < kEntries; ++i) {
    Held h = rig.get(1 + i % 5000);
    rig.put(h);
  }
  auto traces = rig.cache.snapshot().device_traces;
  REQUIRE(traces.size() == kEntries);
  CHECK(traces.back().action == TraceAction::snapshot);
  traces.pop_back();
  for (size_t i = 1; i < traces.size(); ++i)
    if (traces[i].time_us <= traces[i - 1].time_us || traces[i].op != std::string("late")) FAIL("at " << i);
  rig.cache.record_history(false, 0);
  Held quiet = rig.get(100);
  CHECK(rig.cache.snapshot().device_traces.size() == kEntries);  // stopped, and still readable
  rig.put(quiet);
  rig.cache.record_history(true, 10);
  CHECK(rig.cache.snapshot().device_traces.size() == 1);  // only the snapshot itself
}
