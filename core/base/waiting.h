// Waiting for somebody else: a device, another process. A front end that holds a lock of its own lets go of it.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// Is what a front end does around a wait: `begin` returns what `end` gets. Python lets go of its GIL.
struct WaitingHooks {
  void* (*begin)() = nullptr;
  void (*end)(void*) = nullptr;
};
/// Sets the hooks; once, before the first wait.
VESTA_API void set_waiting_hooks(WaitingHooks hooks);

/// Brackets a wait on this thread. Hold no lock meanwhile that a thread of the front end may want.
class VESTA_API Waiting {
 public:
  Waiting();
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

 private:
  void* state_ = nullptr;
};

}  // namespace vesta
