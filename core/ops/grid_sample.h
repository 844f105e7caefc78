// Reading images at the positions of a grid: the parts that devices share.
#pragma once
#include <vesta/core/ops/grid_axis.h>
#include <vesta/core/ops/resample.h>

namespace vesta {

/// The sizes and options of grid_sampler over images, by bilinear interpolation or the nearest element.
struct GridSampling {
  int64_t batch, channels;
  int64_t height, width;          // of the input
  int64_t out_height, out_width;  // of the grid
  bool nearest, align_corners;
  GridPadding padding;

  int64_t plane() const { return height * width; }
  int64_t places() const { return out_height * out_width; }
  Dims result_sizes() const { return {batch, channels, out_height, out_width}; }
  template <class T>
  GridAxis<T> rows() const {
    return GridAxis<T>::of(height, padding, align_corners);
  }
  template <class T>
  GridAxis<T> columns() const {
    return GridAxis<T>::of(width, padding, align_corners);
  }
};

/// Checks the operands of _grid_sampler_2d.
VESTA_API GridSampling check_grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                             int64_t padding_mode, bool align_corners);
/// Does the same for its gradient.
VESTA_API GridSampling check_grid_sampler_2d_backward(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                                      int64_t interpolation_mode, int64_t padding_mode,
                                                      bool align_corners);

}  // namespace vesta
