// The cache of host memory: a repeated step finds its blocks again, and nothing is kept beyond a recent need.
#include <vesta/core/base/error.h>
#include <vesta/core/base/sanitizers.h>
#include <vesta/core/cpu/allocator.h>

#include <catch2/catch.hpp>

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

using namespace vesta;

namespace {

constexpr size_t kMiB = size_t(1) << 20;

struct Buffer {
  Memory memory;
  size_t bytes;
  explicit Buffer(size_t bytes) : memory(cpu::allocate(bytes)), bytes(bytes) {}
  Buffer(Buffer&& other) noexcept : memory(std::exchange(other.memory, {})), bytes(other.bytes) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(memory, other.memory), std::swap(bytes, other.bytes);
    return *this;
  }
  ~Buffer() {
    if (memory.deleter) memory.deleter(memory.context);
  }
};

/// Lets every earlier peak be forgotten: allocates far more than any test before can have used.
void forget_peaks() {
  cpu::release_cached_host_memory();
  for (int i = 0; i < 4000; ++i) Buffer(64 * kMiB);
  cpu::release_cached_host_memory();
}

/// Allocates as a training step does: activations that stay, then gradients while the activations die.
void step(size_t unit) {
  std::vector<Buffer> activations;
  activations.reserve(12);
  for (int i = 0; i < 12; ++i) activations.emplace_back(unit * (1 + i * 5 % 7) + 4096 * i);
  for (const Buffer& b : activations) std::memset(b.memory.data, 1, b.bytes);
  while (!activations.empty()) {
    Buffer gradient(activations.back().bytes), scratch(unit / 3);
    std::memset(gradient.memory.data, 2, gradient.bytes);
    std::memset(scratch.memory.data, 3, scratch.bytes);
    activations.pop_back();
  }
}

long page_faults() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return use.ru_minflt;
}

}  // namespace

TEST_CASE("blocks of every size are aligned and hold what is written", "[host_memory]") {
  for (size_t bytes :
       {size_t(0), size_t(1), size_t(512), size_t(513), kMiB - 1, kMiB, kMiB + 1, 2 * kMiB, 5 * kMiB + 7}) {
    INFO(bytes << " bytes");
    Buffer a(bytes), b(bytes);
    CHECK(a.memory.data != b.memory.data);
    CHECK(reinterpret_cast<uintptr_t>(a.memory.data) % 64 == 0);
    std::memset(a.memory.data, 1, bytes);
    std::memset(b.memory.data, 2, bytes);
    if (bytes) CHECK(static_cast<char*>(a.memory.data)[bytes - 1] == 1);
  }
}

TEST_CASE("blocks go from thread to thread, and a child of a fork can allocate", "[host_memory]") {
  std::mutex mutex;
  std::vector<Buffer> shared;
  std::atomic<bool> over = false, wrong = false;
  const auto work = [&](unsigned char mark) {
    unsigned state = mark;
    while (!over) {
      state = state * 1664525 + 1013904223;
      Buffer mine(size_t(1) << (10 + (state >> 16) % 13));
      auto* const bytes = static_cast<unsigned char*>(mine.memory.data);
      bytes[0] = bytes[mine.bytes - 1] = mark;
      const std::lock_guard lock(mutex);
      shared.push_back(std::move(mine));
      if (shared.size() < 8) continue;
      const Buffer other(std::move(shared[(state >> 8) % shared.size()]));
      std::swap(shared[(state >> 8) % shared.size()], shared.back());
      shared.pop_back();
      const auto* const found = static_cast<const unsigned char*>(other.memory.data);
      wrong = wrong || found[0] != found[other.bytes - 1];
    }
  };
  std::vector<std::thread> threads;
  threads.reserve(3);
  for (unsigned char i = 1; i <= 3; ++i) threads.emplace_back(work, i);
  int failed = 0;
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);  // a lock that another thread held at the fork would be waited for forever
      for (const size_t bytes : {size_t(1000), kMiB, 9 * kMiB}) std::memset(Buffer(bytes).memory.data, 1, bytes);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    failed += status != 0;
  }
  over = true;
  for (std::thread& t : threads) t.join();
  CHECK(failed == 0);
  CHECK_FALSE(wrong);
}

