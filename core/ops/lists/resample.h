// The op list, resampling: padding, interpolation, patches. See README.md.
#pragma once

// clang-format off
#define VESTA_OPS_RESAMPLE(OP)                                                                                         \
  OP(FUNCTION, Tensor, _resample,                                                                                      \
     (const Tensor& input, int64_t dim, int64_t size, const Tensor& rows, const Tensor& weights,                       \
      MaybeTensor back_rows, MaybeTensor back_weights), (input, dim, size, rows, weights, back_rows, back_weights),    \
     hidden, accepts(kReals))                                                                                          \
  OP(FUNCTION, Tensor, _resample_planes,                                                                               \
     (const Tensor& input, int64_t dim, IntList size, const Tensor& rows, const Tensor& weights,                       \
      const Tensor& columns, const Tensor& column_weights, MaybeTensor back_rows, MaybeTensor back_weights,            \
      MaybeTensor back_columns, MaybeTensor back_column_weights),                                                      \
     (input, dim, size, rows, weights, columns, column_weights, back_rows, back_weights, back_columns,                 \
      back_column_weights), composite, hidden, accepts(kReals))                                                        \
  OP(FUNCTION, Tensor, constant_pad_nd, (const Tensor& input, IntTuple pad, Scalar value = 0), (input, pad, value))    \
  OP(FUNCTION, Tensor, pad, (const Tensor& input, IntTuple pad, Text mode = "constant", MaybeDouble value = {}),       \
     (input, pad, mode, value), composite, functional)                                                                 \
  OP(FUNCTION, Tensor, _interpolate,                                                                                   \
     (const Tensor& input, IntList size, Text mode, bool align_corners, bool antialias, MaybeDouble scale_d,           \
      MaybeDouble scale_h, MaybeDouble scale_w),                                                                       \
     (input, size, mode, align_corners, antialias, scale_d, scale_h, scale_w), composite, hidden,                      \
     accepts(kFloats | set_of(DType::uint8)))                                                                          \
  OP(FUNCTION, Tensor, im2col,                                                                                         \
     (const Tensor& input, IntList kernel_size, IntList dilation, IntList padding, IntList stride),                    \
     (input, kernel_size, dilation, padding, stride), composite, hidden)                                               \
  OP(FUNCTION, Tensor, col2im,                                                                                         \
     (const Tensor& input, IntList output_size, IntList kernel_size, IntList dilation, IntList padding,                \
      IntList stride), (input, output_size, kernel_size, dilation, padding, stride), composite, hidden,                \
     accepts(kFloats | kComplexes))                                                                                    \
  OP(FUNCTION, Tensor, grid_sampler,                                                                                   \
     (const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners),  \
     (input, grid, interpolation_mode, padding_mode, align_corners), composite, casts(float32, widest),                \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, grid_sampler_2d,                                                                                \
     (const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners),  \
     (input, grid, interpolation_mode, padding_mode, align_corners), composite, accepts(kFloats))                      \
  OP(FUNCTION, Tensor, grid_sampler_3d,                                                                                \
     (const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners),  \
     (input, grid, interpolation_mode, padding_mode, align_corners), composite, accepts(kFloats))                      \
  OP(FUNCTION, Tensor, _grid_sampler_2d,                                                                               \
     (const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode, bool align_corners),  \
     (input, grid, interpolation_mode, padding_mode, align_corners), composite, hidden, accepts(kFloats))              \
  OP(FUNCTION, TensorPair, _grid_sampler_2d_backward,                                                                  \
     (const Tensor& grad, const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,   \
      bool align_corners, bool of_input, bool of_grid),                                                                \
     (grad, input, grid, interpolation_mode, padding_mode, align_corners, of_input, of_grid), composite, hidden,       \
     accepts(kFloats))                                                                                                 \
  OP(FUNCTION, Tensor, affine_grid_generator, (const Tensor& theta, IntTuple size, bool align_corners),                \
     (theta, size, align_corners), composite, accepts(kFloats))                                                        \
  OP(FUNCTION, Tensor, pixel_shuffle, (const Tensor& input, int64_t upscale_factor), (input, upscale_factor),          \
     composite)                                                                                                        \
  OP(FUNCTION, Tensor, pixel_unshuffle, (const Tensor& input, int64_t downscale_factor), (input, downscale_factor),    \
     composite)                                                                                                        \
  OP(FUNCTION, Tensor, channel_shuffle, (const Tensor& input, int64_t groups), (input, groups), composite)
