// The contract of the caching allocator: size classes, reuse, joining, limits, settings, threads.
#include "allocator_rig.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <random>
#include <thread>

using namespace sim;
using vesta::Cause;
using vesta::Error;
using vesta::cuda::parse_options;
using vesta::cuda::round_size;
using vesta::cuda::segment_size;

namespace {

// Returns the error that `call` raises, or fails.
template <class F>
Error error_of(F&& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  FAIL("expected an error");
  return Error(Cause::runtime, "");
}

}  // namespace

TEST_CASE("requests are rounded and segments sized as PyTorch does", "[cuda][allocator]") {
  const Options plain;
  const std::pair<size_t, size_t> sizes[] = {
      {1, 512}, {512, 512}, {513, 1024}, {kMiB, kMiB}, {kMiB + 1, kMiB + 512}, {3 * kMiB, 3 * kMiB}};
  for (auto [asked, got] : sizes) CHECK(round_size(asked, plain) == got);
  CHECK(segment_size(kMiB) == 2 * kMiB);
  CHECK(segment_size(kMiB + 512) == 20 * kMiB);
  CHECK(segment_size(10 * kMiB - 512) == 20 * kMiB);
  CHECK(segment_size(10 * kMiB) == 10 * kMiB);
  CHECK(segment_size(11 * kMiB + 512) == 12 * kMiB);
}

TEST_CASE("a block is aligned, large enough and comes back on its stream without a driver call", "[cuda][allocator]") {
  Rig rig;
  CHECK(rig.cache.allocate(0, 0) == nullptr);
  rig.cache.free(nullptr);
  Held a = rig.get(1000);
  CHECK(a.block->size == 1024);
  CHECK(a.block->requested == 1000);
  CHECK(a.block->stream == 0);
  CHECK(uintptr_t(a.block->data) % 512 == 0);
  CHECK(rig.cache.find(a.block->begin() + 999) == a.block);
  CHECK(rig.cache.find(a.block->end()) == nullptr);
  void* data = a.block->data;
  rig.put(a);
  const int64_t calls = rig.device.calls();
  Held b = rig.get(700);
  CHECK(b.block->data == data);
  CHECK(rig.device.calls() == calls);
  rig.put(b);
  rig.cache.check();
}

TEST_CASE("freed neighbours join and a free segment goes back", "[cuda][allocator]") {
  Rig rig;
  std::vector<Held> held;
  for (int i = 0; i < 2048; ++i) held.push_back(rig.get(1024));
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(2 * kMiB));
  std::shuffle(held.begin(), held.end(), std::mt19937(5));
  for (Held& h : held) {
    rig.put(h);
    if (&h - held.data() == 1000) rig.cache.check();
  }
  rig.cache.check();
  CHECK(rig.now(StatType::inactive_split) == 0);
  Held whole = rig.get(kMiB);
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(2 * kMiB));
  rig.cache.empty_cache();
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(2 * kMiB));  // half of it is held
  rig.put(whole);
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
}

TEST_CASE("misuse is an error that says so and does no harm", "[cuda][allocator]") {
  Rig rig;
  Block* a = rig.cache.allocate(4096, 0);
  rig.cache.free(a);
  CHECK(error_of([&] { rig.cache.free(a); }).cause() == Cause::runtime);
  CHECK(error_of([&] { rig.cache.record_stream(a, 1); }).cause() == Cause::runtime);
  CHECK(error_of([&] { rig.cache.set_fraction(0); }).cause() == Cause::value);
  CHECK(error_of([&] { rig.cache.set_fraction(1.5); }).cause() == Cause::value);
  CHECK(error_of([&] { rig.cache.end_pool({7, 0}); }).cause() == Cause::value);
  CHECK(error_of([&] { rig.cache.record_history(true, 0); }).cause() == Cause::value);
  rig.cache.check();
}

