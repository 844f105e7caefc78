// Bandwidth is that of copies between two blocks of 64 MiB, more than caches hold; reads and writes both count, as in
// costs. Each thread times runs of its own that are shorter than what the system gives a process at a time, and the
// fastest of them counts: what other processes take is not the machine's limit, and no thread waits for another one.
// The peak is the sum over the threads.
#include <vesta/core/cpu/peaks.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/parallel.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kBytes = int64_t(64) << 20;
constexpr double kOperations = 10 * 16 * 2;  // of a round: chains, floats, multiplication and addition

/// Runs `f(thread, run)` in each thread until `milliseconds` have passed, at least four times; returns the sum over the
/// threads of the most that one did per second, where a run does `work`.
template <class F>
double fastest(int milliseconds, double work, const F& f) {
  const int threads = num_threads();
  std::vector<double> rates(size_t(threads), 0.0);
  parallel_for(threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t limit = profiler::now() + int64_t(milliseconds) * 1'000'000;
      int64_t best = INT64_MAX;
      for (int64_t run = 0; run < 4 || profiler::now() < limit; ++run) {
        const int64_t before = profiler::now();
        f(i, run);
        best = std::min(best, profiler::now() - before);
      }
      rates[size_t(i)] = work / double(std::max<int64_t>(best, 1)) * 1e9;
    }
  });
  return std::accumulate(rates.begin(), rates.end(), 0.0);
}

struct Mapped {
  Memory memory = allocate(size_t(kBytes));
  ~Mapped() { memory.deleter(memory.context); }
};

}  // namespace

profiler::Peaks measure_peaks() {
  profiler::Peaks peaks;
  constexpr int64_t kRounds = 100'000;  // 32 million operations: less than a millisecond
  peaks.operations_per_second = fastest(40, double(kRounds) * kOperations, [](int64_t, int64_t) {
    float result = 0;
    VESTA_ON_ISA(multiply_and_add, kRounds, &result);
  });

  const Mapped from, to;
  auto* source = static_cast<char*>(from.memory.data);
  auto* target = static_cast<char*>(to.memory.data);
  parallel_for(kBytes, int64_t(1) << 20, [&](int64_t begin, int64_t end) {  // the first write is the system's work
    std::memset(source + begin, 1, size_t(end - begin));
    std::memset(target + begin, 0, size_t(end - begin));
  });
  const int64_t share = kBytes / num_threads() / 64 * 64, piece = std::min(share, int64_t(4) << 20);
  peaks.bytes_per_second = fastest(40, 2.0 * double(piece), [=](int64_t thread, int64_t run) {
    const int64_t at = thread * share + run % (share / piece) * piece;
    std::memcpy(target + at, source + at, size_t(piece));
  });

  constexpr int64_t kPart = int64_t(256) << 10, kTimes = 20;  // from and to: half of a MiB, in the cache of a core
  const double cached = fastest(10, 2.0 * double(kPart * kTimes), [=](int64_t thread, int64_t) {
    const int64_t at = thread * kPart % kBytes;
    for (int64_t k = 0; k < kTimes; ++k) std::memcpy(target + at, source + at, size_t(kPart));
  });
  peaks.cached_bytes_per_second = std::max(peaks.bytes_per_second, cached);
  return peaks;
}

}  // namespace vesta::cpu
