// Every single driver call fails once: the allocator copes or raises Error(memory), stays consistent and loses
// nothing.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

using namespace sim;
using vesta::cuda::PoolId;

namespace {

/// A program in which the allocator makes every call of the driver. It tolerates Error(memory).
class Program {
 public:
  explicit Program(const Options& options) : rig({.memory = 100 * kMiB, .policy = Policy::adversarial}, options) {
    side_ = rig.device.stream();
  }

  void run() {
    for (int round = 0; round < 3; ++round) {
      step(round);
      rig.cache.check();
    }
    capture();
    rig.cache.check();
    rig.cache.empty_cache();
    rig.cache.check();
  }

  /// Frees all with a driver that works again.
  void finish() {
    for (Held& h : held_) rig.put(h);
    rig.device.fail(0, 0);
    rig.device.synchronize();
    rig.cache.empty_cache();
    rig.cache.check();
    REQUIRE(rig.trouble() == "");
    REQUIRE(rig.device.used() == 0);
    REQUIRE(rig.now(StatType::active_bytes) == 0);
  }

  Rig rig;
  int refusals = 0;

 private:
  void get(size_t n, Device::Stream s, int pool = 0) {
    try {
      held_.push_back(rig.get(n, s, pool));
      rig.use(held_.back(), s);
    } catch (const vesta::Error& e) {
      REQUIRE(e.cause() == vesta::Cause::memory);  // no other error may occur
      ++refusals;
    }
  }
  void drop(size_t from) {
    for (size_t i = from; i < held_.size(); ++i) rig.put(held_[i]);
    held_.resize(std::min(from, held_.size()));
  }

  void step(int round) {
    get(3000, 0);
    const size_t start = held_.size();
    for (size_t n : {500 * kKiB, 700 * kKiB, 900 * kKiB, 3 * kMiB, 15 * kMiB, 12 * kMiB}) get(n, n % 3 ? side_ : 0);
    for (size_t i = start; i < held_.size(); ++i) rig.use(held_[i], i % 2 ? side_ : 0);
    drop(start);
    get(14 * kMiB, side_);
    get((60 + 10 * size_t(round)) * kMiB, 0);  // the ladder
    drop(start + 1);
    get(90 * kMiB, side_);  // may be too much
    drop(start);
  }

  void capture() {
    const PoolId id = rig.cache.begin_pool();
    const int tag = int(id.capture);
    const size_t start = held_.size();
    std::shared_ptr<Graph> graph;
    {
      auto scope = rig.cache.use_pool(id);
      rig.device.begin_capture(0, tag);
      get(2 * kMiB, 0, tag);
      get(30000, 0, tag);
      graph = rig.device.end_capture(0);
    }
    rig.device.launch(graph, 0);
    drop(start);
    rig.cache.end_pool(id);
  }

  Device::Stream side_ = 0;
  std::vector<Held> held_;
};

void fail_everywhere(const Options& options, int64_t many) {
  Program whole(options);
  const int64_t before = whole.rig.device.calls();
  whole.run();
  const int64_t calls = whole.rig.device.calls() - before;
  whole.finish();
  REQUIRE(calls > 60);
  int refusals = 0;
  for (int64_t k = 1; k <= calls + 1; ++k) {
    INFO("call " << k << " of " << calls << ", " << many << " in a row");
    Program program(options);
    program.rig.device.fail(k, many);
    program.run();
    program.finish();
    refusals += program.refusals;
  }
  if (many > 3) CHECK(refusals > 0);
}

}  // namespace

TEST_CASE("any driver call may fail", "[cuda][allocator][a5]") {
  Options options;
  options.expandable = GENERATE(false, true);
  for (int64_t many : {1, 2, 5, 100000}) fail_everywhere(options, many);
}

TEST_CASE("the report quotes the driver", "[cuda][allocator]") {
  Rig rig({.memory = 30 * kMiB, .policy = Policy::lazy});
  const auto side = rig.device.stream();
  Held a = rig.get(25 * kMiB);
  rig.use(a, side);
  rig.put(a);
  rig.device.fail(1, 100000);
  std::string message;
  try {
    rig.cache.allocate(25 * kMiB, 0);
  } catch (const vesta::Error& e) {
    message = e.message();
  }
  CHECK_THAT(message, Catch::Contains("The driver said: sim: call"));
  rig.device.fail(0, 0);
  Held b = rig.get(25 * kMiB);
  rig.put(b);
  rig.cache.check();
}

TEST_CASE("a device that cannot be asked makes no allocator", "[cuda][allocator]") {
  Device device;
  device.fail(1);
  CHECK_THROWS_AS(Cache(0, device), vesta::Error);
}

TEST_CASE("the destructor takes everything back, even what was never freed", "[cuda][allocator]") {
  for (bool expandable : {false, true}) {
    Device device({.policy = Policy::lazy});
    const auto side = device.stream();
    {
      Options options;
      options.expandable = expandable;
      Cache cache(0, device, options);
      for (size_t n : {1000 * kKiB, 3 * kMiB, 30 * kMiB}) {
        auto* b = cache.allocate(n, 0);
        cache.record_stream(b, side);
        if (n > 4 * kMiB) cache.free(b);
      }
    }
    CHECK(device.used() == 0);
    CHECK(device.reserved_addresses() == 0);
    CHECK(device.live_events() == 0);
    CHECK(device.violations().empty());
  }
}
