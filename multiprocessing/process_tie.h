// Processes that do not outlive the one that started them.
//
// Note [Death of the parent]
// The kernel's parent-death signal follows the *thread* that forked, and a pipe is inherited by brothers and sisters,
// who keep it open. So a child watches a descriptor of the parent *process* itself (pidfd), which the parent opened: no
// number that may be reused, ready when the process is dead and not when it is stopped. The parent-death signal is set
// too, but to SIGCONT, which does nothing except to wake a stopped child, so that its watching thread gets its turn. It
// may come early, when only a thread ended: then it is harmless.
// A child of a fork server has the server for a kernel's parent, and the server lives as long as its children. So the
// child may be given a socket besides, whose other end only the true parent has: its hang-up is made to send SIGCONT
// too. Where there are no pidfds (before Linux 5.3, or forbidden) a pipe takes their place, whose write end is closed
// in forked children.
#pragma once
#include <vesta/multiprocessing/descriptor.h>

namespace vesta::shared {

/// Opens a descriptor that becomes ready for reading when this process has died; for its children, who inherit it.
VESTA_API Descriptor life_of_this_process();

/// Ends this process with SIGKILL as soon as the process behind `life` (a descriptor of life_of_this_process(),
/// inherited or received; duplicated here) is dead. A thread watches; a forked child of this process is not tied by it.
/// `wake` is a socket whose other end that process has, for children of a fork server: a stopped child wakes up by it.
VESTA_API void die_with(int life, int wake = -1);

/// Returns whether the process behind `life` is dead.
VESTA_API bool is_over(int life);

}  // namespace vesta::shared
