// Docs of the topic arithmetic: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char rsub[] = "rsub(input, other, *, alpha=1): other - alpha * input, with broadcasting.";
inline constexpr char div[] =
    "div(other, rounding_mode=None): the quotient; None divides in floating point, 'floor' and 'trunc' round to an "
    "integer value and keep integer dtypes.";
inline constexpr char div_[] = "div_(other, *, rounding_mode=None): div in place.";
inline constexpr char conj[] = "conj(): the complex conjugate; a real tensor itself.";

}  // namespace vesta::doc
