// Docs of the topic conv: what help() and the reference show, but for pointwise ops, whose structs have theirs.
#pragma once

namespace vesta::doc {

inline constexpr char conv2d[] =
    "conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): 2-d cross-correlation. input [N, "
    "C, H, W] or [C, H, W], weight [O, C / groups, KH, KW], bias [O]; gives [N, O, HO, WO].";
inline constexpr char _conv2d_backward_input[] =
    "_conv2d_backward_input(grad, weight, input_size, stride, padding, dilation, groups): gradient of conv2d's input.";
inline constexpr char _conv2d_backward_weight[] =
    "_conv2d_backward_weight(grad, input, weight_size, stride, padding, dilation, groups): gradient of conv2d's "
    "weight.";
inline constexpr char max_pool2d_with_indices[] =
    "max_pool2d_with_indices(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): "
    "(values, indices into the flattened H x W plane) of the largest in each window; NaN wins. input [N, C, H, W] or "
    "[C, H, W].";
inline constexpr char _max_pool2d_backward[] =
    "_max_pool2d_backward(grad, indices, input_size): adds each gradient to the place its maximum came from.";
inline constexpr char max_pool2d[] =
    "max_pool2d(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): the largest value "
    "of each window. input [N, C, H, W] or [C, H, W].";

}  // namespace vesta::doc
