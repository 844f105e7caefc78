// Expandable segments: address ranges that are mapped as needed.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <random>

using namespace sim;

namespace {

Options expandable() {
  Options o;
  o.expandable = true;
  return o;
}

/// Runs steps whose tensors grow with the sequence, up to `part` of the device; returns false if memory ran out.
bool survives(const Options& options, double part) {
  Rig rig({.memory = kGiB, .policy = Policy::random}, options);
  const auto room = size_t(part * double(kGiB));
  std::mt19937 random(3);
  try {
    for (int step = 0; step < 40; ++step) {
      const size_t unit = (2 * kMiB + size_t(step) * 900 * kKiB) / 512 * 512;
      std::vector<Held> held;
      for (size_t sum = 0;;) {
        const size_t n = unit + random() % 4 * (unit / 4);
        if (sum + n + 20 * kMiB > room) break;  // room for the last chunk of a pool
        held.push_back(rig.get(n));
        rig.use(held.back(), 0);
        sum += held.back().block->size;
        if (random() % 4 == 0) {
          const size_t i = random() % held.size();
          sum -= held[i].block->size;
          std::swap(held[i], held.back());
          rig.put(held.back());
          held.pop_back();
        }
      }
      for (Held& h : held)
        if (random() % 16) rig.put(h);
      for (Held& h : held) rig.put(h);
    }
  } catch (const vesta::Error& e) {
    REQUIRE(e.cause() == vesta::Cause::memory);
    return false;
  }
  REQUIRE(rig.trouble() == "");
  rig.cache.check();
  return true;
}

}  // namespace

TEST_CASE("expandable segments survive changing sizes at 95% of the device, plain ones do not",
          "[cuda][allocator][a9]") {
  CHECK(survives(expandable(), 0.95));
  CHECK_FALSE(survives(Options(), 0.95));
}

TEST_CASE("expandable segments are off unless asked for", "[cuda][allocator]") {
  Rig rig;
  Held a = rig.get(kMiB);
  CHECK(rig.device.calls(Call::va_reserve) == 0);
  rig.put(a);
}

TEST_CASE("an expandable segment grows in place and shrinks by chunks", "[cuda][allocator]") {
  Rig rig({}, expandable());
  Held a = rig.get(15 * kMiB);
  CHECK(rig.device.used() == 20 * kMiB);
  void* data = a.block->data;
  Held b = rig.get(15 * kMiB);  // from the 5 MiB that are left and one chunk more
  CHECK(rig.device.used() == 40 * kMiB);
  CHECK(b.block->data == a.block->end());
  rig.put(a);
  rig.put(b);
  Held c = rig.get(70 * kMiB);
  CHECK(c.block->data == data);
  CHECK(rig.device.used() == 80 * kMiB);
  CHECK(rig.cache.stats().get(StatType::segment).current == 1);
  rig.put(c);
  Held middle = rig.get(45 * kMiB), last = rig.get(10 * kMiB);
  rig.put(middle);
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 20 * kMiB);  // 10 MiB at 45 lie in the third chunk; the others are free
  rig.cache.check();
  const auto shot = rig.cache.snapshot();
  REQUIRE(shot.segments.size() == 1);
  CHECK(shot.segments[0].is_expandable);
  Held again = rig.get(60 * kMiB);
  rig.cache.check();
  rig.put(again);
  rig.put(last);
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.cache.snapshot().segments.empty());
  CHECK(rig.trouble() == "");
}

TEST_CASE("where no addresses can be reserved, plain segments serve", "[cuda][allocator]") {
  Rig rig({.addresses = 0}, expandable());
  Held a = rig.get(3 * kMiB), b = rig.get(1000);
  CHECK(rig.device.calls(Call::va_map) == 0);
  CHECK(rig.device.used() == 22 * kMiB);
  rig.put(a);
  rig.put(b);
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
}

TEST_CASE("a map that stops halfway leaves what it got", "[cuda][allocator]") {
  Rig rig({.memory = 90 * kMiB}, expandable());
  CHECK_THROWS_AS(rig.cache.allocate(100 * kMiB, 0), vesta::Error);
  rig.cache.check();
  Held a = rig.get(75 * kMiB);
  CHECK(rig.device.used() == 80 * kMiB);
  rig.put(a);
  rig.cache.check();
}

TEST_CASE("a limit holds for expandable segments", "[cuda][allocator]") {
  Rig rig({}, expandable());
  rig.cache.set_fraction(0.05);
  Held a = rig.get(35 * kMiB);
  CHECK_THROWS_AS(rig.cache.allocate(15 * kMiB, 0), vesta::Error);
  CHECK(rig.device.used() <= kGiB / 20);
  rig.put(a);
}
