// Checks of the status of decompositions, for every device.
#pragma once
#include <vesta/core/base/macros.h>

namespace vesta {

/// Raise Error(linalg) unless a decomposition's status is 0: the order of the minor that is not positive definite; the
/// number, from 1, of the zero on U's diagonal; what did not converge.
VESTA_API void check_cholesky(int status, const char* op);
VESTA_API void check_lu(int status, const char* op);
VESTA_API void check_converged(int status, const char* op);

}  // namespace vesta
