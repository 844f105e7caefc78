// Memory that moves from stream to stream: never too early, and without needless waiting.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <random>

using namespace sim;

namespace {

// A device whose stream_wait does nothing: an allocator on it must be caught.
struct DeafDevice : Device {
  using Device::Device;
  void stream_wait(Stream, Event) {}
};

// A device whose events look done too early.
struct RashDevice : Device {
  using Device::Device;
  bool event_query(Event e) { return Device::event_query(e), true; }
};

}  // namespace

TEST_CASE("the device notices memory that is reused too early", "[cuda][allocator][sim]") {
  Rig rig({.policy = Policy::lazy});
  const auto other = rig.device.stream();
  SECTION("without record_stream") {
    Held a = rig.get(4 * kMiB);
    rig.device.kernel(other, {a.owner});
    rig.put(a);
    Held b = rig.get(4 * kMiB);
    rig.use(b, 0);
    rig.device.synchronize();  // stream 0 runs first
    CHECK(rig.trouble() == "a kernel started while one of an earlier owner was unfinished");
  }
  SECTION("with it") {
    Held a = rig.get(4 * kMiB);
    rig.use(a, other);
    rig.put(a);
    Held b = rig.get(4 * kMiB);
    rig.use(b, 0);
    rig.device.synchronize();
    CHECK(rig.trouble() == "");
  }
  SECTION("kernels after the free") {
    Held a = rig.get(4 * kMiB);
    Owner owner = a.owner;
    rig.put(a);
    rig.device.kernel(0, {owner});
    CHECK(rig.trouble() == "a kernel was queued on memory that was given back");
  }
}

TEST_CASE("an allocator whose waits or queries are ignored is caught", "[cuda][allocator][sim]") {
  const auto run = [](auto& device, size_t n) {
    vesta::cuda::CachingAllocator<std::remove_reference_t<decltype(device)>> cache(0, device);
    const auto other = device.stream();
    auto* a = cache.allocate(n, 0);
    Owner owner = device.own(a->data, a->size);
    cache.record_stream(a, other);
    device.order(0, other);
    device.kernel(other, {owner});
    device.disown(owner);
    cache.free(a);
    std::vector<Owner> owners;
    for (size_t held = 0; held < 20 * kMiB + n; held += n) {
      auto* b = cache.allocate(n, 0);
      owners.push_back(device.own(b->data, b->size));
      device.kernel(0, {owners.back()});
    }
    device.synchronize();
    for (const Owner& o : owners) device.disown(o);
    return device.violations().size();
  };
  DeafDevice deaf({.policy = Policy::lazy});
  CHECK(run(deaf, 4 * kMiB) > 0);
  RashDevice rash({.policy = Policy::lazy});
  CHECK(run(rash, 256 * kKiB) > 0);
  Device sound({.policy = Policy::lazy});
  CHECK(run(sound, 4 * kMiB) == 0);
  CHECK(run(sound, 256 * kKiB) == 0);
}

TEST_CASE("a small block waits for its events, without blocking anybody", "[cuda][allocator]") {
  Rig rig({.policy = Policy::lazy});
  const auto other = rig.device.stream();
  Held a = rig.get(1024);
  void* data = a.block->data;
  rig.use(a, other);
  rig.put(a);
  CHECK(rig.now(StatType::allocated_bytes) == 0);
  CHECK(rig.now(StatType::active_bytes) == 1024);
  std::vector<Held> held;
  const auto fill = [&] {  // what the first segment has left, and into a second one
    for (int i = 0; i < 2048; ++i) {
      held.push_back(rig.get(1024));
      if (held.back().block->data == data) return true;
    }
    return false;
  };
  CHECK_FALSE(fill());
  CHECK(rig.device.calls(Call::event_sync) == 0);
  CHECK(rig.device.calls(Call::stream_wait) == 0);
  rig.device.synchronize();
  CHECK(fill());
  for (Held& h : held) rig.put(h);
  CHECK(rig.now(StatType::active_bytes) == 0);
  rig.cache.check();
  CHECK(rig.trouble() == "");
}

TEST_CASE("a large block that another stream uses is reused at once, behind its event", "[cuda][allocator]") {
  Rig rig({.policy = Policy::lazy});
  const auto other = rig.device.stream();
  Held a = rig.get(30 * kMiB);
  void* data = a.block->data;
  rig.use(a, 0);
  rig.use(a, other);
  rig.put(a);
  Held b = rig.get(30 * kMiB);
  CHECK(b.block->data == data);
  CHECK(rig.cache.stats().counts.num_steals == 1);
  CHECK(rig.device.calls(Call::stream_wait) == 1);
  CHECK(rig.device.calls(Call::event_sync) == 0);
  rig.use(b, 0);
  rig.device.synchronize();
  CHECK(rig.trouble() == "");
  rig.put(b);
  rig.cache.check();
}

TEST_CASE("large memory goes to another stream behind one event for many blocks", "[cuda][allocator]") {
  Rig rig({.policy = Policy::adversarial});
  const auto other = rig.device.stream();
  std::vector<Held> held;
  for (int i = 0; i < 8; ++i) {
    held.push_back(rig.get(12 * kMiB));
    rig.use(held.back(), 0);
  }
  for (Held& h : held) rig.put(h);
  for (Held& h : held) {
    h = rig.get(12 * kMiB, other);
    rig.use(h, other);
  }
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(8 * 12 * kMiB));
  CHECK(rig.device.calls(Call::event_record) == 1);
  CHECK(rig.device.calls(Call::stream_wait) == 1);
  CHECK(rig.cache.stats().counts.num_steals == 8);
  CHECK(rig.cache.stats().counts.num_stream_waits == 1);
  for (Held& h : held) rig.put(h);
  rig.device.synchronize();
  CHECK(rig.trouble() == "");
}

