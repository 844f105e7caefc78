// Times the caching device allocator on a driver that costs nothing: what remains is the allocator's own time. Its
// bounds: 60 ns and 350 instructions for a pair of allocate and free on one thread, 5 million pairs a second on two.
//
//   build/bin/allocator                                         nanoseconds per pair
//   valgrind --tool=callgrind build/bin/allocator pair 100000   instructions, which no neighbour on the machine changes
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <vesta/cuda/memory/caching_allocator.h>

namespace {

/// A device with addresses and nothing else.
struct FreeDriver {
  using Stream = uint64_t;
  using Event = uint64_t;
  uintptr_t next = uintptr_t(1) << 44;

  void* malloc_(size_t n) { return reinterpret_cast<void*>(std::exchange(next, next + n)); }
  void free_(void*) {}
  void* va_reserve(size_t n) { return malloc_(n); }
  bool va_map(void*, size_t, size_t) { return true; }
  void va_unmap(void*, size_t, size_t) {}
  void va_release(void*, size_t) {}
  vesta::cuda::MemInfo mem_info() { return {size_t(1) << 37, size_t(1) << 37}; }
  Event event_get() { return 1; }
  void event_put(Event) {}
  void event_record(Event, Stream) {}
  bool event_query(Event) { return true; }
  void event_sync(Event) {}
  void stream_wait(Stream, Event) {}
  bool is_capturing(Stream) { return false; }
  int64_t now() { return 0; }
};

using Cache = vesta::cuda::CachingAllocator<FreeDriver>;

/// An allocator in the state that a model leaves: blocks of many sizes with holes between them.
struct Bench {
  FreeDriver driver;
  Cache cache{0, driver};
  std::vector<size_t> sizes;
  std::vector<Cache::Block*> ring;

  Bench() {
    std::mt19937 random(1);
    std::vector<Cache::Block*> live;
    for (int i = 0; i < 2000; ++i) live.push_back(cache.allocate(size_t(512) << (random() % 14), 0));
    std::shuffle(live.begin(), live.end(), random);
    for (int i = 0; i < 1000; ++i) cache.free(live[size_t(i)]);
    for (int i = 0; i < 4096; ++i) sizes.push_back((size_t(512) << (random() % 14)) - random() % 512);
    for (int i = 0; i < 256; ++i) ring.push_back(cache.allocate(4096, 0));
  }
  void pair(long n, uint64_t stream = 0) {
    for (long i = 0; i < n; ++i) cache.free(cache.allocate(sizes[size_t(i) & 4095], stream));
  }
  void random_lifetimes(long n) {
    uint32_t state = 1;
    for (long i = 0; i < n; ++i) {
      state = state * 1664525 + 1013904223;
      Cache::Block*& slot = ring[state >> 24];
      cache.free(slot);
      slot = cache.allocate(sizes[size_t(i) & 4095], 0);
    }
  }
  void two_threads(long n, bool streams) {
    std::thread other([&] { pair(n / 2, streams); });
    pair(n / 2);
    other.join();
  }
};

}  // namespace

int main(int argc, char** argv) {
  Bench bench;
  const std::pair<const char*, std::function<void(long)>> cases[] = {
      {"pair", [&](long n) { bench.pair(n); }},
      {"random lifetimes", [&](long n) { bench.random_lifetimes(n); }},
      {"two threads, one stream", [&](long n) { bench.two_threads(n, false); }},
      {"two threads, two streams", [&](long n) { bench.two_threads(n, true); }},
  };
  for (const auto& [name, run] : cases) {
    if (argc > 1 && std::strcmp(name, argv[1]) != 0) continue;
    if (argc > 2) {
      run(std::atol(argv[2]));
      continue;
    }
    constexpr long kPairs = 200000;
    run(kPairs);
    double best = 1e9;
    for (int round = 0; round < 20; ++round) {
      const auto start = std::chrono::steady_clock::now();
      run(kPairs);
      const std::chrono::duration<double, std::nano> spent = std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count() / double(kPairs));
    }
    std::printf("%-26s %6.1f ns per pair, %5.1f million pairs/s\n", name, best, 1e3 / best);
  }
}
