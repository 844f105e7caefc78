// Docs of the topic activation: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char gelu[] =
    "gelu(approximate='none'): x times the normal distribution function of x; 'tanh' takes the approximation by tanh.";
inline constexpr char prelu[] =
    "prelu(input, weight): x for x > 0, else weight * x; weight has one element, or one per channel (dimension 1). "
    "Error: another size or dtype of weight.";
inline constexpr char glu[] =
    "glu(input, dim=-1): a * sigmoid(b) of the halves a and b of input along dim. Error: an odd size.";
inline constexpr char softsign[] = "softsign(input): x / (1 + |x|), elementwise; integers give floats.";
inline constexpr char tanhshrink[] = "tanhshrink(input): x - tanh(x), elementwise.";
inline constexpr char rrelu[] =
    "rrelu(input, lower=1/8, upper=1/3, training=False, generator=None): x for x > 0, else a * x, where a is drawn "
    "from [lower, upper] for each element in training and is their mean otherwise. Error: lower > upper.";
inline constexpr char rrelu_[] = "rrelu_(input, lower=1/8, upper=1/3, training=False, generator=None): rrelu in place.";

}  // namespace vesta::doc
