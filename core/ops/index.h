// Ops that read or write at indices given by other tensors, and cat. Geometry and checks here; devices move the rows.
#pragma once
#include <vesta/core/ops/generate.h>
#include <vesta/core/ops/lists/index.h>

namespace vesta {

/// Returns nonzero(input), or its columns as a tuple: what nonzero(as_tuple=...) gives.
VESTA_API TensorOrTensors _nonzero(const Tensor& input, bool as_tuple);

VESTA_DECLARE_TOPIC(VESTA_OPS_INDEX)

/// Advanced indexing after masks have become indices and all of them one shape.
struct IndexPlan {
  Dims dims;             // the indexed dimensions, ascending
  TensorVector indices;  // int64, contiguous, all of index_sizes; one per indexed dimension
  Dims index_sizes;
  int64_t place = 0;     // the position in the result's sizes at which index_sizes begin
  Dims result_sizes;
};
/// Plans x[indices]: expands masks, converts to int64, broadcasts. IndexError if shapes or dtypes do not fit.
VESTA_API IndexPlan index_plan(const Tensor& input, TensorList indices, const char* op);

/// Returns `index` as a contiguous int64 tensor; raises on any dtype but int64 and int32.
VESTA_API Tensor index_as_int64(const Tensor& index, const char* op, const char* argument);

/// Checks index_select (and index_add_): a vector of integers, a dimension in range; returns the dimension.
VESTA_API int64_t check_index_vector(const Tensor& input, int64_t dim, const Tensor& index, const char* op);
/// Checks index_add_'s source against the tensor and the index, and its factor, whose fraction integers cut off.
VESTA_API void check_index_add(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                               double& alpha);
/// A call of index_fill_ after its checks.
struct FillPlan {
  Tensor self;  // of one dimension at least
  IndexPlan places;
  Tensor value;  // of self's dtype, expanded to the plan's result
};
/// Checks index_fill_ and brings the value, which may lie on any device, to self's.
VESTA_API FillPlan fill_plan(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value);
/// Checks gather and returns the dimension.
VESTA_API int64_t check_gather(const Tensor& input, int64_t dim, const Tensor& index);
/// A scatter after its checks: the dimension, and src of self's dtype, of index's shape where it was a number.
struct ScatterPlan {
  int64_t dim;
  Tensor src;
};
VESTA_API ScatterPlan scatter_plan(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src,
                                   const char* op);
/// The way in which a scatter combines an element with the value that goes there.
enum class ScatterOp : uint8_t { product, larger, smaller };
/// Reads scatter_reduce's string: 'prod', 'amax' or 'amin'.
VESTA_API ScatterOp scatter_op(Text reduce);

/// Writes the initial values of a scatter_reduce without self to the elements that it reduces into: 0, 1, or one of the
/// values that are scattered there.
VESTA_API void start_places(const Tensor& r, int64_t dim, const Tensor& index, const Tensor& src, Text reduce);

/// Checks scatter_add_ and returns the dimension.
VESTA_API int64_t check_scatter(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& src);
/// Checks index_put_'s values; they are returned expanded to the plan's result.
VESTA_API Tensor check_put_values(const Tensor& self, const IndexPlan& plan, const Tensor& values);
/// Returns whether the index dimensions of a tensor of the plan's result shape have the strides of one dimension.
VESTA_API bool steps_regularly(const Tensor& result, const IndexPlan& plan);

/// A call of cat after its checks.
struct CatPlan {
  int64_t dim = 0;
  DType dtype = DType::float32;
  Dims sizes;
  SmallVector<int32_t, 8> used;  // numbers of the tensors that have a part in the result
  bool channels_last = false;  // the result's layout
};
/// Checks cat's tensors and determines the result's dtype and shape.
VESTA_API CatPlan cat_plan(TensorList tensors, int64_t dim);
/// Copies the tensors of a cat, each to its part of the result, one after the other: of any strides and dtypes.
VESTA_API void copy_parts(const Tensor& result, const CatPlan& plan, TensorList tensors);
/// Allocates the result of flip: with the input's strides if the input is dense, else contiguous.
VESTA_API Tensor flip_result(const Tensor& input);

}  // namespace vesta
