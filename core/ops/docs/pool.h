// Docs of the topic pool: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char max_pool1d[] =
    "max_pool1d(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): the largest value of "
    "each window; NaN wins. input [N, C, L] or [C, L].";
inline constexpr char max_pool1d_with_indices[] =
    "max_pool1d_with_indices(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): (values, "
    "indices along L) of the largest in each window; NaN wins. input [N, C, L] or [C, L].";
inline constexpr char max_pool2d[] =
    "max_pool2d(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): the largest value "
    "of each window; NaN wins. input [N, C, H, W] or [C, H, W].";
inline constexpr char max_pool2d_with_indices[] =
    "max_pool2d_with_indices(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): "
    "(values, indices into the flattened H x W plane) of the largest in each window; NaN wins. input [N, C, H, W] or "
    "[C, H, W].";
inline constexpr char max_pool3d[] =
    "max_pool3d(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): the largest value "
    "of each window; NaN wins. input [N, C, D, H, W] or [C, D, H, W].";
inline constexpr char max_pool3d_with_indices[] =
    "max_pool3d_with_indices(input, kernel_size, stride=kernel_size, padding=0, dilation=1, ceil_mode=False): "
    "(values, indices into the flattened D x H x W volume) of the largest in each window; NaN wins. input [N, C, D, H, "
    "W] or [C, D, H, W].";
inline constexpr char adaptive_avg_pool1d[] =
    "adaptive_avg_pool1d(input, output_size): means of output_size windows that cover the input, window o from "
    "floor(o L / output_size) to ceil((o + 1) L / output_size). input [N, C, L] or [C, L].";
inline constexpr char adaptive_avg_pool2d[] =
    "adaptive_avg_pool2d(input, output_size): means of OH x OW windows that cover the input [N, C, H, W] or [C, H, W]. "
    "output_size is one integer or two.";
inline constexpr char adaptive_avg_pool3d[] =
    "adaptive_avg_pool3d(input, output_size): means of OD x OH x OW windows that cover the input [N, C, D, H, W] or "
    "[C, D, H, W]. output_size is one integer or three.";
inline constexpr char adaptive_max_pool1d[] =
    "adaptive_max_pool1d(input, output_size): (values, indices along L) of the largest in output_size windows that "
    "cover the input [N, C, L] or [C, L].";
inline constexpr char adaptive_max_pool2d[] =
    "adaptive_max_pool2d(input, output_size): (values, indices into the flattened H x W plane) of the largest in OH x "
    "OW windows that cover the input [N, C, H, W] or [C, H, W].";
inline constexpr char adaptive_max_pool3d[] =
    "adaptive_max_pool3d(input, output_size): (values, indices into the flattened D x H x W volume) of the largest in "
    "OD x OH x OW windows that cover the input [N, C, D, H, W] or [C, D, H, W].";
inline constexpr char avg_pool1d[] =
    "avg_pool1d(input, kernel_size, stride=kernel_size, padding=0, ceil_mode=False, count_include_pad=True): the mean "
    "of each window; padding counts as zeros, or not at all. input [N, C, L] or [C, L].";
inline constexpr char avg_pool2d[] =
    "avg_pool2d(input, kernel_size, stride=kernel_size, padding=0, ceil_mode=False, count_include_pad=True, "
    "divisor_override=None): the mean of each window, or its sum over divisor_override. input [N, C, H, W] or [C, H, "
    "W].";
inline constexpr char avg_pool3d[] =
    "avg_pool3d(input, kernel_size, stride=kernel_size, padding=0, ceil_mode=False, count_include_pad=True, "
    "divisor_override=None): the mean of each window, or its sum over divisor_override. input [N, C, D, H, W] or [C, "
    "D, H, W].";
inline constexpr char _max_pool_values[] =
    "_max_pool_values(input, kernel_size, stride, padding, dilation, ceil_mode): the values of _max_pool alone.";
inline constexpr char _max_pool[] =
    "_max_pool(input, kernel_size, stride, padding, dilation, ceil_mode): (values, indices into the flattened plane) "
    "of the largest in each window of a batch [N, C, ...] of 1 to 3 spatial dimensions.";
inline constexpr char _max_pool_backward[] =
    "_max_pool_backward(grad, indices, input_size, kernel_size=(), stride=kernel_size, padding=0, dilation=1): adds "
    "each gradient to the place its maximum came from. grad and indices [N, C, ...]. With kernel_size, every index "
    "must lie in its window, as _max_pool has it; a faster kernel may rely on it.";
inline constexpr char _fractional_max_pool[] =
    "_fractional_max_pool(input, samples, output_size, kernel_size): (values, indices into the flattened plane) of the "
    "largest in each window of a batch [N, C, ...] of 2 or 3 spatial dimensions. The windows of a channel begin where "
    "its numbers of [0, 1) say, samples [at least N, C, dimensions].";

}  // namespace vesta::doc
