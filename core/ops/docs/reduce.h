// Docs of the topic reduce: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char sum[] =
    "sum(input, dim=None, keepdim=False, *, dtype=None): the sum over the given dimensions (all without dim). "
    "Integers and bool sum in int64, 16-bit floats in float32. Error: a dimension out of range or repeated.";
inline constexpr char mean[] =
    "mean(input, dim=None, keepdim=False, *, dtype=None): sum / count over the given dimensions. Error: an integer "
    "input.";
inline constexpr char cumsum[] =
    "cumsum(input, dim, *, dtype=None): the sums of the first 1, 2, ... elements along dim; of input's shape. "
    "Integers and bool sum in int64. Error: a dimension out of range, dtype bool.";
inline constexpr char cumsum_[] = "cumsum_(dim, *, dtype=None): cumsum in place.";
inline constexpr char cummax[] =
    "cummax(input, dim): a named tuple (values, indices) of the largest of the first 1, 2, ... elements along dim and "
    "of its index; the last of equals, NaN wins. Error: a dimension out of range, a complex dtype.";
inline constexpr char cummin[] =
    "cummin(input, dim): a named tuple (values, indices) of the smallest of the first 1, 2, ... elements along dim "
    "and of its index; the last of equals, NaN wins. Error: a dimension out of range, a complex dtype.";
inline constexpr char amax[] =
    "amax(input, dim=None, keepdim=False): the largest value; NaN wins. Error: nothing to reduce.";
inline constexpr char amin[] =
    "amin(input, dim=None, keepdim=False): the smallest value; NaN wins. Error: nothing to reduce.";
inline constexpr char any[] = "any(input, dim=None, keepdim=False): whether any element is non-zero; False for none.";
inline constexpr char all[] = "all(input, dim=None, keepdim=False): whether all elements are non-zero; True for none.";
inline constexpr char max[] =
    "max(input): the largest element. max(input, dim, keepdim=False): a named tuple (values, indices) of the largest "
    "along dim; the first of equals, NaN wins. max(input, other): elementwise, with broadcasting. Error: nothing to "
    "reduce, a complex dtype.";
inline constexpr char min[] =
    "min(input): the smallest element. min(input, dim, keepdim=False): a named tuple (values, indices) of the "
    "smallest along dim; the first of equals, NaN wins. min(input, other): elementwise, with broadcasting. Error: "
    "nothing to reduce, a complex dtype.";
inline constexpr char argmax[] =
    "argmax(input, dim=None, keepdim=False): index (int64) of the largest along dim, or in the flattened input.";
inline constexpr char argmin[] =
    "argmin(input, dim=None, keepdim=False): index (int64) of the smallest along dim, or in the flattened input.";
inline constexpr char _moments[] =
    "_moments(input, dim, keepdim): the tuple (sum(|x - mean|^2), mean) over dim; of 16-bit floats in float32.";
inline constexpr char _sum_of_squares[] =
    "_sum_of_squares(input, dim, keepdim): sum(x^2) over dim; of 16-bit floats in float32.";
inline constexpr char var[] =
    "var(dim=None, *, correction=1, keepdim=False): sum(|x - mean|^2) / (count - correction) over dim; var(dim, "
    "unbiased) takes True for correction 1, False for 0. Error: an integer input.";
inline constexpr char std[] = "std(dim=None, *, correction=1, keepdim=False): the square root of var.";
inline constexpr char norm[] =
    "norm(p='fro', dim=None, keepdim=False, dtype=None): sum(|x|^p)^(1/p) over dim (everything without); 'fro' is "
    "p=2, inf the largest |x|, -inf the smallest, 0 the count of what is not zero. Error: an integer input.";

inline constexpr char logsumexp[] =
    "logsumexp(input, dim, keepdim=False): log of the sum of exp(input) over dim, without overflow. Integers become "
    "float32.";
inline constexpr char var_mean[] =
    "var_mean(input, dim=None, *, correction=1, keepdim=False): the tuple (variance, mean); see var().";
