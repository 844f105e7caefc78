// Processes that do not outlive the one that started them.
//
// Note [Death of the parent]
// The kernel's parent-death signal follows the *thread* that forked, and a pipe is inherited by sibling processes,
// which keep it open. So a child watches a descriptor of the parent *process* itself (pidfd), which the parent opened:
// it is no number that may be reused, and it becomes ready when the process is dead, not when it is stopped. The
// parent-death signal is set too, but to SIGCONT, which only wakes a stopped child, so that its watching thread can
// run. It may come early, when only a thread ended; then it is harmless. For the kernel, the parent of a fork server's
// child is the server, which lives as long as its children. So the child may also be given a socket whose other end
// only the true parent has: its hang-up sends SIGCONT too. Without pidfds (before Linux 5.3, or forbidden) a pipe
// takes their place, whose write end is closed in forked children.
#pragma once
#include <vesta/multiprocessing/descriptor.h>

namespace vesta::shared {

/// Opens a descriptor that becomes ready for reading when this process has died; for its children, which inherit it.
VESTA_API Descriptor life_of_this_process();

/// Ends this process with SIGKILL as soon as the process behind `life` (a descriptor of life_of_this_process(),
/// inherited or received; duplicated here) is dead. A thread watches it; the tie does not apply to a forked child of
/// this process. `wake` is a socket whose other end that process has, for children of a fork server: it wakes a
/// stopped child.
VESTA_API void die_with(int life, int wake = -1);

/// Returns whether the process behind `life` is dead.
VESTA_API bool is_over(int life);

}  // namespace vesta::shared
