#include <vesta/core/torch_rules.h>

#include <atomic>

namespace vesta {
namespace { constinit std::atomic<bool> follows{false}; }  // namespace

bool follows_torch() { return follows.load(std::memory_order_relaxed); }
void follow_torch(bool on) { follows.store(on, std::memory_order_relaxed); }

}  // namespace vesta
