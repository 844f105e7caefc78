#include <vesta/core/base/waiting.h>

namespace vesta {
namespace { WaitingHooks hooks; }

void set_waiting_hooks(WaitingHooks set) { hooks = set; }

Waiting::Waiting() {
  if (hooks.begin) state_ = hooks.begin();
}
Waiting::~Waiting() {
  if (state_) hooks.end(state_);
}

}  // namespace vesta
