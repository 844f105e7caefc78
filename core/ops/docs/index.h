// Docs of the topic index: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char _index[] =
    "_index(indices): advanced indexing, x[i, j, ...]: one integer or mask tensor (or None) per dimension; they "
    "broadcast together. Their dimensions replace the indexed ones, in front where those are not adjacent.";
inline constexpr char index_put_[] =
    "index_put_(indices, values, accumulate=False): x[indices] = values, or += where accumulate is True (in order of "
    "the indices). values must have the tensor's dtype and broadcast. Of equal places the last one wins.";
inline constexpr char index_put[] = "index_put(indices, values, accumulate=False): index_put_ on a copy.";
inline constexpr char index_select[] =
    "index_select(dim, index): the slices of dim at a 1-d int64 or int32 index, in [0, size). IndexError otherwise.";
inline constexpr char index_add_[] =
    "index_add_(dim, index, source, alpha=1): adds alpha * source's slices to those of the tensor at index, in order.";
inline constexpr char index_add[] = "index_add(dim, index, source, alpha=1): index_add_ on a copy.";
inline constexpr char index_fill_[] =
    "index_fill_(dim, index, value): sets the slices of dim at a 1-d int64 or int32 index to value, a number or a 0-d "
    "tensor; negative indices count from the end. IndexError out of range.";
inline constexpr char index_fill[] = "index_fill(dim, index, value): index_fill_ on a copy.";
inline constexpr char flip[] = "flip(*dims): a copy with the order of the elements turned round along each of dims.";
inline constexpr char gather[] =
    "gather(dim, index): result[i][j] = input[index[i][j]][j] for dim 0, and so on; the result has index's shape.";
inline constexpr char scatter_add_[] =
    "scatter_add_(dim, index, src): self[index[i][j]][j] += src[i][j] for dim 0, and so on; in order along dim.";
inline constexpr char scatter_add[] = "scatter_add(dim, index, src): scatter_add_ on a copy.";
inline constexpr char nonzero[] =
    "nonzero(): int64 [count, ndim], the indices of the elements that are not zero, in order.";
inline constexpr char masked_fill[] =
    "masked_fill(mask, value): value (0-d) where the bool mask, which broadcasts, is True.";
inline constexpr char masked_fill_[] = "masked_fill_(mask, value): masked_fill in place.";
inline constexpr char masked_select[] =
    "masked_select(mask): 1-d, the elements where mask is True; tensor and mask broadcast against each other.";
inline constexpr char cat[] =
    "cat(tensors, dim=0): joins tensors along dim; all other sizes must agree, dtypes are promoted. Empty 1-d "
    "tensors are skipped.";
inline constexpr char stack[] = "stack(tensors, dim=0): joins tensors of one shape along a new dimension.";
inline constexpr char embedding[] =
    "embedding(weight, indices, padding_idx=-1): rows of weight [rows, columns] at int64 or int32 indices of any "
    "shape; the result is [*indices.shape, columns]. IndexError out of [0, rows).";

}  // namespace vesta::doc
