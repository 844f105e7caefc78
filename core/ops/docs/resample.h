// Docs of the topic resample: what help() and the reference show.
#pragma once

namespace vesta::doc {

inline constexpr char _resample[] =
    "_resample(input, dim, size, rows, weights, back_rows=None, back_weights=None): multiplies a dimension by a sparse "
    "matrix of `size` rows: rows holds size + 1 offsets and the columns, weights the values. The transposed matrix is "
    "for the gradient.";
inline constexpr char _resample_planes[] =
    "_resample_planes(input, dim, size, rows, weights, columns, column_weights, back_rows=None, back_weights=None, "
    "back_columns=None, back_column_weights=None): multiplies dimension dim by one sparse matrix and the next one by "
    "another, as _resample takes them; 16-bit floats round once, at the end.";
inline constexpr char constant_pad_nd[] =
    "constant_pad_nd(input, pad, value=0): surrounds a tensor with a value. pad has the sizes (before, after) of the "
    "last dimension, then of the one before, and so on; negative ones cut.";
inline constexpr char pad[] =
    "pad(input, pad, mode='constant', value=None): pads the last dimensions, two sizes (before, after) for each, the "
    "last dimension first. mode: 'constant' (value, any number of dimensions), 'reflect', 'replicate' or 'circular' "
    "(the last 1, 2 or 3 dimensions of [C, ...] or [N, C, ...]).";
inline constexpr char _interpolate[] =
    "_interpolate(input, size, mode, align_corners, antialias, scale_d, scale_h, scale_w): resizes the spatial "
    "dimensions of [N, C, ...] to size; the scales, where given, place the samples.";
inline constexpr char im2col[] =
    "im2col(input, kernel_size, dilation, padding, stride): the patches of images [N, C, H, W] or [C, H, W] as columns "
    "[N, C KH KW, L].";
inline constexpr char col2im[] =
    "col2im(input, output_size, kernel_size, dilation, padding, stride): adds columns [N, C KH KW, L] to images [N, C, "
    "H, W], where im2col read them.";
inline constexpr char grid_sampler[] =
    "grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners): reads images [N, C, H, W] at the "
    "places grid [N, OH, OW, 2] (x, y from -1 to 1), or volumes [N, C, D, H, W] at [N, OD, OH, OW, 3]. "
    "interpolation_mode: 0 bilinear, 1 nearest, 2 bicubic; padding_mode: 0 zeros, 1 border, 2 reflection.";
inline constexpr char grid_sampler_2d[] =
    "grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners): grid_sampler of images "
    "[N, C, H, W] at places [N, h, w, 2].";
inline constexpr char grid_sampler_3d[] =
    "grid_sampler_3d(input, grid, interpolation_mode, padding_mode, align_corners): grid_sampler of volumes "
    "[N, C, D, H, W] at places [N, d, h, w, 3].";
inline constexpr char _grid_sampler_2d[] =
    "_grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners): grid_sampler of images [N, C, H, "
    "W], by bilinear interpolation (0) or the nearest element (1).";
inline constexpr char _grid_sampler_2d_backward[] =
    "_grid_sampler_2d_backward(grad, input, grid, interpolation_mode, padding_mode, align_corners, of_input, of_grid): "
    "the gradients of input and grid, as far as they are wanted.";
inline constexpr char affine_grid_generator[] =
    "affine_grid_generator(theta, size, align_corners): the grid [N, H, W, 2] of affine maps theta [N, 2, 3] for size "
    "(N, C, H, W), or [N, D, H, W, 3] of [N, 3, 4] for (N, C, D, H, W).";
inline constexpr char pixel_shuffle[] =
    "pixel_shuffle(input, upscale_factor): [*, C r^2, H, W] to [*, C, H r, W r] (Shi et al. 2016).";
inline constexpr char pixel_unshuffle[] =
    "pixel_unshuffle(input, downscale_factor): [*, C, H r, W r] to [*, C r^2, H, W].";
inline constexpr char channel_shuffle[] =
    "channel_shuffle(input, groups): takes the channels of [N, C, *] group by group in turn (Zhang et al. 2018).";

}  // namespace vesta::doc
