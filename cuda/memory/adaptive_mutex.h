// A mutex for short critical sections: one atomic instruction to lock, one to unlock, a short spin before the thread
// sleeps. std::mutex costs four times the instructions of all the code it would guard here
// (benchmarks/cpp/allocator.cpp).
#pragma once
#include <atomic>
#include <cstdint>

#include <vesta/core/base/macros.h>

namespace vesta::cuda {

class AdaptiveMutex {
 public:
  VESTA_INLINE void lock() {
    uint32_t expected = kFree;
    if (!state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire)) [[unlikely]]
      wait();
  }
  VESTA_INLINE bool try_lock() {
    uint32_t expected = kFree;
    return state_.compare_exchange_strong(expected, kHeld, std::memory_order_acquire);
  }
  VESTA_INLINE void unlock() {
    if (state_.exchange(kFree, std::memory_order_release) == kSleepers) [[unlikely]]
      state_.notify_one();
  }

 private:
  enum : uint32_t { kFree, kHeld, kSleepers };  // sleepers: held, and some thread may sleep

  static void pause() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#endif
  }

  [[gnu::noinline]] void wait() {
    for (int turn = 0; turn < 64; ++turn) {
      if (state_.load(std::memory_order_relaxed) == kFree && try_lock()) return;
      pause();
    }
    while (state_.exchange(kSleepers, std::memory_order_acquire) != kFree) state_.wait(kSleepers);
  }

  std::atomic<uint32_t> state_{kFree};
};

}  // namespace vesta::cuda
