// Docs of the topic factory: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char empty[] = "empty(*size, dtype=None, device=None): uninitialised memory of that shape.";
inline constexpr char full[] =
    "full(size, fill_value, dtype=None, device=None): every element fill_value; the dtype follows the value: bool, "
    "int64, the default floating type or its complex type.";
inline constexpr char arange[] =
    "arange(end) or arange(start, end, step=1, *, dtype=None, device=None): start, start + step, ... before end; "
    "int64 for integers, else the default floating type. ceil((end - start) / step) elements.";
inline constexpr char linspace[] =
    "linspace(start, end, steps, dtype=None, device=None): steps evenly spaced values from start to end, both "
    "included.";
inline constexpr char eye[] =
    "eye(n, m=n, dtype=None, device=None): [n, m] with ones on the diagonal, zeros elsewhere.";
inline constexpr char zeros[] = "zeros(*size, dtype=None, device=None): every element 0.";
inline constexpr char ones[] = "ones(*size, dtype=None, device=None): every element 1.";
inline constexpr char empty_like[] =
    "empty_like(input, dtype=None, device=None): uninitialised, of input's shape, strides, dtype and device.";
inline constexpr char zeros_like[] = "zeros_like(input, dtype=None, device=None): zeros of input's shape.";
inline constexpr char ones_like[] = "ones_like(input, dtype=None, device=None): ones of input's shape.";
inline constexpr char full_like[] =
    "full_like(input, fill_value, dtype=None, device=None): fill_value in input's shape.";
inline constexpr char logspace[] =
    "logspace(start, end, steps, base=10.0, *, dtype=None, device=None): base to the powers start to end, `steps` of "
    "them evenly spaced; computed in float64.";
inline constexpr char scalar_tensor[] =
    "scalar_tensor(s, *, dtype=None, device=None): a 0-d tensor of the number, of the default dtype.";
inline constexpr char empty_strided[] =
    "empty_strided(size, stride, *, dtype=None, device=None): uninitialised memory of that shape and these strides, in "
    "elements. Error: a negative stride.";
inline constexpr char new_empty_strided[] =
    "new_empty_strided(size, stride, *, dtype=None, device=None): empty_strided, of the tensor's dtype and device.";
inline constexpr char new_empty[] =
    "new_empty(size, dtype=None, device=None): uninitialised, of the tensor's dtype and device.";
inline constexpr char new_zeros[] = "new_zeros(size, dtype=None, device=None): zeros of the tensor's dtype and device.";
inline constexpr char new_ones[] = "new_ones(size, dtype=None, device=None): ones of the tensor's dtype and device.";
inline constexpr char new_full[] =
    "new_full(size, fill_value, dtype=None, device=None): fill_value in the tensor's dtype and on its device.";

}  // namespace vesta::doc
