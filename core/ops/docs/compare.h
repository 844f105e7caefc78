// Docs of the topic compare: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char equal[] = "equal(input, other): whether both have the same size and the same elements.";
inline constexpr char isclose[] =
    "isclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False): whether |input - other| <= atol + rtol * "
    "|other|, elementwise; infinities are close to themselves. Error: dtypes that differ, a negative tolerance.";
inline constexpr char allclose[] =
    "allclose(input, other, rtol=1e-05, atol=1e-08, equal_nan=False): whether all elements are close (see isclose), "
    "with broadcasting.";
inline constexpr char isreal[] = "isreal(input): whether the imaginary part is 0, elementwise; true for real tensors.";
inline constexpr char isin[] =
    "isin(elements, test_elements, *, assume_unique=False, invert=False): whether each element is among "
    "test_elements; a bool tensor of the shape of elements. invert gives the opposite. assume_unique changes "
    "nothing.";

}  // namespace vesta::doc
