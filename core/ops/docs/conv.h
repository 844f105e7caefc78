// Docs of the topic conv: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char conv1d[] =
    "conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): 1-d cross-correlation. input [N, "
    "C, L] or [C, L], weight [O, C / groups, K], bias [O]; gives [N, O, LO]. padding: integers, 'valid' (none) or "
    "'same' (the output has the input's size; stride 1).";
inline constexpr char conv2d[] =
    "conv2d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): 2-d cross-correlation. input [N, "
    "C, H, W] or [C, H, W], weight [O, C / groups, KH, KW], bias [O]; gives [N, O, HO, WO]. padding: integers, "
    "'valid' (none) or 'same' (the output has the input's size; stride 1). On the CPU 3 x 3 kernels of stride 1 over "
    "32 "
    "channels and more take a quarter of the products (Lavin and Gray 2016), with an error of about 1e-6 of the "
    "result's root mean square in float32, 3 to 4 times that of sums of products; float64 does not.";
inline constexpr char conv3d[] =
    "conv3d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1): 3-d cross-correlation. input [N, "
    "C, D, H, W] or [C, D, H, W], weight [O, C / groups, KD, KH, KW], bias [O]; gives [N, O, DO, HO, WO]. padding: "
    "integers, 'valid' (none) or 'same' (the output has the input's size; stride 1).";
inline constexpr char conv_transpose1d[] =
    "conv_transpose1d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1): the "
    "transposed convolution, which is the gradient of conv1d's input. input [N, C, L] or [C, L], weight [C, O / "
    "groups, K], bias [O]; each size n becomes (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1.";
inline constexpr char conv_transpose2d[] =
    "conv_transpose2d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1): the "
    "transposed convolution, which is the gradient of conv2d's input. input [N, C, H, W] or [C, H, W], weight [C, O "
    "/ groups, KH, KW], bias [O]; each size n becomes (n - 1) stride - 2 padding + dilation (k - 1) + output_padding "
    "+ 1.";
inline constexpr char conv_transpose3d[] =
    "conv_transpose3d(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1): the "
    "transposed convolution, which is the gradient of conv3d's input. input [N, C, D, H, W] or [C, D, H, W], weight "
    "[C, O / groups, KD, KH, KW], bias [O]; each size n becomes (n - 1) stride - 2 padding + dilation (k - 1) + "
    "output_padding + 1.";
inline constexpr char convolution[] =
    "convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups): conv1d, conv2d "
    "or conv3d by the dimensions of weight, or the transposed one.";
inline constexpr char cudnn_convolution_relu[] =
    "cudnn_convolution_relu(input, weight, bias, stride, padding, dilation, groups): the relu of a convolution. On any "
    "device; cuDNN computes both at once where nothing is recorded.";
inline constexpr char cudnn_convolution_add_relu[] =
    "cudnn_convolution_add_relu(input, weight, z, alpha, bias, stride, padding, dilation, groups): the relu of a "
    "convolution plus alpha * z (alpha None is 1). On any device; cuDNN computes all at once where nothing is "
    "recorded and alpha is 1.";
inline constexpr char _convolution[] =
    "_convolution(input, weight, bias, stride, padding, dilation, groups): cross-correlation of a batch [N, C, ...] "
    "of 1 to 3 spatial dimensions.";
inline constexpr char _convolution_backward_input[] =
    "_convolution_backward_input(grad, weight, input_size, stride, padding, dilation, groups, channels_last=False, "
    "bias=None): gradient of _convolution's input, plus a bias [C]: a transposed convolution.";
inline constexpr char _convolution_backward_weight[] =
    "_convolution_backward_weight(grad, input, weight_size, stride, padding, dilation, groups, channels_last=False): "
    "gradient of "
    "_convolution's weight.";

}  // namespace vesta::doc