TEST_CASE("small memory stays with its stream until the device is full", "[cuda][allocator]") {
  Rig rig({.memory = 4 * kMiB, .policy = Policy::adversarial});
  const auto other = rig.device.stream();
  Held a = rig.get(512 * kKiB);
  rig.use(a, 0);
  rig.put(a);
  Held b = rig.get(512 * kKiB, other);
  CHECK(rig.cache.stats().counts.num_steals == 0);
  Held keep = rig.get(512, 0);  // so that the first segment cannot be returned
  std::vector<Held> held;
  for (int i = 0; i < 5; ++i) {
    held.push_back(rig.get(512 * kKiB, other));
    rig.use(held.back(), other);
  }
  CHECK(rig.cache.stats().counts.num_steals == 2);
  for (Held* h : {&a, &b, &keep}) rig.put(*h);
  for (Held& h : held) rig.put(h);
  rig.device.synchronize();
  CHECK(rig.trouble() == "");
  rig.cache.check();
}

TEST_CASE("the threshold for other streams' memory is a setting", "[cuda][allocator]") {
  Rig rig({}, vesta::cuda::parse_options("cross_stream_min_mb:64"));
  const auto other = rig.device.stream();
  Held a = rig.get(32 * kMiB);
  rig.put(a);
  Held b = rig.get(32 * kMiB, other);
  CHECK(rig.cache.stats().counts.num_steals == 0);
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(64 * kMiB));
  rig.put(b);
}

TEST_CASE("neighbours of several streams are joined for who waits for all of them", "[cuda][allocator]") {
  Rig rig({.memory = 20 * kMiB, .policy = Policy::adversarial});
  const auto other = rig.device.stream(), third = rig.device.stream();
  std::vector<Held> held;
  for (Device::Stream s : {uint64_t(0), other, uint64_t(0), other}) {
    held.push_back(rig.get(4 * kMiB, s));
    rig.use(held.back(), s, 50);
  }
  for (Held& h : held) rig.put(h);
  rig.cache.check();
  Held all = rig.get(19 * kMiB, third);
  rig.use(all, third);
  CHECK(rig.device.calls(Call::event_sync) == 0);
  rig.put(all);
  rig.device.synchronize();
  CHECK(rig.trouble() == "");
  rig.cache.check();
}

TEST_CASE("a segment of several streams goes back once the host has waited for all", "[cuda][allocator]") {
  Rig rig({.policy = Policy::lazy});
  const auto other = rig.device.stream();
  std::vector<Held> held;
  for (Device::Stream s : {uint64_t(0), other, uint64_t(0)}) {
    held.push_back(rig.get(4 * kMiB, s));
    rig.use(held.back(), s);
  }
  for (Held& h : held) rig.put(h);
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
}

namespace {

/// Runs a loader on stream 0 and a consumer on another one, or both on one; returns the peak of reserved bytes.
double producer_consumer(bool two, Policy policy, const std::vector<size_t>& sizes) {
  Rig rig({.policy = policy});
  const auto side = two ? rig.device.stream() : 0;
  for (int step = 0; step < 20; ++step) {
    std::vector<Held> results;
    for (size_t i = 0; i + 1 < sizes.size(); i += 2) {
      Held x = rig.get(sizes[i], 0);
      rig.use(x, 0, 10);
      Held y = rig.get(sizes[i + 1], side);
      if (two) rig.device.order(0, side);
      if (two) rig.cache.record_stream(x.block, side);
      rig.device.kernel(side, {x.owner, y.owner}, 25);
      rig.put(x);  // dropped while the consumer still runs
      results.push_back(y);
    }
    for (Held& h : results) rig.put(h);
  }
  rig.device.synchronize();
  REQUIRE(rig.trouble() == "");
  rig.cache.check();
  return double(rig.peak(StatType::reserved_bytes));
}

}  // namespace

TEST_CASE("producer and consumer on two streams need no more memory than on one", "[cuda][allocator][a6]") {
  const std::vector<size_t> equal(40, 8 * kMiB);
  for (Policy policy : kPolicies)
    CHECK(producer_consumer(true, policy, equal) <= 1.1 * producer_consumer(false, Policy::eager, equal));
  for (Policy policy : kPolicies) {  // random sizes: larger and smaller; 1.1 times on average
    double ratios = 0;
    for (unsigned seed = 0; seed < 10; ++seed) {
      std::mt19937 random(seed);
      std::vector<size_t> sizes(80);
      for (size_t& n : sizes) n = 2 * kMiB + random() % (7 * kMiB);
      ratios += producer_consumer(true, policy, sizes) / producer_consumer(false, Policy::eager, sizes);
    }
    CHECK(ratios / 10 <= 1.1);
  }
}

TEST_CASE("more streams than a word has bits", "[cuda][allocator]") {
  Rig rig({.policy = Policy::random});
  std::vector<Device::Stream> streams;
  for (int i = 0; i < 100; ++i) streams.push_back(rig.device.stream());
  for (int round = 0; round < 3; ++round) {
    Held shared = rig.get(2 * kMiB);
    for (auto s : streams) {
      rig.use(shared, s);
      Held own = rig.get(3000, s);
      rig.use(own, s);
      rig.put(own);
    }
    rig.put(shared);
    Held next = rig.get(2 * kMiB, streams[size_t(round)]);
    rig.use(next, streams[size_t(round)]);
    rig.put(next);
    rig.cache.check();
  }
  rig.device.synchronize();
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
}
