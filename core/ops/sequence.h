// Sequences: recurrent networks and attention.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/sequence.h>

namespace vesta {

VESTA_DECLARE_OPS(VESTA_OPS_SEQUENCE)

}  // namespace vesta
