// Docs of the composites of core: plain functions of other ops, defined in composite.cpp. Those of nn are in nn.h.
#pragma once

namespace vesta::doc {

inline constexpr char div[] =
    "div(other, rounding_mode=None): the quotient; None divides in floating point, 'floor' and 'trunc' round to an "
    "integer value and keep integer dtypes.";
inline constexpr char clamp[] =
    "clamp(min=None, max=None): values below min become min, above max become max; at least one bound is needed.";
inline constexpr char gelu[] =
    "gelu(approximate='none'): x times the normal distribution function of x; 'tanh' takes the approximation by tanh.";
inline constexpr char reshape[] = "reshape(*shape): a view where strides allow it, else a copy; one size may be -1.";
inline constexpr char flatten[] =
    "flatten(start_dim=0, end_dim=-1): joins the dimensions from start_dim to end_dim into one.";
inline constexpr char t[] = "t(): the transpose of a tensor of at most two dimensions.";
inline constexpr char mT[] = "mT: swaps the last two dimensions.";
inline constexpr char narrow[] =
    "narrow(dim, start, length): elements start to start + length - 1 of dimension dim, a view.";
inline constexpr char unbind[] = "unbind(dim=0): the slices along dim, as views with dim removed.";
inline constexpr char split[] =
    "split(split_size, dim=0): views of pieces of that size along dim (the last may be smaller), or of the sizes "
    "listed, "
    "which must sum to the size of dim.";
inline constexpr char chunk[] =
    "chunk(chunks, dim=0): at most that many views of equal size along dim; the last may be smaller.";
inline constexpr char conj[] = "conj(): the complex conjugate; a real tensor itself.";
inline constexpr char var[] =
    "var(dim=None, *, correction=1, keepdim=False): sum(|x - mean|^2) / (count - correction) over dim; "
    "var(dim, unbiased) takes True for correction 1, False for 0. Error: an integer input.";
inline constexpr char std[] = "std(dim=None, *, correction=1, keepdim=False): the square root of var.";
inline constexpr char norm[] =
    "norm(p='fro', dim=None, keepdim=False, dtype=None): sum(|x|^p)^(1/p) over dim (everything without); 'fro' is p=2, "
    "inf the largest |x|, -inf the smallest, 0 the count of what is not zero. Error: an integer input.";
inline constexpr char masked_fill[] =
    "masked_fill(mask, value): value (0-d) where the bool mask, which broadcasts, is True.";
inline constexpr char masked_fill_[] = "masked_fill_(mask, value): masked_fill in place.";
inline constexpr char masked_select[] =
    "masked_select(mask): 1-d, the elements where mask is True; tensor and mask broadcast against each other.";
inline constexpr char index_add[] = "index_add(dim, index, source, alpha=1): index_add_ on a copy.";
inline constexpr char index_put[] = "index_put(indices, values, accumulate=False): index_put_ on a copy.";
inline constexpr char scatter_add[] = "scatter_add(dim, index, src): scatter_add_ on a copy.";
inline constexpr char stack[] = "stack(tensors, dim=0): joins tensors of one shape along a new dimension.";
inline constexpr char sum_to_size[] = "sum_to_size(*size): sums over the dimensions that were broadcast from size.";

}  // namespace vesta::doc
