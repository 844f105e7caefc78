// Random programs on every kind of device: no byte is owned twice, none is lost, no kernel uses another owner's
// memory. The campaign is a million operations for each of a hundred seeds.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <random>

using namespace sim;
using vesta::cuda::PoolId;

namespace {

/// A random program that checks the invariants.
class Fuzzer {
 public:
  Fuzzer(uint64_t seed, Policy policy, const Options& options)
      : random_(seed), rig_({.memory = 160 * kMiB, .policy = policy, .seed = seed}, options) {
    streams_.push_back(0);
    for (int i = 0; i < 4; ++i) streams_.push_back(rig_.device.stream());
  }

  void run(int64_t operations) {
    for (int64_t i = 0; i < operations; ++i) {
      operate();
      if (i % 997 == 0) rig_.cache.check();
    }
  }

  /// Frees all, and checks that everything is as at the start.
  void finish() {
    while (!held_.empty()) drop(held_.size() - 1);
    rig_.device.synchronize();
    rig_.cache.check();
    rig_.cache.empty_cache();
    rig_.cache.check();
    REQUIRE(rig_.trouble() == "");
    REQUIRE(rig_.device.used() == 0);
    REQUIRE(rig_.now(StatType::active_bytes) == 0);
    REQUIRE(rig_.device.live_events() <= int64_t(streams_.size()));  // one per stream that memory was stolen from
  }
  int64_t refusals() const { return refusals_; }
  const Rig& rig() const { return rig_; }

 private:
  size_t below(size_t n) { return random_() % n; }
  Device::Stream any_stream() { return streams_[below(streams_.size())]; }
  size_t any_size() {
    switch (below(8)) {
      case 0: return 1 + below(30 * kMiB);
      case 1:
      case 2: return 1 + below(4 * kMiB);
      case 3: return size_t(512) << below(14);
      default: return 1 + below(40000);
    }
  }

  void operate() {
    const size_t choice = below(200);
    if (choice < 70) {
      allocate();
    } else if (choice < 140) {
      if (!held_.empty()) drop(below(held_.size()));
    } else if (choice < 180) {
      if (!held_.empty()) rig_.use(held_[below(held_.size())], any_stream(), int64_t(below(40)));
    } else if (choice < 195) {
      rig_.device.order(any_stream(), any_stream());
    } else if (choice < 196) {
      if (below(20) == 0) rig_.cache.empty_cache();
    } else if (choice < 197) {
      if (below(8) == 0) capture();
    } else if (choice < 198) {
      user_pool();
    } else {
      rig_.cache.stats();
    }
  }

  void allocate() {
    try {
      Held h = rig_.get(any_size(), any_stream());
      rig_.use(h, h.block->stream, int64_t(below(20)));
      held_.push_back(h);
    } catch (const vesta::Error& e) {
      if (e.cause() != vesta::Cause::memory) throw;
      ++refusals_;
      for (size_t n = held_.size() / 2; n > 0; --n) drop(below(held_.size()));
    }
  }

  void drop(size_t i) {
    std::swap(held_[i], held_.back());
    rig_.put(held_.back());
    held_.pop_back();
  }

  void user_pool() {
    const PoolId id = rig_.cache.begin_pool(vesta::cuda::PoolKind::user);
    {
      auto scope = rig_.cache.use_pool(id);
      for (int i = 0; i < 3; ++i) allocate();
    }
    rig_.cache.end_pool(id);  // its blocks may outlive it
  }

  /// Captures a graph with a fork, replays it among other work, destroys it.
  void capture() {
    const PoolId id = rig_.cache.begin_pool();
    const int tag = int(id.capture);
    const auto main = streams_[1], side = streams_[2];
    std::vector<Held> kept;
    std::shared_ptr<Graph> graph;
    {
      auto scope = rig_.cache.use_pool(id);
      rig_.device.begin_capture(main, tag);
      try {
        for (int i = 0; i < 6; ++i) {
          Held a = rig_.get(any_size() / 4 + 1, main, tag);
          rig_.use(a, main);
          if (i == 2) {
            rig_.device.order(main, side);
            rig_.use(a, side);
            rig_.device.order(side, main);
          }
          if (below(3)) rig_.put(a);
          else kept.push_back(a);
        }
        if (!held_.empty()) drop(below(held_.size()));  // of the common pool, during the capture
      } catch (const vesta::Error& e) {
        if (e.cause() != vesta::Cause::memory) throw;
        ++refusals_;
      }
      graph = rig_.device.end_capture(main);
    }
    for (int i = 0; i < 3; ++i) {
      rig_.device.launch(graph, main);
      allocate();
    }
    for (Held& h : kept) rig_.put(h);
    rig_.device.launch(graph, main);
    rig_.cache.end_pool(id);
  }

  std::mt19937_64 random_;
  Rig rig_;
  std::vector<Device::Stream> streams_;
  std::vector<Held> held_;
  int64_t refusals_ = 0;
};

void fuzz(uint64_t seed, int64_t operations, int64_t& refusals) {
  const Policy policy = kPolicies[seed % kPolicies.size()];
  Options options;
  options.expandable = seed / 5 % 2;
  if (seed / 10 % 3 == 1) options.max_split_size = 21 * kMiB;
  if (seed / 10 % 3 == 2) options.gc_threshold = 0.6;
  if (seed % 7 == 3) options.cross_stream_min = 0;
  INFO("seed " << seed);
  Fuzzer fuzzer(seed, policy, options);
  fuzzer.run(operations);
  fuzzer.finish();
  refusals += fuzzer.refusals();
}

}  // namespace

TEST_CASE("random programs keep every promise", "[cuda][allocator][fuzz]") {
  int64_t refusals = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) fuzz(seed, 4000, refusals);
  CHECK(refusals > 30);  // the device is small enough for the ladder to be used
}

TEST_CASE("a hundred long random programs keep every promise", "[.campaign][allocator]") {
  int64_t refusals = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) fuzz(seed, 1000000, refusals);
  CHECK(refusals > 100);
}
