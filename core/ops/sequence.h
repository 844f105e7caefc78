// Sequences: recurrent networks and attention.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/sequence.h>

namespace vesta {

VESTA_DECLARE_TOPIC(VESTA_OPS_SEQUENCE)

/// Checks the operands of one step of an LSTM: gates [N, 4 H] and a cell state [N, H] of one floating dtype.
VESTA_API void check_lstm_cell(const Tensor& gates, const Tensor& cx);

}  // namespace vesta
