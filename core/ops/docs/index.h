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
inline constexpr char argwhere[] = "argwhere(input): the indices of the nonzero elements, a row each: nonzero(input).";
inline constexpr char masked_fill[] =
    "masked_fill(mask, value): value (0-d) where the bool mask, which broadcasts, is True.";
inline constexpr char masked_select[] =
    "masked_select(mask): 1-d, the elements where mask is True; tensor and mask broadcast against each other.";
inline constexpr char cat[] =
    "cat(tensors, dim=0): joins tensors along dim; all other sizes must agree, dtypes are promoted. Empty 1-d "
    "tensors are skipped.";
inline constexpr char stack[] = "stack(tensors, dim=0): joins tensors of one shape along a new dimension.";
inline constexpr char embedding[] =
    "embedding(weight, indices, padding_idx=-1): rows of weight [rows, columns] at int64 or int32 indices of any "
    "shape; the result is [*indices.shape, columns]. IndexError out of [0, rows).";
inline constexpr char scatter[] =
    "scatter(input, dim, index, src or value): a copy with src[i] in place index[i] along dim; the last of equal "
    "places wins on the CPU. With reduce='add' or 'multiply' src is combined with what is there. index may be "
    "smaller than input in other dimensions, src larger than index. Error: an index out of range, other dtypes.";
inline constexpr char scatter_[] = "scatter_(dim, index, src or value, *, reduce): scatter in place.";
inline constexpr char _scatter_combine_[] =
    "_scatter_combine_(dim, index, src, reduce): multiplies places by src, or takes the larger or smaller ('prod', "
    "'amax', 'amin').";
inline constexpr char _scatter_reduce[] =
    "_scatter_reduce(dim, index, src, reduce, include_self): scatter_reduce for 'prod', 'amax' and 'amin'.";
inline constexpr char scatter_reduce[] =
    "scatter_reduce(input, dim, index, src, reduce, *, include_self=True): a copy in which place index[i] along "
    "dim combines all src[i] that go there, and what was there if include_self; reduce is 'sum', 'prod', 'mean', "
    "'amax' or 'amin'. Error: an index out of range, other dtypes.";
inline constexpr char scatter_reduce_[] =
    "scatter_reduce_(dim, index, src, reduce, *, include_self=True): scatter_reduce in place.";
inline constexpr char index_copy[] =
    "index_copy(input, dim, index, source): a copy with the slices of source along dim in places index [n]. Error: "
    "shapes that do not fit, an index out of range.";
inline constexpr char index_copy_[] = "index_copy_(dim, index, source): index_copy in place.";
inline constexpr char index_reduce[] =
    "index_reduce(input, dim, index, source, reduce, *, include_self=True): a copy in which slice index[i] along "
    "dim combines all slices i of source that go there, and what was there if include_self; reduce is 'prod', "
    "'mean', 'amax' or 'amin'.";
inline constexpr char index_reduce_[] =
    "index_reduce_(dim, index, source, reduce, *, include_self=True): index_reduce in place.";
inline constexpr char segment_reduce[] =
    "segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None): "
    "data reduced in segments along axis; reduce is 'sum', 'mean', 'max', 'min' or 'prod'. Segments have the lengths, "
    "or lie between the offsets; both may have data's dimensions before axis, for segments of their own. initial takes "
    "part in each. Error: lengths that do not sum to data's size along axis, unless unsafe; indices.";
inline constexpr char take[] =
    "take(input, index): the elements of input, seen as one line, at index; of index's shape. Error: an index out "
    "of range.";
inline constexpr char take_along_dim[] =
    "take_along_dim(input, indices, dim=None): gather along dim with broadcasting; without dim input and indices "
    "are one line each.";
inline constexpr char put[] =
    "put(input, index, source, accumulate=False): a copy with the elements of source in places index of input, "
    "seen as one line; accumulate adds. Error: an index out of range, other numbers of elements.";
inline constexpr char put_[] = "put_(index, source, accumulate=False): put in place.";
inline constexpr char masked_scatter[] =
    "masked_scatter(input, mask, source): a copy with the first elements of source in the places where the bool "
    "mask, broadcast to input, is true. Error: too few elements in source, another dtype.";
inline constexpr char masked_scatter_[] = "masked_scatter_(mask, source): masked_scatter in place.";
inline constexpr char as_strided_scatter[] =
    "as_strided_scatter(input, src, size, stride, storage_offset=None): a copy with src in the place of "
    "as_strided(size, stride, storage_offset). Error: another shape than that part's.";
inline constexpr char select_scatter[] =
    "select_scatter(input, src, dim, index): a copy with src in the place of select(dim, index). Error: another "
    "shape.";
inline constexpr char slice_scatter[] =
    "slice_scatter(input, src, dim=0, start=None, end=None, step=1): a copy with src in the place of "
    "input[start:end:step] along dim. Error: another shape.";
inline constexpr char diagonal_scatter[] =
    "diagonal_scatter(input, src, offset=0, dim1=0, dim2=1): a copy with src in the place of diagonal(offset, "
    "dim1, dim2). Error: another shape.";
inline constexpr char one_hot[] =
    "one_hot(input, num_classes=-1): int64 tensor [*, num_classes] of int64 classes [*]: 1 at the class, 0 "
    "elsewhere; -1 takes the largest class and one. Error: a class out of range, another dtype.";

}  // namespace vesta::doc
