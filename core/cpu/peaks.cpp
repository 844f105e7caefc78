// Bandwidth is that of a copy of 2 x 64 MiB, more than caches hold; reads and writes both count, as in costs. All
// loops run several times and the best run counts: what another process takes is not the machine's limit.
#include <vesta/core/cpu/peaks.h>

#include <algorithm>
#include <cstring>

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/parallel.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kBytes = int64_t(64) << 20;
constexpr double kOperations = 10 * 16 * 2;  // of a round: chains, floats, multiplication and addition

/// Runs `f` until `milliseconds` have passed, at least twice; returns the nanoseconds of the best run.
template <class F>
double best_of(int milliseconds, const F& f) {
  const int64_t limit = profiler::now() + int64_t(milliseconds) * 1'000'000;
  int64_t best = INT64_MAX;
  for (int run = 0; run < 2 || profiler::now() < limit; ++run) {
    const int64_t before = profiler::now();
    f();
    best = std::min(best, profiler::now() - before);
  }
  return double(std::max<int64_t>(best, 1));
}

struct Block {
  Memory memory = allocate(size_t(kBytes));
  ~Block() { memory.deleter(memory.context); }
};

}  // namespace

profiler::Peaks measure_peaks() {
  profiler::Peaks peaks;
  const int threads = num_threads();
  constexpr int64_t kRounds = 200'000;
  const double nanoseconds = best_of(40, [&] {
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        float result = 0;
        VESTA_ON_ISA(multiply_and_add, kRounds, &result);
      }
    });
  });
  peaks.operations_per_second = double(threads) * double(kRounds) * kOperations / nanoseconds * 1e9;

  const Block from, to;
  auto* source = static_cast<char*>(from.memory.data);
  auto* target = static_cast<char*>(to.memory.data);
  const auto pieces = [&](auto body) { parallel_for(kBytes, int64_t(1) << 20, body); };
  pieces([&](int64_t begin, int64_t end) {  // the first write to a page is the system's work
    std::memset(source + begin, 1, size_t(end - begin));
    std::memset(target + begin, 0, size_t(end - begin));
  });
  const double copied = best_of(40, [&] {
    pieces([&](int64_t begin, int64_t end) { std::memcpy(target + begin, source + begin, size_t(end - begin)); });
  });
  peaks.bytes_per_second = 2.0 * double(kBytes) / copied * 1e9;

  constexpr int64_t kPart = int64_t(256) << 10, kTimes = 20;  // from and to: half of a MiB, in the cache of a core
  const double cached = best_of(10, [&] {
    parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t at = i * kPart % kBytes;
        for (int64_t k = 0; k < kTimes; ++k) std::memcpy(target + at, source + at, size_t(kPart));
      }
    });
  });
  peaks.cached_bytes_per_second =
      std::max(peaks.bytes_per_second, 2.0 * double(threads * kPart * kTimes) / cached * 1e9);
  return peaks;
}

}  // namespace vesta::cpu
