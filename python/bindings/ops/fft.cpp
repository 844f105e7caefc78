#include <vesta/core/ops/fft.h>

#include "op_bindings.h"

namespace vesta::python {
VESTA_BIND_OPS(fft, VESTA_OPS_FFT)
}
