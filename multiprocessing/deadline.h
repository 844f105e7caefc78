// Waits that end: every wait in this folder has a deadline and checks between its slices whether the user pressed
// Ctrl-C.
#pragma once
#include <chrono>
#include <condition_variable>
#include <mutex>

#include <vesta/core/base/interrupt.h>

namespace vesta {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::milliseconds;

/// The timeout that means "no end": long enough never to come, short enough never to overflow a clock.
inline constexpr Milliseconds kForever = std::chrono::hours(24 * 365 * 10);
/// The time a wait sleeps between two interrupt checks.
inline constexpr Milliseconds kSlice{50};

/// Returns the time point `timeout` from now.
inline Clock::time_point deadline_in(Milliseconds timeout) {
  return Clock::now() + (timeout < kForever ? timeout : kForever);
}

/// Waits until `ready()` or the deadline, in slices with an interrupt check between them; returns whether it is ready.
/// The lock is not held during the check.
template <class Ready>
bool wait_until(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Clock::time_point deadline,
                Ready ready) {
  while (!ready()) {
    const auto now = Clock::now();
    if (now >= deadline) return false;
    changed.wait_until(lock, deadline - now < kSlice ? deadline : now + kSlice);
    if (ready()) return true;
    lock.unlock();
    check_interrupt();
    lock.lock();
  }
  return true;
}

}  // namespace vesta