#if !VESTA_SANITIZED

TEST_CASE("a repeated step takes its memory from the cache and touches no fresh page", "[host_memory]") {
  forget_peaks();
  for (int i = 0; i < 3; ++i) step(3 * kMiB);
  const size_t held = cpu::host_memory().live + cpu::host_memory().cached;
  const long before = page_faults();
  for (int i = 0; i < 5; ++i) step(3 * kMiB);
  CHECK(page_faults() - before < 200);  // a step writes 230 MiB: 59,000 small pages, or 115 huge ones
  CHECK(cpu::host_memory().live + cpu::host_memory().cached <= held + held / 8);
}

TEST_CASE("live and cached memory stay within the recent peak and a half", "[host_memory]") {
  forget_peaks();
  const size_t base = cpu::host_memory().live;
  size_t peak = 0;
  for (int round = 0; round < 50; ++round) {
    std::vector<Buffer> blocks;
    blocks.reserve(30);
    for (int i = 0; i < 30; ++i) blocks.emplace_back(kMiB + (round * 7919 + i * 104729) % 97 * kMiB / 8);
    peak = std::max(peak, cpu::host_memory().live);
    blocks.clear();
    const cpu::HostMemory now = cpu::host_memory();
    REQUIRE(now.live == base);
    REQUIRE(now.live + now.cached <= std::max(peak + peak / 2, base + 64 * kMiB));
  }
}

TEST_CASE("a need that has fallen gives its memory back while the program works", "[host_memory]") {
  forget_peaks();
  {
    std::vector<Buffer> large;
    large.reserve(16);
    for (int i = 0; i < 16; ++i) large.emplace_back(64 * kMiB);
  }
  CHECK(cpu::host_memory().cached > 512 * kMiB);
  for (int i = 0; i < 20 * 1024 / 8; ++i) Buffer(8 * kMiB);  // 20 GiB in blocks of 8 MiB
  CHECK(cpu::host_memory().cached <= 100 * kMiB);
}

TEST_CASE("small blocks are given back as well", "[host_memory]") {
  forget_peaks();
  {
    std::vector<Buffer> small;
    small.reserve(1000);
    for (int i = 0; i < 1000; ++i) small.emplace_back(400 * 1024);
  }
  CHECK(cpu::host_memory().cached > 256 * kMiB);
  for (int i = 0; i < 20 * 1024 / 8; ++i) Buffer(8 * kMiB);
  CHECK(cpu::host_memory().cached <= 100 * kMiB);
}

TEST_CASE("a peak of long ago is forgotten however small the need is now", "[host_memory]") {
  forget_peaks();
  {
    std::vector<Buffer> large;
    large.reserve(16);
    for (int i = 0; i < 16; ++i) large.emplace_back(64 * kMiB);
  }
  for (int i = 0; i < 400; ++i) Buffer(2 * kMiB);  // 0.8 GiB, less than was live once
  CHECK(cpu::host_memory().cached <= 70 * kMiB);
}

TEST_CASE("small blocks that lie idle leave room for those in use", "[host_memory]") {
  forget_peaks();
  {
    std::vector<Buffer> idle;
    idle.reserve(150);
    for (int i = 0; i < 150; ++i) idle.emplace_back(400 * 1024);
  }
  CHECK(cpu::host_memory().cached > 50 * kMiB);
  const auto use = [] {
    std::vector<Buffer> some;
    some.reserve(8);
    for (int i = 0; i < 8; ++i) some.emplace_back(100 * 1024);
  };
  for (int i = 0; i < 2000; ++i) use();
  CHECK(cpu::host_memory().cached <= 17 * kMiB);
  const size_t cached = cpu::host_memory().cached;
  for (int i = 0; i < 200; ++i) use();
  CHECK(cpu::host_memory().cached == cached);  // they are found again
}

TEST_CASE("an allocation that fails does not count as a need", "[host_memory]") {
  forget_peaks();
  CHECK_THROWS_AS(cpu::allocate(size_t(1) << 46), Error);
  for (int i = 1; i <= 12; ++i) Buffer(i * 36 * kMiB);
  CHECK(cpu::host_memory().cached <= 12 * 36 * kMiB * 3 / 2 + 64 * kMiB);
}

#endif
