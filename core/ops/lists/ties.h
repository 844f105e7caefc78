// The op list of the choice among equal elements. It is no topic: its op is not called by name. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_TIES(OP)                                                                                             \
  OP(METHOD, Tensor, _places_with_ties, (int64_t first, int64_t count, int64_t dim, bool largest, Text ties),          \
     (first, count, dim, largest, ties), composite, hidden, no_gradient)                                               \
  OP(METHOD, Tensor, _mode_places, (int64_t dim), (dim), composite, hidden, no_gradient)
