#include <vesta/core/base/interrupt.h>

#include <atomic>

namespace vesta {
namespace { std::atomic<InterruptCheck> current{nullptr}; }

InterruptCheck set_interrupt_check(InterruptCheck check) { return current.exchange(check); }
InterruptCheck interrupt_check() { return current.load(std::memory_order_relaxed); }

}  // namespace vesta
