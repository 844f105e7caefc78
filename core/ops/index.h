// Ops that read or write at places given by other tensors, and cat. Geometry and checks here; devices move the rows.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

namespace doc {
inline constexpr char index_tensors[] =
    "index_tensors(indices): advanced indexing, x[i, j, ...]: one integer or mask tensor (or None) per dimension; they "
    "broadcast together. Their dimensions replace the indexed ones, in front where those are not adjacent.";
inline constexpr char index_put_[] =
    "index_put_(indices, values, accumulate=False): x[indices] = values, or += where accumulate is True (in order of "
    "the indices). values must have the tensor's dtype and broadcast. Of equal places the last one wins.";
inline constexpr char index_select[] =
    "index_select(dim, index): the slices of dim at a 1-d int64 or int32 index, in [0, size). IndexError otherwise.";
inline constexpr char index_add_[] =
    "index_add_(dim, index, source, alpha=1): adds alpha * source's slices to those of the tensor at index, in order.";
inline constexpr char flip[] = "flip(*dims): a copy with the order of the elements turned round along each of dims.";
inline constexpr char gather[] =
    "gather(dim, index): result[i][j] = input[index[i][j]][j] for dim 0, and so on; the result has index's shape.";
inline constexpr char scatter_add_[] =
    "scatter_add_(dim, index, src): self[index[i][j]][j] += src[i][j] for dim 0, and so on; in order along dim.";
inline constexpr char nonzero[] =
    "nonzero(): int64 [count, ndim], the indices of the elements that are not zero, in order.";
inline constexpr char cat[] =
    "cat(tensors, dim=0): joins tensors along dim; all other sizes must agree, dtypes are promoted. Empty 1-d tensors "
    "are skipped.";
inline constexpr char embedding[] =
    "embedding(weight, indices, padding_idx=-1): rows of weight [rows, columns] at int64 or int32 indices of any "
    "shape; "
    "the result is [*indices.shape, columns]. IndexError out of [0, rows).";
}  // namespace doc

/// Is advanced indexing after masks have become indices and all of them one shape.
struct IndexPlan {
  Dims dims;             // the indexed dimensions, ascending
  TensorVector indices;  // int64, contiguous, all of index_sizes; one per indexed dimension
  Dims index_sizes;
  int64_t place = 0;     // how many unindexed dimensions of the input stand before the indices' in the result
  Dims result_sizes;
};
/// Settles x[indices]: expands masks, converts to int64, broadcasts. IndexError where shapes or dtypes do not fit.
VESTA_API IndexPlan index_plan(const Tensor& input, TensorList indices, const char* op);

/// Returns `index` as a contiguous int64 tensor; raises on any dtype but int64 and int32.
VESTA_API Tensor index_as_int64(const Tensor& index, const char* op, const char* argument);

/// Checks index_select (and index_add_): a vector of integers, a dimension in range; returns the dimension.
VESTA_API int64_t check_index_vector(const Tensor& input, int64_t dim, const Tensor& index, const char* op);
/// Checks index_add_'s source against the tensor and the index.
VESTA_API void check_index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source);
/// Checks gather and returns the dimension.
VESTA_API int64_t check_gather(const Tensor& input, int64_t dim, const Tensor& index);
/// Checks scatter_add_ and returns the dimension.
VESTA_API int64_t check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
/// Checks index_put_'s values; they are returned expanded to the plan's result.
VESTA_API Tensor check_put_values(const Tensor& self, const IndexPlan& plan, const Tensor& values);
/// Tells whether the indices' dimensions of a tensor of the plan's result shape step like one.
VESTA_API bool steps_regularly(const Tensor& result, const IndexPlan& plan);

/// Is cat after its checks.
struct CatPlan {
  int64_t dim = 0;
  DType dtype = DType::float32;
  Dims sizes;
  SmallVector<int32_t, 8> used;  // numbers of the tensors that have a part in the result
};
/// Checks cat's tensors and settles the result's dtype and shape.
VESTA_API CatPlan cat_plan(TensorList tensors, int64_t dim);

}  // namespace vesta
