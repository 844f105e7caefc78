// Docs of the topic activation: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char gelu[] =
    "gelu(approximate='none'): x times the normal distribution function of x; 'tanh' takes the approximation by tanh.";

}  // namespace vesta::doc
