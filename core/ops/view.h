// View ops: new geometry over the same memory. One function serves all devices.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

namespace doc {
inline constexpr char view[] =
    "view(*shape): the same memory in another shape; one size may be -1. Raises where the strides do not allow it: "
    "use reshape() then.";
inline constexpr char permute[] = "permute(*dims): reorders the dimensions; each must be named once.";
inline constexpr char transpose[] = "transpose(dim0, dim1): swaps two dimensions.";
inline constexpr char expand[] =
    "expand(*sizes): repeats dimensions of size 1 without copying; -1 keeps a size, new dimensions go in front. "
    "Elements share memory: clone() before writing.";
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
}  // namespace doc

/// Returns how many elements a slice of a dimension of `size` has and clamps its bounds, as Python does.
struct SliceBounds {
  int64_t start, end, length;
};
VESTA_API SliceBounds slice_bounds(int64_t size, MaybeInt start, MaybeInt end, int64_t step, const char* op);

}  // namespace vesta
