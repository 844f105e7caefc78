// Ending what takes long: loops and waits ask between their pieces whether the user wants them to stop.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// Throws to end the loop or wait that calls it. Called on the thread that entered it, holding no lock.
using InterruptCheck = void (*)();

/// Sets the check (nullptr: none) and returns the one before. The Python layer lets Ctrl-C end what runs.
VESTA_API InterruptCheck set_interrupt_check(InterruptCheck check);
/// Returns the check, for loops that ask often; nullptr where there is none.
VESTA_API InterruptCheck interrupt_check();
/// Calls the check, if there is one; throws what it throws.
inline void check_interrupt() {
  if (const InterruptCheck check = interrupt_check()) check();
}

}  // namespace vesta