TEST_CASE("a refused request names who holds what, and the allocator works on", "[cuda][allocator]") {
  Rig rig({.memory = 64 * kMiB});
  rig.cache.record_history(true, 1000);
  rig.cache.set_op_name([]() -> const char* { return "matmul"; });
  Held big = rig.get(30 * kMiB);
  Held small = rig.get(3000);
  const Error e = error_of([&] { rig.cache.allocate(50 * kMiB, 0); });
  CHECK(e.cause() == Cause::memory);
  for (const char* part : {"out of memory", "room for 50.00 MiB (nbytes) on device 0", "The device has 64.00 MiB",
                           "32.00 MiB are free", "reserved here: 32.00 MiB", "allocated 30.00 MiB",
                           "largest free block of 2.00 MiB", "30.00 MiB (matmul), 2.93 KiB (matmul)", "smaller"})
    CHECK_THAT(e.message(), Catch::Contains(part));
  for (size_t huge : {size_t(1) << 50, ~size_t(0)})
    CHECK(error_of([&] { rig.cache.allocate(huge, 0); }).cause() == Cause::memory);
  rig.cache.check();
  CHECK(rig.cache.stats().counts.num_ooms == 3);
  Held again = rig.get(20 * kMiB);
  for (Held* h : {&big, &small, &again}) rig.put(*h);
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
}

TEST_CASE("the report proposes what would help", "[cuda][allocator]") {
  SECTION("pieces") {
    Rig rig({.memory = 80 * kMiB});
    std::vector<Held> held;
    for (int i = 0; i < 40; ++i) held.push_back(rig.get(2 * kMiB));
    for (int i = 0; i < 40; i += 2) rig.put(held[size_t(i)]);
    CHECK_THAT(error_of([&] { rig.cache.allocate(20 * kMiB, 0); }).message(),
               Catch::Contains("expandable_segments:True"));
  }
  SECTION("limit") {
    Rig rig;
    rig.cache.set_fraction(0.1);
    CHECK_THAT(error_of([&] { rig.cache.allocate(200 * kMiB, 0); }).message(), Catch::Contains("set_fraction"));
    rig.cache.set_fraction(1);
    rig.cache.free(rig.cache.allocate(200 * kMiB, 0));
  }
}

TEST_CASE("cached memory is given back before memory is declared out", "[cuda][allocator]") {
  Rig rig({.memory = 100 * kMiB});
  Held a = rig.get(60 * kMiB);
  rig.put(a);
  Held b = rig.get(90 * kMiB);
  CHECK(rig.cache.stats().counts.num_alloc_retries == 1);
  CHECK(rig.cache.stats().counts.num_ooms == 0);
  rig.put(b);
  CHECK(rig.trouble() == "");
}

TEST_CASE("callbacks may free, allocate and be removed", "[cuda][allocator]") {
  Rig rig({.memory = 100 * kMiB});
  Held hostage = rig.get(60 * kMiB);
  int calls = 0;
  const int number = rig.cache.add_oom_callback([&] {
    ++calls;
    rig.put(hostage);
    CHECK_THROWS_AS(rig.cache.allocate(200 * kMiB, 0), Error);  // not called from within itself
  });
  Held b = rig.get(90 * kMiB);
  CHECK(calls == 1);
  rig.put(b);
  rig.cache.remove_oom_callback(number);
  CHECK_THROWS_AS(rig.cache.allocate(200 * kMiB, 0), Error);
  CHECK(calls == 1);
  const int thrower = rig.cache.add_oom_callback([] { vesta::fail(Cause::interrupt, "stop"); });
  CHECK(error_of([&] { rig.cache.allocate(200 * kMiB, 0); }).cause() == Cause::interrupt);
  rig.cache.remove_oom_callback(thrower);
  rig.cache.check();
}

TEST_CASE("settings are read in PyTorch's syntax", "[cuda][allocator]") {
  const Options o = parse_options(
      "max_split_size_mb:128, garbage_collection_threshold:0.8,expandable_segments:True,backend:native,"
      "roundup_power2_divisions:[2:4,8:2,>:1],cross_stream_min_mb:4,per_process_memory_fraction:0.5");
  CHECK(o.max_split_size == 128 * kMiB);
  CHECK(o.gc_threshold == 0.8);
  CHECK(o.expandable);
  CHECK(o.cross_stream_min == 4 * kMiB);
  CHECK(o.fraction == 0.5);
  CHECK(o.roundup_divisions[0] == 0);
  CHECK(o.roundup_divisions[1] == 4);
  CHECK(o.roundup_divisions[2] == 4);
  CHECK(o.roundup_divisions[3] == 2);
  CHECK(o.roundup_divisions[4] == 1);
  CHECK(o.roundup_divisions[15] == 1);
  CHECK(parse_options("").expandable == false);
  CHECK(parse_options("roundup_power2_divisions:8").roundup_divisions[9] == 8);
}

