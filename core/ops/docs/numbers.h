// Docs of the topic numbers: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char nan_to_num[] =
    "nan_to_num(input, nan=None, posinf=None, neginf=None): x, with nan (0) in the place of NaN, and posinf and "
    "neginf (the largest and the smallest number of the dtype) in that of infinities.";
inline constexpr char nan_to_num_[] = "nan_to_num_(nan=None, posinf=None, neginf=None): nan_to_num in place.";
inline constexpr char positive[] = "positive(input): the tensor itself. Error: a bool tensor.";
inline constexpr char float_power[] =
    "float_power(input, exponent): x ** y computed in float64 (complex128 if either is complex), elementwise with "
    "broadcasting.";
inline constexpr char ldexp[] = "ldexp(input, other): x * 2 ** y, elementwise with broadcasting; integers give floats.";
inline constexpr char ldexp_[] = "ldexp_(other): ldexp in place.";

}  // namespace vesta::doc
