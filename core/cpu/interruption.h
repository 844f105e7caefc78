// Interruption of long pieces of a loop: parallel_for looks at the interrupt check between its pieces only.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include <vesta/core/base/interrupt.h>

namespace vesta::cpu {

/// An interrupt check for use inside the pieces of a loop, between their steps; made before the loop, on its thread.
class StepsOfPieces {
 public:
  StepsOfPieces();
  /// Returns whether to go on. On the thread that entered the loop it runs the interrupt check, at most once in 10 ms,
  /// and throws what that throws; other threads then get false and stop.
  bool go_on();

 private:
  using Clock = std::chrono::steady_clock;
  const InterruptCheck check_;
  const std::thread::id entered_;
  Clock::time_point checked_;  // of the thread that entered
  std::atomic<bool> ended_{false};
};

}  // namespace vesta::cpu
