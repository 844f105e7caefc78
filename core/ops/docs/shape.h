// Docs of the topic shape: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char repeat[] =
    "repeat(*repeats): a copy that repeats the tensor repeats[d] times along each dimension d; more repeats than "
    "dimensions add dimensions in front. RuntimeError: fewer repeats than dimensions, or a negative one.";
inline constexpr char tile[] = "tile(*dims): repeat(), where missing numbers in front are 1.";
inline constexpr char repeat_interleave[] =
    "repeat_interleave(input, repeats, dim=None, *, output_size=None): each element repeats times in a row along dim, "
    "or of the flattened tensor. repeats is a number, or an int tensor of one number or one for each element of dim. "
    "repeat_interleave(repeats) returns the indices alone.";
inline constexpr char roll[] =
    "roll(shifts, dims=None): the elements moved by shifts along dims, those past the end to the front; of the "
    "flattened tensor without dims.";
inline constexpr char rot90[] =
    "rot90(k=1, dims=(0, 1)): turned k times by 90 degrees, from the first of dims to the second.";
inline constexpr char fliplr[] = "fliplr(input): the order of the columns (dimension 1) turned round; a copy.";
inline constexpr char flipud[] = "flipud(input): the order of the rows (dimension 0) turned round; a copy.";
inline constexpr char movedim[] =
    "movedim(source, destination): a view with dimensions moved to other places; the others keep their order.";
inline constexpr char unflatten[] =
    "unflatten(dim, sizes): a view with one dimension split into several; one of sizes may be -1.";
inline constexpr char unfold[] =
    "unfold(dimension, size, step): a view of all slices of `size` elements along a dimension, `step` apart; the "
    "elements of a slice form a new last dimension.";
inline constexpr char broadcast_to[] = "broadcast_to(input, size): expand(size).";
inline constexpr char adjoint[] = "adjoint(input): the last two dimensions swapped, conjugated where complex.";
inline constexpr char tril[] =
    "tril(input, diagonal=0): the elements on and below a diagonal of the last two dimensions, zeros above; "
    "diagonal > 0 lies above the main one.";
inline constexpr char triu[] =
    "triu(input, diagonal=0): the elements on and above a diagonal of the last two dimensions, zeros below; "
    "diagonal > 0 lies above the main one.";
inline constexpr char tril_[] = "tril_(diagonal=0): tril in place.";
inline constexpr char triu_[] = "triu_(diagonal=0): triu in place.";
inline constexpr char diag[] =
    "diag(input, diagonal=0): the matrix with a vector on its diagonal, or a copy of a matrix's diagonal.";
inline constexpr char diag_embed[] =
    "diag_embed(input, offset=0, dim1=-2, dim2=-1): matrices of dim1 and dim2 with the last dimension of input on "
    "their diagonal, zeros elsewhere.";
inline constexpr char diagflat[] = "diagflat(input, offset=0): the matrix with the flattened input on its diagonal.";
inline constexpr char fill_diagonal_[] =
    "fill_diagonal_(fill_value, wrap=False): writes the main diagonal of a tensor of at least 2 dimensions, all of "
    "equal length if there are more; with wrap that of a tall matrix begins anew below the square part, one row "
    "left out.";
inline constexpr char trace[] = "trace(input): the sum of a matrix's diagonal; of integers in int64.";
inline constexpr char tril_indices[] =
    "tril_indices(row, col, offset=0): the indices [2, n] of the lower triangle of a row x col matrix, row by row; "
    "int64 unless dtype is given.";
inline constexpr char triu_indices[] =
    "triu_indices(row, col, offset=0): the indices [2, n] of the upper triangle of a row x col matrix, row by row; "
    "int64 unless dtype is given.";
inline constexpr char tensor_split[] =
    "tensor_split(indices_or_sections, dim=0): views of a dimension, split before each index, or into so many parts of "
    "sizes that differ by one at most, the larger ones first.";
inline constexpr char hsplit[] = "hsplit(indices_or_sections): tensor_split along dimension 1, or 0 of a vector.";
inline constexpr char vsplit[] = "vsplit(indices_or_sections): tensor_split along dimension 0.";
inline constexpr char dsplit[] = "dsplit(indices_or_sections): tensor_split along dimension 2.";
inline constexpr char hstack[] = "hstack(tensors): cat along dimension 1, or 0 of vectors; numbers become vectors.";
inline constexpr char vstack[] = "vstack(tensors): cat along dimension 0; vectors become rows.";
inline constexpr char dstack[] = "dstack(tensors): cat along dimension 2; matrices get a third dimension.";
inline constexpr char column_stack[] = "column_stack(tensors): cat along dimension 1; vectors become columns.";

}  // namespace vesta::doc
