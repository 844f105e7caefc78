#include <vesta/core/cpu/non_temporal.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <algorithm>
#include <fstream>
#include <string>

#include <vesta/core/cpu/parallel.h>

namespace vesta::cpu {
namespace {

/// The last level of cache, and how many CPUs share one.
struct LastLevel {
  int64_t bytes = int64_t(32) << 20;
  int sharers = 1;
  LastLevel() {
    // Not sysconf(_SC_LEVEL3_CACHE_SIZE), which adds up the caches of groups of cores that do not share them.
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index3/";
    int64_t kibibytes = 0;
    if (std::ifstream(folder + "size") >> kibibytes && kibibytes > 0) bytes = kibibytes << 10;
    int count = 0;
    std::ifstream map(folder + "shared_cpu_map");  // words of hexadecimal digits
    for (char c; map >> c;) {
      if (c >= '0' && c <= '9') count += __builtin_popcount(unsigned(c - '0'));
      if (c >= 'a' && c <= 'f') count += __builtin_popcount(unsigned(c - 'a' + 10));
    }
    sharers = std::max(count, 1);
  }
};

const LastLevel& last_level() {
  static const LastLevel level;
  return level;
}

}  // namespace

int64_t last_level_bytes() { return last_level().bytes; }

bool bypasses_caches(int64_t bytes) {
  const LastLevel& level = last_level();
  if (bytes <= level.bytes) return false;  // most results, without a look at the threads
  return bytes > level.bytes * ((num_threads() + level.sharers - 1) / level.sharers);
}

bool rows_bypass_caches(const void* to, int64_t rows, int64_t row_bytes) {
  return (reinterpret_cast<uintptr_t>(to) | uintptr_t(row_bytes)) % kLine == 0 && bypasses_caches(rows * row_bytes);
}

void write_non_temporal(char* to, const char* from, int64_t n) { VESTA_ON_AVX2_AT_MOST(stream, to, from, n); }

void finish_non_temporal() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace vesta::cpu
