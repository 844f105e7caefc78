// The cache of page-locked memory: sizes, reuse behind events, captures, failures.
#include "sim_driver.h"

#include <catch2/catch.hpp>

#include <deque>
#include <random>
#include <set>

#include <vesta/cuda/memory/pinned_allocator.h>

using namespace sim;
using vesta::cuda::kKiB;
using vesta::cuda::kMiB;
using Pinned = vesta::cuda::PinnedAllocator<Device>;

TEST_CASE("pinned blocks are powers of two, cut from segments", "[cuda][pinned]") {
  Device device;
  Pinned pinned(device);
  CHECK(pinned.allocate(0) == nullptr);
  std::set<void*> places;
  std::vector<Pinned::Block*> blocks;
  for (int i = 0; i < 4; ++i) {
    blocks.push_back(pinned.allocate(700 * kKiB));
    CHECK(blocks.back()->size == kMiB);
    CHECK(blocks.back()->requested == 700 * kKiB);
    CHECK(uintptr_t(blocks.back()->data) % 512 == 0);
    places.insert(blocks.back()->data);
  }
  CHECK(places.size() == 4);
  CHECK(device.calls(Call::host_malloc) == 1);
  CHECK(pinned.find(static_cast<char*>(blocks[2]->data) + 5) == blocks[2]);
  CHECK(pinned.find(&device) == nullptr);
  auto* large = pinned.allocate(5 * kMiB);
  CHECK(large->size == 8 * kMiB);
  CHECK(device.host_used() == 12 * kMiB);
  const int64_t calls = device.calls();
  pinned.free(blocks[1]);
  CHECK(pinned.find(blocks[1]->data) == nullptr);
  CHECK(pinned.allocate(kMiB) == blocks[1]);
  CHECK(device.calls() == calls);
  for (auto* b : blocks) pinned.free(b);
  CHECK_THROWS_AS(pinned.free(blocks[0]), vesta::Error);
  CHECK_THROWS_AS(pinned.record_use(blocks[0], 0), vesta::Error);
  pinned.free(large);
  pinned.free(nullptr);
  pinned.empty_cache();
  CHECK(device.host_used() == 0);
  CHECK(pinned.stats().reserved_bytes == 0);
  CHECK(pinned.stats().num_host_free == 2);
}

TEST_CASE("a pinned block is reused only when all its copies are done", "[cuda][pinned][a10]") {
  Device device({.policy = Policy::lazy});
  const auto side = device.stream();
  Pinned pinned(device);
  auto* a = pinned.allocate(8 * kMiB);
  device.kernel(0, {});
  pinned.record_use(a, 0);
  device.kernel(side, {});
  pinned.record_use(a, side);
  pinned.free(a);
  CHECK(pinned.stats().pending_bytes == int64_t(8 * kMiB));
  auto* b = pinned.allocate(8 * kMiB);
  CHECK(b != a);
  device.synchronize();
  auto* c = pinned.allocate(8 * kMiB);
  CHECK(c == a);
  CHECK(device.calls(Call::event_sync) == 0);
  CHECK(device.live_events() == 0);
  pinned.free(b);
  pinned.free(c);
}

TEST_CASE("random copies never meet a block's next owner", "[cuda][pinned][a10]") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    Device device({.policy = kPolicies[seed % kPolicies.size()], .seed = seed});
    device.stream();
    std::mt19937_64 random(seed);
    {
      Pinned pinned(device);
      std::deque<std::pair<Pinned::Block*, Owner>> held;
      for (int i = 0; i < 3000; ++i) {
        auto* b = pinned.allocate(1 + random() % (random() % 8 ? 100000 : 3000000));
        held.emplace_back(b, device.own(b->data, b->size));
        // The host writes at once: nothing may still be reading.
        for (const Owner& earlier : held.back().second->before) REQUIRE(earlier->outstanding == 0);
        for (uint64_t copies = random() % 3; copies > 0; --copies) {
          const auto s = random() % 2;
          device.kernel(s, {held.back().second}, int64_t(random() % 30));
          pinned.record_use(b, s);
        }
        if (held.size() > 20) {
          std::swap(held[random() % held.size()], held.back());
          device.disown(held.back().second);
          pinned.free(held.back().first);
          held.pop_back();
        }
        if (random() % 500 == 0) pinned.empty_cache();
      }
      for (auto& [b, owner] : held) {
        device.disown(owner);
        pinned.free(b);
      }
      pinned.empty_cache();
      const auto stats = pinned.stats();
      CHECK(stats.allocated_bytes + stats.pending_bytes + stats.reserved_bytes == 0);
    }
    CHECK(device.host_used() == 0);
    CHECK(device.live_events() == 0);
    CHECK(device.violations().empty());
  }
}

TEST_CASE("pinned memory that a graph reads is not handed out again", "[cuda][pinned]") {
  Device device({.policy = Policy::eager});
  Pinned pinned(device);
  auto* a = pinned.allocate(8 * kMiB);
  {
    Pinned::CaptureScope scope(pinned);
    device.begin_capture(0, 1);
    pinned.record_use(a, 0);
    pinned.free(a);
    auto* b = pinned.allocate(8 * kMiB);
    CHECK(b != a);
    pinned.free(b);
    CHECK_THROWS_AS(pinned.empty_cache(), vesta::Error);
    device.end_capture(0);
  }
  CHECK(pinned.stats().retired_bytes == int64_t(8 * kMiB));
  pinned.empty_cache();
  CHECK(device.host_used() == 8 * kMiB);
  CHECK(device.violations().empty());
}

TEST_CASE("any driver call of the pinned cache may fail", "[cuda][pinned][a5]") {
  for (int64_t many : {1, 3, 100000}) {
    for (int64_t k = 1; k < 40; ++k) {
      Device device({.policy = Policy::lazy});
      const auto side = device.stream();
      Pinned pinned(device);
      device.fail(k, many);
      std::vector<std::pair<Pinned::Block*, Owner>> held;
      const auto drop = [&] {
        for (auto& [b, owner] : held) {
          device.disown(owner);
          pinned.free(b);
        }
        held.clear();
      };
      for (int round = 0; round < 3; ++round) {
        for (size_t n : {3000, 5000000, 300000}) {
          try {
            auto* b = pinned.allocate(n);
            held.emplace_back(b, device.own(b->data, b->size));
            REQUIRE(held.back().second->before.empty());
            device.kernel(side, {held.back().second});
            pinned.record_use(b, side);
          } catch (const vesta::Error& e) {
            REQUIRE(e.cause() == vesta::Cause::memory);
          }
        }
        drop();
      }
      device.fail(0, 0);
      pinned.empty_cache();
      const auto stats = pinned.stats();
      INFO("call " << k << ", " << many << " in a row");
      CHECK(stats.pending_bytes + stats.allocated_bytes == 0);
      CHECK(stats.reserved_bytes == int64_t(device.host_used()));
      CHECK(device.violations().empty());
    }
  }
}
