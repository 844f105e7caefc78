// Resampling: a matrix times a dimension, whose gradient is the transposed matrix; constant padding; windows; places of
// a grid.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/resample.h>

namespace vesta::autograd::rules {
namespace {

struct ResampleRule {
  int64_t dim, size;
  Saved rows, weights, back_rows, back_weights;
  static ResampleRule save(const Tensor&, const Tensor& input, int64_t dim, int64_t, const Tensor& rows,
                           const Tensor& weights, const Tensor& back_rows, const Tensor& back_weights, Needs) {
    VESTA_CHECK(back_rows.defined() && back_weights.defined(), value, "_resample: expected the transposed matrix, ",
                "which the gradient needs (back_rows, back_weights).");
    return {dim, input.size(dim), Saved(rows), Saved(weights), Saved(back_rows), Saved(back_weights)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return _resample(g, dim, size, back_rows(), back_weights(), rows(), weights());
  }
};

struct ResamplePlanesRule {
  int64_t dim, size[2];
  Saved rows[4], back[4];
  static ResamplePlanesRule save(const Tensor&, const Tensor& input, int64_t dim, IntList, const Tensor& rows,
                                 const Tensor& weights, const Tensor& columns, const Tensor& column_weights,
                                 const Tensor& back_rows, const Tensor& back_weights, const Tensor& back_columns,
                                 const Tensor& back_column_weights, Needs) {
    VESTA_CHECK(
        back_rows.defined() && back_weights.defined() && back_columns.defined() && back_column_weights.defined(), value,
        "_resample_planes: expected the transposed matrices, which the gradient needs (back_rows, ",
        "back_weights, back_columns, back_column_weights).");
    const int64_t d = wrap_dim(dim, input.dim(), "_resample_planes");
    return {d,
            {input.size(d), input.size(d + 1)},
            {Saved(rows), Saved(weights), Saved(columns), Saved(column_weights)},
            {Saved(back_rows), Saved(back_weights), Saved(back_columns), Saved(back_column_weights)}};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return _resample_planes(g, dim, {size[0], size[1]}, back[0](), back[1](), back[2](), back[3](), rows[0](),
                            rows[1](), rows[2](), rows[3]());
  }
};

struct ConstantPadRule {
  Dims pad;
  static ConstantPadRule save(const Tensor&, const Tensor&, IntList pad, Scalar, Needs) {
    Dims negative;
    for (int64_t n : pad) negative.push_back(-n);
    return {negative};
  }
  Tensor operator()(const Tensor& g, Needs) const { return constant_pad_nd(g, pad); }
};

/// Of windows that are copied: what lies in several of them is the sum of its copies, and the other way round.
struct Im2ColRule {
  int64_t rows, columns;
  Dims kernel, dilation, padding, stride;
  static Im2ColRule save(const Tensor&, const Tensor& input, IntList kernel_size, IntList dilation, IntList padding,
                         IntList stride, Needs) {
    return {input.size(-2), input.size(-1), Dims(kernel_size), Dims(dilation), Dims(padding), Dims(stride)};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return col2im(g, {rows, columns}, kernel, dilation, padding, stride);
  }
};
struct Col2ImRule {
  Dims kernel, dilation, padding, stride;
  static Col2ImRule save(const Tensor&, const Tensor&, IntList, IntList kernel_size, IntList dilation, IntList padding,
                         IntList stride, Needs) {
    return {Dims(kernel_size), Dims(dilation), Dims(padding), Dims(stride)};
  }
  Tensor operator()(const Tensor& g, Needs) const { return im2col(g, kernel, dilation, padding, stride); }
};

struct GridSamplerRule {
  Saved input, grid;
  int64_t mode = 0, padding = 0;
  bool align_corners = false;
  static GridSamplerRule save(const Tensor&, const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding,
                              bool align_corners, Needs) {
    return {Saved(input), Saved(grid), mode, padding, align_corners};
  }
  Grads<2> operator()(const Tensor& g, Needs needs) const {
    auto [x, places] = _grid_sampler_2d_backward(g, input(), grid(), mode, padding, align_corners, needs[0], needs[1]);
    return {x, places};
  }
};

}  // namespace

void register_resample() {
  record<ops::_resample, ResampleRule>();
  record<ops::_resample_planes, ResamplePlanesRule>();
  record<ops::constant_pad_nd, ConstantPadRule>();
  record<ops::im2col, Im2ColRule>();
  record<ops::col2im, Col2ImRule>();
  record<ops::_grid_sampler_2d, GridSamplerRule>();
}

}  // namespace vesta::autograd::rules
