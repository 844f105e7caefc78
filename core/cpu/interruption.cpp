#include <vesta/core/cpu/interruption.h>

#include <vesta/core/cpu/parallel.h>

namespace vesta::cpu {

StepsOfPieces::StepsOfPieces()
    : check_(in_parallel_region() ? nullptr : interrupt_check()),
      entered_(std::this_thread::get_id()),
      checked_(Clock::now()) {}

bool StepsOfPieces::go_on() {
  if (ended_.load(std::memory_order_relaxed)) return false;
  if (check_ == nullptr || std::this_thread::get_id() != entered_) return true;
  const Clock::time_point now = Clock::now();
  if (now - checked_ < std::chrono::milliseconds(10)) return true;  // a check may wait for Python's lock
  checked_ = now;
  try {
    check_();
  } catch (...) {
    ended_.store(true, std::memory_order_relaxed);
    throw;
  }
  return true;
}

}  // namespace vesta::cpu
