// Docs of the topic matmul: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char matmul[] =
    "matmul(input, other): matrix product. 1-d with 1-d gives the dot product, 2-d with 2-d the matrix product; a "
    "1-d operand is a row (input) or a column (other); leading dimensions broadcast. Error: inner sizes or dtypes "
    "differ.";
inline constexpr char linear[] =
    "linear(input, weight, bias=None): input @ weight.T + bias. input [*, in], weight [out, in], bias [out]; gives "
    "[*, out].";
inline constexpr char _linear_backward_weight[] =
    "_linear_backward_weight(grad, input): gradients of weight [out, in] and bias [out] of a linear layer, whose "
    "result has the gradient [*, out].";
inline constexpr char _linear_backward_activation[] =
    "_linear_backward_activation(grad, weight, used, use_gelu, kept=None): of a linear layer behind a relu or a gelu "
    "with tanh, whose result has the gradient [*, out], the gradient of what that was computed from. used [*, in] is "
    "the relu's result or the gelu's operand; kept is what _fused_linear kept of a relu.";
inline constexpr char _wide_matmul[] =
    "_wide_matmul(input, other): matmul of 16-bit floats whose sums are not rounded: the result is of float32.";
inline constexpr char _fused_linear[] =
    "_fused_linear(input, weight, bias, use_gelu, keep): the relu of linear(input, weight, bias), or its gelu with "
    "tanh; and, if keep, what the gelu was computed from, or what the device's own form of the relu's gradient reads "
    "(undefined where it has none).";
inline constexpr char _linear_activation[] =
    "_linear_activation(input, weight, bias=None, use_gelu=False): the relu of linear(input, weight, bias), or its "
    "gelu "
    "with tanh, where a device can by the product itself.";
inline constexpr char _addmm_activation[] =
    "_addmm_activation(input, mat1, mat2, *, beta=1, alpha=1, use_gelu=False): the relu of beta * input + alpha * "
    "(mat1 "
    "@ mat2), or its gelu with tanh.";
inline constexpr char mm[] =
    "mm(input, mat2): product of two matrices [n, k] and [k, m]. Error: anything but two 2-d tensors.";
inline constexpr char bmm[] = "bmm(input, mat2): products of two batches of matrices [b, n, k] and [b, k, m].";
inline constexpr char baddbmm[] =
    "baddbmm(input, batch1, batch2, *, beta=1, alpha=1): beta * input + alpha * (batch1 @ batch2) of batches [b, n, m] "
    "and [b, m, p].";
inline constexpr char addbmm[] =
    "addbmm(input, batch1, batch2, *, beta=1, alpha=1): beta * input + alpha * the sum over b of batch1[b] @ "
    "batch2[b].";
inline constexpr char addr[] = "addr(input, vec1, vec2, *, beta=1, alpha=1): beta * input + alpha * outer(vec1, vec2).";
inline constexpr char addmm_[] = "addmm_(mat1, mat2, *, beta=1, alpha=1): addmm in place.";
inline constexpr char baddbmm_[] = "baddbmm_(batch1, batch2, *, beta=1, alpha=1): baddbmm in place.";
inline constexpr char addbmm_[] = "addbmm_(batch1, batch2, *, beta=1, alpha=1): addbmm in place.";
inline constexpr char addr_[] = "addr_(vec1, vec2, *, beta=1, alpha=1): addr in place.";
inline constexpr char addmm[] = "addmm(input, mat1, mat2, *, beta=1, alpha=1): beta * input + alpha * (mat1 @ mat2).";

inline constexpr char mv[] = "mv(input, vec): a matrix [n, m] times a vector [m]; the result is [n].";
inline constexpr char dot[] = "dot(input, tensor): the sum of the products of two vectors of one dtype; 0-d.";
inline constexpr char vdot[] = "vdot(input, other): dot() with the first vector conjugated.";
inline constexpr char inner[] =
    "inner(input, other): the dot products of the last dimensions, of shape input.shape[:-1] + other.shape[:-1].";
inline constexpr char outer[] = "outer(input, vec2): the matrix [n, m] of all products of elements of two vectors.";
inline constexpr char addmv[] =
    "addmv(input, mat, vec, *, beta=1, alpha=1): beta * input + alpha * (mat @ vec); beta 0 ignores input, NaN too.";
inline constexpr char kron[] =
    "kron(input, other): the Kronecker product: blocks of other, each times an element of input.";

}  // namespace vesta::doc
