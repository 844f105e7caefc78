// Docs of the topic special: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char polygamma[] =
    "polygamma(n, input): the n-th derivative of digamma, elementwise; digamma itself for n = 0. Error: a negative "
    "n.";
inline constexpr char polygamma_[] = "polygamma_(n): polygamma in place.";
inline constexpr char mvlgamma[] =
    "mvlgamma(input, p): the logarithm of the multivariate gamma function of dimension p, elementwise: p (p - 1) / "
    "4 * log(pi) + the sum of lgamma(x - i / 2) over i < p. Error: p < 1.";
inline constexpr char mvlgamma_[] = "mvlgamma_(p): mvlgamma in place.";

}  // namespace vesta::doc
