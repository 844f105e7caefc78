// Docs of the topic select: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char clamp_min[] =
    "clamp_min(input, min): max(x, min), elementwise with broadcasting; NaN stays NaN. A number beyond the range of an "
    "integer dtype counts as its end. Error: a number that a float dtype does not hold.";
inline constexpr char clamp_max[] =
    "clamp_max(input, max): min(x, max), elementwise with broadcasting; NaN stays NaN. A number beyond the range of an "
    "integer dtype counts as its end. Error: a number that a float dtype does not hold.";
inline constexpr char clamp[] =
    "clamp(min=None, max=None): values below min become min, above max become max; at least one bound is needed.";
inline constexpr char clamp_[] =
    "clamp_(min=None, max=None): values below min become min, above max become max; at least one bound is needed; in "
    "place.";
inline constexpr char where[] =
    "where(condition, input, other): input where the bool condition holds, else other; both may be numbers, all "
    "broadcast. where(condition): the places where it holds, as nonzero(condition, as_tuple=True).";

}  // namespace vesta::doc
