// Waiting for a device or another process. A front end that holds a lock of its own releases it meanwhile.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// The calls that a front end makes around a wait: `begin` returns what `end` receives. Python releases the GIL.
struct WaitingHooks {
  void* (*begin)() = nullptr;
  void (*end)(void*) = nullptr;
};
/// Sets the hooks; once, before the first wait.
VESTA_API void set_waiting_hooks(WaitingHooks hooks);

/// A scope around a wait on this thread. Do not hold a lock in it that a thread of the front end may take.
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
