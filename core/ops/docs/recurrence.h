// The texts of help() for recurrent networks over whole sequences.
#pragma once

namespace vesta::doc {

inline constexpr char _recurrence[] =
    "_recurrence(x, h, c, weight, bias, sizes, kind, reverse): one layer of a recurrent network in one direction. Step "
    "t has sizes[t] sequences, longest first; x [sum of sizes, G H] is what their inputs contribute, h and c [N, H] "
    "are the states before, weight [G H, H] and bias [G H] (of a GRU only) multiply h. kind: 0 LSTM, 1 GRU, 2 tanh, 3 "
    "relu. Gives (the outputs [sum of sizes, H], the last h, the last c, and for the gradient the activations and the "
    "cells before each step).";
inline constexpr char _recurrence_backward[] =
    "_recurrence_backward(grad_out, grad_h, grad_c, x, h, c, weight, bias, out, activations, cells, sizes, kind, "
    "reverse): gradients of x, h, c, weight and bias.";

}  // namespace vesta::doc
