// Processes that do not outlive the one that started them.
//
// Note [Death of the parent]
// The kernel's parent-death signal follows the *thread* that forked, and a pipe is inherited by brothers and sisters,
// who keep it open. So a child watches a descriptor of the parent *process* itself (pidfd), which the parent opened: no
// number that may be reused, ready when the process is dead and not when it is stopped. The parent-death signal is set
// too, but to SIGCONT, which does nothing except to wake a stopped child, so that its watching thread gets its turn. It
// may come early, when only a thread ended: then it is harmless.
// Where there are no pidfds (before Linux 5.3, or forbidden) a pipe takes their place, whose write end is closed in
// forked children.
#pragma once
#include <vesta/multiprocessing/descriptor.h>

namespace vesta::shared {

/// Returns a descriptor that becomes ready for reading when this process has died; for its children. It is opened once
/// per process and stays open.
VESTA_API int life_of_this_process();

/// Ends this process with SIGKILL as soon as the process behind `life` (a descriptor of life_of_this_process(),
/// inherited or received; duplicated here) is dead. A thread watches; a forked child of this process is not tied by it.
VESTA_API void die_with(int life);

/// Tells whether the process behind `life` is dead.
VESTA_API bool is_over(int life);

}  // namespace vesta::shared
