#include <vesta/multiprocessing/waiting_slots.h>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>

namespace vesta::shared {

bool take_slot(int32_t* free, Clock::time_point deadline) {
  std::atomic_ref<int32_t> count(*free);
  while (true) {
    for (int32_t n = count.load(); n > 0;) {
      if (count.compare_exchange_weak(n, n - 1)) return true;
    }
    const auto slice = std::min<Clock::duration>(kSlice, deadline - Clock::now());
    if (slice.count() <= 0) return false;
    const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(slice).count();
    const timespec time{ns / 1000000000, ns % 1000000000};
    syscall(SYS_futex, free, FUTEX_WAIT, 0, &time, nullptr, 0);  // returns at once if a slot has become free meanwhile
    check_interrupt();
  }
}

void give_slot(int32_t* free) {
  std::atomic_ref<int32_t>(*free).fetch_add(1);
  syscall(SYS_futex, free, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace vesta::shared
