// Interruption of long work: loops and waits check between their pieces whether the user has interrupted them.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// A function that throws to end the loop or wait that calls it. It is called on the thread that runs the loop or
/// wait, with no lock held.
using InterruptCheck = void (*)();

/// Sets the check (nullptr: none) and returns the previous one. The Python layer sets one that lets Ctrl-C end what
/// runs.
VESTA_API InterruptCheck set_interrupt_check(InterruptCheck check);
/// Returns the check, for loops that check often; nullptr if there is none.
VESTA_API InterruptCheck interrupt_check();
/// Calls the check, if there is one; throws what it throws.
inline void check_interrupt() {
  if (const InterruptCheck check = interrupt_check()) check();
}

}  // namespace vesta
