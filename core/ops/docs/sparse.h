// Docs of the topic sparse: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char _sparse_coo[] =
    "_sparse_coo(indices, values, size, is_coalesced): the sparse tensor of `values` [nnz, *] at the places `indices` "
    "[s, nnz], which are not checked.";
inline constexpr char _sparse_values[] = "_sparse_values(input): the stored values, with a gradient.";
inline constexpr char _sparse_compressed[] =
    "_sparse_compressed(compressed, plain, values, size, by_rows): the matrix [n, m, *] of `values` [nnz, *], "
    "compressed by rows (CSR) or by columns (CSC). Error: indices of another form.";
inline constexpr char _compress[] = "_compress(input, by_rows): a matrix in CSR, or in CSC.";
inline constexpr char _compressed_part[] =
    "_compressed_part(input, by_rows, plain): the indices of a compressed matrix: where rows begin, or the columns.";
inline constexpr char _csr_product[] =
    "_csr_product(crow, col, values, dense): the product [n, k] of a CSR matrix [n, m] and a dense one [m, k].";
inline constexpr char _sparse_numbers[] =
    "_sparse_numbers(indices, size): the number of each place of `indices` [s, nnz] in row-major order: [nnz].";
inline constexpr char _sparse_places[] = "_sparse_places(numbers, size): the inverse of _sparse_numbers: [s, nnz].";
inline constexpr char _sparse_order[] =
    "_sparse_order(indices, size): (places, order, starts) of m places in lexicographic order: [s, m], which elements "
    "they have, place by place [nnz], and where those of each place begin, and the last ones end [m + 1].";
inline constexpr char _sum_runs[] =
    "_sum_runs(values, order, starts): the sums [m, *] of values[order[starts[i]]] to values[order[starts[i + 1] - "
    "1]], "
    "in that order.";
inline constexpr char crow_indices[] = "crow_indices(): where each row of a CSR matrix begins, and the last one ends.";
inline constexpr char col_indices[] = "col_indices(): the column of each element of a CSR matrix.";
inline constexpr char ccol_indices[] =
    "ccol_indices(): where each column of a CSC matrix begins, and the last one ends.";
inline constexpr char row_indices[] = "row_indices(): the row of each element of a CSC matrix.";
inline constexpr char _indices[] = "_indices(): the indices [s, nnz] of a sparse tensor as they are stored.";
inline constexpr char _values[] = "_values(): the values [nnz, *] of a sparse tensor as they are stored, no copy.";
inline constexpr char indices[] =
    "indices(): the indices [s, nnz] of a coalesced sparse tensor. Error: not coalesced, or dense.";
inline constexpr char values[] =
    "values(): the values [nnz, *] of a coalesced sparse tensor. Error: not coalesced, or dense.";
inline constexpr char _unique_indices[] = "_unique_indices(input): Tensor.indices().";
inline constexpr char _unique_values[] = "_unique_values(input): Tensor.values().";
inline constexpr char coalesce[] =
    "coalesce(): the sparse tensor with every place once, in lexicographic order; values of equal places are added.";
inline constexpr char to_dense[] =
    "to_dense(dtype=None, *, masked_grad=None): the tensor with all of its elements in memory. Gradients reach the "
    "stored "
    "places only, whatever masked_grad says.";
inline constexpr char to_sparse[] =
    "to_sparse(sparse_dim=None): the nonzero elements as a sparse tensor; of its first `sparse_dim` dimensions (all).";
inline constexpr char sparse_mask[] =
    "sparse_mask(mask): the elements of a tensor at the places of the sparse tensor `mask`, as a sparse tensor.";
inline constexpr char _sparse_sum[] = "_sparse_sum(input, dim): the sum over some dimensions, sparse if any is left.";

}  // namespace vesta::doc
