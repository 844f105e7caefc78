// Docs of the topic explog: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char logit[] =
    "logit(input, eps=None): log(z / (1 - z)), elementwise, of z = x limited to [eps, 1 - eps]; without eps z = x, "
    "and NaN outside of [0, 1].";
inline constexpr char logit_[] = "logit_(eps=None): logit in place.";

}  // namespace vesta::doc
