// Docs of the topic sort: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char sort[] =
    "sort(input, dim=-1, descending=False, *, stable=None): a named tuple (values, indices) of the elements in order "
    "along dim, and of their indices (int64) in input. NaN counts as the largest value; equal elements keep their "
    "order, whatever `stable` says. Error: a dimension out of range, a complex dtype.";
inline constexpr char argsort[] =
    "argsort(input, dim=-1, descending=False, *, stable=False): the indices of sort(input, dim, descending).";
inline constexpr char msort[] = "msort(input): the values of sort(input, 0).";

}  // namespace vesta::doc
