// Docs of the topic view: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char view[] =
    "view(*shape): the same memory in another shape; one size may be -1. Raises where the strides do not allow it: "
    "use reshape() then. view(dtype): the same bytes as elements of another dtype; elements of another size change the "
    "last dimension, whose stride must be 1.";
inline constexpr char permute[] = "permute(*dims): reorders the dimensions; each must be named once.";
inline constexpr char transpose[] = "transpose(dim0, dim1): swaps two dimensions.";
inline constexpr char expand[] =
    "expand(*sizes): repeats dimensions of size 1 without copying; -1 keeps a size, new dimensions go in front. "
    "Elements share memory: clone() before writing.";
inline constexpr char _squeeze[] =
    "squeeze(dim=None): removes all dimensions of size 1, or those of the given dimensions that have size 1.";
inline constexpr char squeeze[] =
    "squeeze(dim=None): removes all dimensions of size 1, or those of the given dimensions that have size 1.";
inline constexpr char unsqueeze[] = "unsqueeze(dim): inserts a dimension of size 1 at dim, in [-ndim - 1, ndim].";
inline constexpr char select[] =
    "select(dim, index): the slice at one index, with dimension dim removed. IndexError out of [-size, size).";
inline constexpr char slice[] =
    "slice(dim=0, start=None, end=None, step=1): elements start, start + step, ... before end; bounds are clamped as "
    "Python does, step must be positive.";
inline constexpr char diagonal[] =
    "diagonal(offset=0, dim1=0, dim2=1): the diagonal of two dimensions as a new last one; offset > 0 lies above.";
inline constexpr char as_strided[] =
    "as_strided(size, stride, storage_offset=None): any geometry, in elements, over the tensor's memory; must lie in "
    "it.";
inline constexpr char reshape[] = "reshape(*shape): a view where strides allow it, else a copy; one size may be -1.";
inline constexpr char flatten[] =
    "flatten(start_dim=0, end_dim=-1): joins the dimensions from start_dim to end_dim into one.";
inline constexpr char ravel[] =
    "ravel(): all elements in one dimension, row by row; the tensor itself or a view where it is contiguous, else a "
    "copy.";
inline constexpr char view_as[] = "view_as(other): view(other.size()).";
inline constexpr char expand_as[] = "expand_as(other): expand(other.size()).";
inline constexpr char reshape_as[] = "reshape_as(other): reshape(other.size()).";
inline constexpr char t[] = "t(): the transpose of a tensor of at most two dimensions.";
inline constexpr char mT[] = "mT: swaps the last two dimensions.";
inline constexpr char narrow[] =
    "narrow(dim, start, length): elements start to start + length - 1 of dimension dim, a view.";
inline constexpr char unbind[] = "unbind(dim=0): the slices along dim, as views with dim removed.";
inline constexpr char split[] =
    "split(split_size, dim=0): views of pieces of that size along dim (the last may be smaller), or of the sizes "
    "listed, which must sum to the size of dim.";
inline constexpr char split_with_sizes[] =
    "split_with_sizes(split_sizes, dim=0): views of pieces of these sizes along dim, which they must sum to.";
inline constexpr char unsafe_chunk[] = "unsafe_chunk(input, chunks, dim=0): chunk(input, chunks, dim).";
inline constexpr char unsafe_split[] = "unsafe_split(input, split_size, dim=0): split(input, split_size, dim).";
inline constexpr char unsafe_split_with_sizes[] =
    "unsafe_split_with_sizes(input, split_sizes, dim=0): split(input, split_sizes, dim).";
inline constexpr char chunk[] =
    "chunk(chunks, dim=0): at most that many views of equal size along dim; the last may be smaller.";
inline constexpr char sum_to_size[] = "sum_to_size(*size): sums over the dimensions that were broadcast from size.";
inline constexpr char view_as_real[] =
    "view_as_real(input): a complex tensor of shape [*] as a real one of shape [*, 2] over the same memory.";
inline constexpr char view_as_complex[] =
    "view_as_complex(input): a real tensor of shape [*, 2], float32 or float64, as a complex one of shape [*] over "
    "the same memory. Error: a last dimension of another size or stride than 2 and 1, other strides that are odd.";
inline constexpr char real[] = "real(input): the real part of a complex tensor, a view; a real tensor itself.";
inline constexpr char unsqueeze_[] = "unsqueeze_(dim): unsqueeze(dim) in place: changes the tensor's geometry.";
inline constexpr char _squeeze_[] = "squeeze_(dim=None): squeeze(dim) in place: changes the tensor's geometry.";
inline constexpr char squeeze_[] = "squeeze_(dim=None): squeeze(dim) in place: changes the tensor's geometry.";
inline constexpr char transpose_[] = "transpose_(dim0, dim1): transpose(dim0, dim1) in place: changes the geometry.";
inline constexpr char swapaxes_[] = "swapaxes_(axis0, axis1): transpose_(axis0, axis1).";
inline constexpr char t_[] = "t_(): t() in place: changes the tensor's geometry. Error: more than 2 dimensions.";
inline constexpr char as_strided_[] =
    "as_strided_(size, stride, storage_offset=None): as_strided(...) in place: changes the tensor's geometry.";
inline constexpr char resize_[] =
    "resize_(*size): gives the tensor these sizes, contiguous, over the same memory, which grows if it is too small; "
    "new elements are uninitialised. Error: a tensor that requires grad, memory that is borrowed.";
inline constexpr char resize_as_[] = "resize_as_(the_template): resize_(the_template.size()).";
inline constexpr char imag[] = "imag(input): the imaginary part of a complex tensor, a view. Error: a real tensor.";

}  // namespace vesta::doc