TEST_CASE("unknown settings are refused by name", "[cuda][allocator]") {
  const std::pair<const char*, const char*> wrong[] = {
      {"expandable:True", "'expandable'"},
      {"max_split_size_mb", "key:value"},
      {"max_split_size_mb:x", "'x' (max_split_size_mb)"},
      {"max_split_size_mb:20", "from 21"},
      {"expandable_segments:yes", "True or False"},
      {"garbage_collection_threshold:1.5", "at most 1"},
      {"garbage_collection_threshold:nan", "at most 1"},
      {"backend:cudaMallocAsync", "native"},
      {"roundup_power2_divisions:3", "power of two"},
      {"roundup_power2_divisions:[4:2,2:4]", "rising"},
      {"roundup_power2_divisions:[4:2", "closing"},
      {"roundup_power2_divisions:[4]", "SIZE_MB:DIVISIONS"},
      {"max_split_size_mb:99999999999999999999", "whole number"},
  };
  for (auto [conf, part] : wrong) {
    const Error e = error_of([&] { parse_options(conf); });
    CHECK(e.cause() == Cause::value);
    CHECK_THAT(e.message(), Catch::Contains(part) && Catch::StartsWith("VESTA_CUDA_ALLOC_CONF: "));
  }
}

TEST_CASE("roundup divisions make sizes meet", "[cuda][allocator]") {
  Options o = parse_options("roundup_power2_divisions:4");
  CHECK(round_size(1200, o) == 1536);
  CHECK(round_size(5 * kMiB + 1, o) == 6 * kMiB);
  CHECK(round_size(4 * kMiB, o) == 4 * kMiB);
  for (size_t n = 1; n < 64 * kMiB; n = n * 5 / 4 + 1) {
    CHECK(round_size(n, o) >= n);
    CHECK(round_size(n, o) % 512 == 0);
    CHECK(round_size(round_size(n, o), o) == round_size(n, o));
  }
}

TEST_CASE("blocks over max_split_size stay whole", "[cuda][allocator]") {
  Rig rig({}, parse_options("max_split_size_mb:50"));
  Held big = rig.get(100 * kMiB);
  CHECK(rig.cache.stats().oversize_allocations.current == 1);
  CHECK(rig.cache.stats().oversize_segments.current == 1);
  rig.put(big);
  Held small = rig.get(30 * kMiB);  // does not split the big one
  Held near = rig.get(90 * kMiB);   // takes it whole
  CHECK(near.block->size == 100 * kMiB);
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(130 * kMiB));
  rig.put(near);
  Held other = rig.get(60 * kMiB);  // too small for it
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(190 * kMiB));
  rig.put(small);
  rig.put(other);
  rig.cache.check();
  rig.cache.empty_cache();
  CHECK(rig.cache.stats().oversize_segments.current == 0);
}

TEST_CASE("idle segments are collected over the threshold", "[cuda][allocator]") {
  Rig rig({.memory = 400 * kMiB}, parse_options("garbage_collection_threshold:0.5"));
  Held old = rig.get(100 * kMiB);
  Held young = rig.get(102 * kMiB);
  rig.put(old);
  rig.put(young);
  Held next = rig.get(120 * kMiB);
  CHECK(rig.now(StatType::reserved_bytes) == int64_t(222 * kMiB));  // the older one was returned
  CHECK(rig.cache.stats().counts.num_alloc_retries == 0);
  rig.put(next);
  rig.cache.check();
}

TEST_CASE("two threads allocate, free for each other and stay consistent", "[cuda][allocator]") {
  Rig rig;
  std::mutex mutex;
  std::vector<Held> shared;
  const auto work = [&](unsigned seed, Device::Stream s) {
    std::mt19937 random(seed);
    for (int i = 0; i < 4000; ++i) {
      Held h = rig.get(1 + random() % (random() % 8 ? 20000 : 3000000), s);
      rig.use(h, random() % 4 ? s : 1 - s);
      std::lock_guard lock(mutex);
      shared.push_back(h);
      if (shared.size() > 60) {
        std::swap(shared[random() % shared.size()], shared.back());
        rig.put(shared.back());
        shared.pop_back();
      }
      if (i % 512 == 0) rig.cache.stats();
    }
  };
  rig.device.stream();
  std::thread one(work, 1, 0), two(work, 2, 1);
  one.join();
  two.join();
  for (Held& h : shared) rig.put(h);
  rig.cache.check();
  rig.device.synchronize();
  rig.cache.empty_cache();
  CHECK(rig.device.used() == 0);
  CHECK(rig.trouble() == "");
}