inline constexpr char std_mean[] =
    "std_mean(input, dim=None, *, correction=1, keepdim=False): the tuple (standard deviation, mean); see std().";
inline constexpr char aminmax[] =
    "aminmax(input, *, dim=None, keepdim=False): a named tuple (min, max) of the smallest and largest values; NaN "
    "wins.";
inline constexpr char count_nonzero[] =
    "count_nonzero(input, dim=None): how many elements are not 0, over dim or all of them; int64.";
inline constexpr char nansum[] =
    "nansum(input, dim=None, keepdim=False, *, dtype=None): sum() in which NaN counts as 0.";
inline constexpr char nanmean[] =
    "nanmean(input, dim=None, keepdim=False, *, dtype=None): mean() of the elements that are not NaN.";
inline constexpr char diff[] =
    "diff(input, n=1, dim=-1, prepend=None, append=None): the differences of neighbours along dim, taken n times; "
    "prepend and append are put before and after input first. Of bools: whether neighbours differ.";
inline constexpr char prod[] =
    "prod(input, *, dtype=None): the product of all elements; prod(input, dim, keepdim=False, *, dtype=None): "
    "along dim. Integers and bool multiply in int64, 16-bit floats in float32. Error: a dimension out of range.";
inline constexpr char cumprod[] =
    "cumprod(input, dim, *, dtype=None): the products of the first 1, 2, ... elements along dim; of input's shape. "
    "Integers and bool multiply in int64. Error: a dimension out of range, dtype bool.";
inline constexpr char cumprod_[] = "cumprod_(dim, *, dtype=None): cumprod in place.";
inline constexpr char _logsumexp_backward[] =
    "_logsumexp_backward(grad, input, result, dim): gradient of logsumexp's input; grad and result have kept the "
    "reduced dimensions, with size 1.";
inline constexpr char _prod_backward[] =
    "_prod_backward(grad, input, result, dim): gradient of prod's input; grad and result have kept dim, with size 1.";
inline constexpr char _cumprod_backward[] = "_cumprod_backward(grad, input, result, dim): gradient of cumprod's input.";
inline constexpr char _logcumsumexp_backward[] =
    "_logcumsumexp_backward(grad, input, result, dim): gradient of logcumsumexp's input.";
inline constexpr char _reverse_cumsum[] =
    "_reverse_cumsum(dim): the sums of each element and all behind it along dim; of input's shape.";
inline constexpr char logcumsumexp[] =
    "logcumsumexp(input, dim): log(cumsum(e ** input)) along dim, without overflow; of input's shape. Error: a "
    "dimension out of range, an integer input.";
inline constexpr char _bin_counts[] =
    "_bin_counts(input, bins, min, max): how many elements lie in each of so many equal parts of [min, max].";
inline constexpr char histc[] =
    "histc(input, bins=100, min=0, max=0): how many elements lie in each of bins equal parts of [min, max], [bins] "
    "of input's dtype; min = max = 0 take the smallest and the largest element. Elements outside, and NaN, are not "
    "counted. Error: bins < 1, max < min, an integer input.";
inline constexpr char bincount[] =
    "bincount(input, weights=None, minlength=0): how often each of 0, 1, ... appears in integers [n], at least "
    "minlength results; with weights [n] their sums. Error: a negative element, other shapes.";
inline constexpr char trapezoid[] =
    "trapezoid(y, x=None, *, dx=1, dim=-1): the integral of y along dim by the trapezoidal rule, between places x, "
    "of y's shape or [n], or a step dx apart.";
inline constexpr char trapz[] = "trapz(y, x=None, *, dx=1, dim=-1): trapezoid.";
inline constexpr char cumulative_trapezoid[] =
    "cumulative_trapezoid(y, x=None, *, dx=1, dim=-1): the integrals of trapezoid() up to each place along dim but "
    "the first.";

}  // namespace vesta::doc
