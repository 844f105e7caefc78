// Private pools: graphs whose memory stays in place, and pools that a user keeps apart.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <map>
#include <memory>
#include <thread>

using namespace sim;
using vesta::cuda::PoolId;
using vesta::cuda::PoolKind;

TEST_CASE("a graph's memory stays put until the graph is destroyed", "[cuda][allocator][a7]") {
  Options options;
  options.expandable = GENERATE(false, true);
  Rig rig({.policy = GENERATE(Policy::lazy, Policy::adversarial)}, options);
  const PoolId id = rig.cache.begin_pool();
  const int tag = int(id.capture);
  Held before = rig.get(5000);
  std::shared_ptr<Graph> graph;
  Held output;
  {
    auto scope = rig.cache.use_pool(id);
    rig.device.begin_capture(0, tag);
    Held a = rig.get(3 * kMiB, 0, tag), b = rig.get(3 * kMiB, 0, tag);
    rig.use(a, 0);
    rig.use(b, 0);
    void* where = a.block->data;
    rig.put(a);
    Held c = rig.get(3 * kMiB, 0, tag);  // reused within the capture, in its order
    CHECK(c.block->data == where);
    rig.use(c, 0);
    rig.put(b);
    output = c;
    rig.put(before);  // of the common pool: no hazard either
    CHECK_THROWS_AS(rig.cache.empty_cache(), vesta::Error);
    CHECK_THROWS_AS(rig.cache.end_pool(id), vesta::Error);
    graph = rig.device.end_capture(0);
  }
  rig.cache.empty_cache();
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(20 * kMiB));  // the pool's, though most of it is free
  std::vector<Held> others;
  for (int i = 0; i < 20; ++i) {
    others.push_back(rig.get(3 * kMiB));
    rig.use(others.back(), 0);
    rig.device.launch(graph, 0);  // the device would notice foreign memory in it
  }
  rig.put(output);
  rig.device.launch(graph, 0);
  for (Held& h : others) rig.put(h);
  rig.cache.end_pool(id);
  rig.cache.check();
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
}

TEST_CASE("blocks outlive their graph, their memory goes back when they are freed", "[cuda][allocator][a7]") {
  Rig rig({.policy = Policy::lazy});
  const PoolId id = rig.cache.begin_pool();
  const auto allocate = [&] {
    auto scope = rig.cache.use_pool(id);
    return rig.get(30 * kMiB, 0, int(id.capture));
  };
  Held a = allocate();
  rig.cache.end_pool(id);
  CHECK_THROWS_AS(rig.cache.use_pool(id), vesta::Error);
  CHECK(rig.device.used() == 30 * kMiB);
  rig.use(a, 0);
  rig.put(a);
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
  rig.cache.check();
}

TEST_CASE("nothing is queried, waited for or taken away during a capture", "[cuda][allocator][a7]") {
  Rig rig({.memory = 64 * kMiB, .policy = Policy::lazy});
  const auto side = rig.device.stream(), third = rig.device.stream();
  Held cached = rig.get(30 * kMiB);
  rig.use(cached, side);
  Held used = rig.get(30000, side);
  const PoolId id = rig.cache.begin_pool();
  {
    auto scope = rig.cache.use_pool(id);
    rig.device.begin_capture(0, int(id.capture));
    rig.put(cached);  // its event has to wait
    rig.use(used, third);
    rig.put(used);
    Held a = rig.get(20 * kMiB, 0, int(id.capture));
    rig.use(a, 0);
    rig.put(a);
    std::string message;
    try {
      rig.cache.allocate(30 * kMiB, 0);
    } catch (const vesta::Error& e) {
      message = e.message();
    }
    CHECK_THAT(message, Catch::Contains("A graph is being captured"));
    CHECK(rig.device.calls(Call::event_query) + rig.device.calls(Call::event_sync) == 0);
    CHECK(rig.device.calls(Call::free_) == 0);
    rig.device.end_capture(0);
  }
  Held b = rig.get(30 * kMiB);  // the deferred block, behind the event that could be recorded now
  rig.use(b, 0);
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(52 * kMiB));
  rig.put(b);
  rig.cache.end_pool(id);
  rig.device.synchronize();
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
}

TEST_CASE("a pool can be shared by graphs", "[cuda][allocator][a7]") {
  Rig rig;
  const PoolId id = rig.cache.begin_pool();
  rig.cache.retain_pool(id);
  {
    auto scope = rig.cache.use_pool(id);
    Held a = rig.get(15 * kMiB, 0, int(id.capture));
    rig.put(a);
  }
  rig.cache.end_pool(id);
  CHECK(rig.device.used() == 16 * kMiB);
  rig.cache.end_pool(id);
  CHECK(rig.device.used() == 0);
  CHECK_THROWS_AS(rig.cache.end_pool(id), vesta::Error);
}

TEST_CASE("scopes nest, end in any order and belong to their thread and allocator", "[cuda][allocator]") {
  Rig rig, other;
  const PoolId one = rig.cache.begin_pool(PoolKind::user), two = rig.cache.begin_pool(PoolKind::user);
  CHECK(one.user != two.user);
  const auto pool_of = [&](Held& h) {
    PoolId found;
    for (const auto& s : rig.cache.snapshot().segments)
      if (uint64_t(h.block->data) - s.address < s.total_size) found = s.segment_pool_id;
    rig.put(h);
    return found;
  };
  const auto here = [&] {
    Held h = rig.get(100);
    return pool_of(h);
  };
  auto first = std::make_unique<Cache::PoolScope>(rig.cache, one);
  auto second = std::make_unique<Cache::PoolScope>(rig.cache, two);
  CHECK(here() == two);
  std::thread([&] { CHECK(here() == PoolId{}); }).join();
  Held foreign = other.get(100);
  CHECK(other.cache.snapshot().segments.front().segment_pool_id == PoolId{});
  other.put(foreign);
  first.reset();  // as Python may do
  CHECK(here() == two);
  second.reset();
  CHECK(here() == PoolId{});
  rig.cache.end_pool(one);
  rig.cache.end_pool(two);
}

TEST_CASE("free memory of a user's pool goes back before memory is declared out", "[cuda][allocator]") {
  Rig rig({.memory = 100 * kMiB});
  const PoolId id = rig.cache.begin_pool(PoolKind::user);
  {
    auto scope = rig.cache.use_pool(id);
    Held a = rig.get(60 * kMiB);
    rig.put(a);
  }
  Held b = rig.get(80 * kMiB);
  rig.put(b);
  rig.cache.end_pool(id);
  rig.cache.check();
}
