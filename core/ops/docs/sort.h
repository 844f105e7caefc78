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

inline constexpr char topk[] =
    "topk(input, k, dim=-1, largest=True, sorted=True): a named tuple (values, indices) of the k largest, or smallest, "
    "elements along dim, in order. NaN counts as the largest value. Error: k beyond the size of dim.";
inline constexpr char kthvalue[] =
    "kthvalue(input, k, dim=-1, keepdim=False): a named tuple (values, indices) of the k-th smallest element along "
    "dim, "
    "k from 1.";
inline constexpr char median[] =
    "median(input) or median(input, dim, keepdim=False): the middle value, the lower one of two; with dim a named "
    "tuple "
    "(values, indices). NaN if there is one.";
inline constexpr char nanquantile[] =
    "nanquantile(input, q, dim=None, keepdim=False, *, interpolation='linear'): quantile of the numbers that are not "
    "NaN; NaN where there is none.";
inline constexpr char quantile[] =
    "quantile(input, q, dim=None, keepdim=False, *, interpolation='linear'): the value below which the part q of the "
    "elements along dim, or of all, lies; q in [0, 1], a number or a 0-d or 1-d tensor, whose values form a new first "
    "dimension. Between two elements: 'linear', 'lower', 'higher', 'midpoint' or 'nearest'. NaN if there is one. "
    "float32 "
    "and float64.";
inline constexpr char nanmedian[] =
    "nanmedian(input): the median of all elements but NaN. nanmedian(input, dim, keepdim=False): a named tuple "
    "(values, indices) along dim. NaN where there is nothing else.";
inline constexpr char mode[] =
    "mode(input, dim=-1, keepdim=False): a named tuple (values, indices) of the most frequent element along dim, "
    "the smallest of several, and of the index of its last appearance. Error: a complex dtype, nothing to search.";
inline constexpr char _places_by_rank[] =
    "_places_by_rank(first, count, dim, largest): the indices of the elements that a stable sort along dim puts at "
    "first, first + 1, ...";
inline constexpr char _searchsorted[] =
    "_searchsorted(sorted_sequence, values, right): the places of contiguous values in sorted lines of the same "
    "dtype.";
inline constexpr char searchsorted[] =
    "searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None): for each value "
    "of input [*, m] the place in the sorted lines [*, n] (or one line [n] for all) at which it could be inserted: "
    "the first whose element is >= the value, > it with right=True or side='right'. sorter [*, n] sorts the lines "
    "first. int64, or int32. Error: shapes that do not fit, side against right.";
inline constexpr char bucketize[] =
    "bucketize(input, boundaries, *, out_int32=False, right=False): for each value of input the number of "
    "boundaries [n], which ascend, that are < it; <= it with right=True. int64, or int32.";

}  // namespace vesta::doc
