// Reading images at positions of a grid (Jaderberg et al. 2015, "Spatial transformer networks"), made of other ops.
#include <array>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/grid_sample.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

/// One dimension of the positions: maps grid coordinates to element coordinates.
struct Axis {
  int64_t n;
  GridPadding padding;
  bool align_corners;

  /// Brings [-1, 1] to elements: to [0, n - 1], or to [-0.5, n - 0.5].
  Tensor unnormalized(const Tensor& g) const {
    if (align_corners) return mul(add(g, 1), double(n - 1) / 2);
    return div(sub(mul(add(g, 1), double(n)), 1), 2);
  }
  /// Clips positions outside to the border, or reflects them; NaN becomes 0. The gradient on a border is 0.
  Tensor clipped(const Tensor& at) const {
    if (padding == GridPadding::zeros) return at;
    const Tensor t = padding == GridPadding::reflection ? reflected(at) : at;
    const double last = double(n - 1);
    return where(gt(t, 0), where(lt(t, last), t, last), 0.0);
  }
  /// Returns the slope of the map at the grid coordinate whose element coordinate is `at`.
  Tensor slope(const Tensor& at) const {
    NoGrad off;
    const double steep = align_corners ? double(n - 1) / 2 : double(n) / 2;
    Tensor r = full(at.sizes(), steep, at.dtype(), at.device());
    if (padding == GridPadding::zeros) return r;
    Tensor t = at;
    if (padding == GridPadding::reflection) {
      const Tensor turns = floor(div(abs(sub(at, low())), span()));
      if (span() > 0) r = where(ne(ne(remainder(turns, 2), 0), lt(at, low())), neg(r), r);
      t = reflected(at);
    }
    return where(logical_and(gt(t, 0), lt(t, double(n - 1))), r, 0.0);
  }
  /// Returns the number of a neighbour as an index, and 1 where it is inside.
  std::pair<Tensor, Tensor> neighbour(const Tensor& at) const {
    const Tensor k = padding == GridPadding::zeros ? at : clipped(at);
    const Tensor inside = logical_and(ge(k, 0), le(k, double(n - 1)));
    return {clamp(where(isfinite(k), k, 0.0), 0, double(n - 1)).to(DType::int64), inside};
  }

 private:
  double low() const { return align_corners ? 0 : -0.5; }
  double span() const { return align_corners ? double(n - 1) : double(n); }
  Tensor reflected(const Tensor& at) const {
    if (span() == 0) return zeros_like(at);
    const Tensor distance = abs(sub(at, low()));
    const Tensor turns = floor(div(distance, span())), rest = sub(distance, mul(turns, span()));
    return where(eq(remainder(turns.detach(), 2), 0), add(rest, low()), sub(wrapped(span() + low()), rest));
  }
};

/// Flattens the numbers of positions [N, ...] to one row for each image: [N, 1, positions].
Tensor as_rows(const Tensor& t) { return reshape(t, {t.size(0), 1, numel_of(t.sizes().subspan(1), "grid_sampler")}); }

/// Numbers the elements at one neighbour per axis, for each of the channels: [N, C, outs].
Tensor elements_at(const std::vector<Tensor>& index, const std::vector<int64_t>& sizes, int64_t channels) {
  Tensor flat = index[0];
  for (size_t d = 1; d < index.size(); ++d) flat = add(mul(flat, sizes[d]), index[d]);
  const Tensor rows = as_rows(flat);
  return expand(rows, {rows.size(0), channels, rows.size(2)});
}

/// The weights of the four neighbours floor - 1 to floor + 2 at a distance t behind the floor: cubic convolution with
/// a = -0.75 (Keys 1981).
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  auto near = [](const Tensor& x) { return add(mul(mul(sub(mul(x, a + 2), a + 3), x), x), 1); };
  auto far = [](const Tensor& x) { return sub(mul(add(mul(sub(mul(x, a), 5 * a), x), 8 * a), x), 4 * a); };
  return {far(add(t, 1)), near(t), near(sub(wrapped(1.0), t)), far(sub(wrapped(2.0), t))};
}

/// A neighbour along one axis: its index, its weight, 1 where it is inside, and of linear interpolation the weight's
/// slope along the grid.
struct Tap {
  Tensor index, weight, inside, slope;
};
using Taps = std::vector<Tap>;

Taps taps_of(const Axis& axis, const Tensor& grid, int64_t mode) {
  const Tensor at = axis.unnormalized(grid);
  Taps taps;
  auto tap = [&](const Tensor& place, const Tensor& weight) {
    auto [index, inside] = axis.neighbour(place.detach());
    taps.push_back({index, weight, inside, {}});
  };
  if (mode == 1) {  // nearest: half to even
    const Tensor clipped = axis.clipped(at).detach();
    const Tensor low = floor(clipped), part = sub(clipped, low);
    const Tensor up = logical_or(gt(part, 0.5), logical_and(eq(part, 0.5), ne(remainder(low, 2), 0)));
    // The weight is 1, whatever the grid: its gradient is 0, as PyTorch's.
    tap(add(low, up.to(low.dtype())), where(zeros(at.sizes(), DType::bool_, at.device()), at, 1.0));
  } else if (mode == 0) {
    const Tensor clipped = axis.clipped(at), low = floor(clipped.detach()), part = sub(clipped, low);
    tap(low, sub(wrapped(1.0), part));
    tap(add(low, 1), part);
    taps[1].slope = axis.slope(at.detach());
    taps[0].slope = neg(taps[1].slope);
  } else {
    const Tensor low = floor(at.detach());
    const std::array<Tensor, 4> w = cubic_weights(sub(at, low));
    for (int k = 0; k < 4; ++k) tap(add(low, k - 1), w[size_t(k)]);
  }
  return taps;
}

/// The operands of an interpolation in the dtype of computation, and the neighbours of every position.
struct Sampled {
  Tensor x, planes;
  std::vector<Taps> axes;  // in the order of input's dimensions; the grid has x first
  std::vector<int64_t> plane;
  Dims sizes;
  Sampled(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners)
      : x(input.to(compute_type(input.dtype()))), planes(flatten(x, 2)), sizes{input.size(0), input.size(1)} {
    const Tensor places = grid.to(x.dtype());
    const int64_t dims = input.dim() - 2;
    for (int64_t d = 0; d < dims; ++d) {
      const Axis axis{input.size(d + 2), GridPadding(padding), align_corners};
      axes.push_back(taps_of(axis, select(places, -1, dims - 1 - d), mode));
      plane.push_back(input.size(d + 2));
      sizes.push_back(grid.size(d + 1));
    }
  }
  /// Calls f(a tap of each axis, whether that is inside, the product of the weights) for each combination of
  /// neighbours.
  template <class F>
  void each(bool zeros_outside, F f) const {
    const size_t most = axes[0].size();
    size_t count = 1;
    for (size_t d = 0; d < axes.size(); ++d) count *= most;
    for (size_t number = 0; number < count; ++number) {
      Tensor weight, inside;
      std::vector<const Tap*> taps;
      size_t rest = number;
      for (const Taps& of_axis : axes) {
        const Tap& t = of_axis[rest % most];
        rest /= most;
        taps.push_back(&t);
        weight = weight.defined() ? mul(weight, t.weight) : t.weight;
        inside = inside.defined() ? logical_and(inside, t.inside) : t.inside;
      }
      f(taps, inside, zeros_outside ? where(inside, weight, 0.0) : weight);
    }
  }
  /// Returns the elements' numbers of a combination, for each of the channels.
  Tensor elements(const std::vector<const Tap*>& taps) const {
    std::vector<Tensor> index;
    index.reserve(taps.size());
    for (const Tap* t : taps) index.push_back(t->index);
    return elements_at(index, plane, x.size(1));
  }
};

Tensor sampled(const Tensor& input, const Tensor& grid, int64_t mode, int64_t padding, bool align_corners) {
  const Sampled s(input, grid, mode, padding, align_corners);
  Tensor result;
  s.each(GridPadding(padding) == GridPadding::zeros, [&](const auto& taps, const Tensor&, const Tensor& weight) {
    const Tensor term = mul(gather(s.planes, 2, s.elements(taps)), as_rows(weight));
    result = result.defined() ? add(result, term) : term;
  });
  return reshape(result, s.sizes).to(input.dtype());
}

void check_grid_sampler(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode) {
  constexpr const char* op = "grid_sampler";
  const int64_t dims = input.dim() - 2;
  VESTA_CHECK((dims == 2 || dims == 3) && grid.dim() == input.dim(), runtime, op,
              "(): expected 4D or 5D input and grid ", "with same number of dimensions, but got input with sizes ",
              input.sizes(), " and grid with sizes ", grid.sizes(), ".");
  VESTA_CHECK(input.size(0) == grid.size(0), runtime, op, "(): expected grid and input to have same batch size, but ",
              "got input with sizes ", input.sizes(), " and grid with sizes ", grid.sizes(), ".");
  VESTA_CHECK(grid.size(-1) == dims, runtime, op, "(): expected grid to have size ", dims,
              " in last dimension, but got grid with sizes ", grid.sizes(), ".");
  check_floating(input, op);
  VESTA_CHECK(input.dtype() == grid.dtype(), runtime, op, "(): expected input and grid to have same dtype, but input ",
              "has ", input.dtype(), " and grid has ", grid.dtype(), ".");
  VESTA_CHECK(interpolation_mode >= 0 && interpolation_mode <= 2 && padding_mode >= 0 && padding_mode <= 2, value, op,
              ": expected modes 0 to 2, got ", interpolation_mode, " (interpolation_mode) and ", padding_mode,
              " (padding_mode).");
  for (int64_t d = 0; d < dims; ++d) {
    VESTA_CHECK(input.size(d + 2) > 0, runtime, op, "(): expected input to have non-empty spatial dimensions, but ",
                "input has sizes ", input.sizes(), ".");
  }
}

}  // namespace

GridSampling check_grid_sampler_2d(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                   int64_t padding_mode, bool align_corners) {
  check_grid_sampler(input, grid, interpolation_mode, padding_mode);
  VESTA_CHECK(input.dim() == 4 && interpolation_mode <= 1, value, "_grid_sampler_2d: expected images [N, C, H, W] and ",
              "interpolation_mode 0 or 1, got ", input.sizes(), " (input) and ", interpolation_mode, ".");
  return {input.size(0),           input.size(1), input.size(2),
          input.size(3),           grid.size(1),  grid.size(2),
          interpolation_mode == 1, align_corners, GridPadding(padding_mode)};
}

GridSampling check_grid_sampler_2d_backward(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                            int64_t interpolation_mode, int64_t padding_mode, bool align_corners) {
  const GridSampling s = check_grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners);
  VESTA_CHECK(std::ranges::equal(grad.sizes(), s.result_sizes()) && grad.dtype() == input.dtype(), value,
              "_grid_sampler_2d_backward: expected grad ", IntSpan(s.result_sizes()), " of ", input.dtype(), ", got ",
              grad.sizes(), " of ", grad.dtype(), ".");
  return s;
}

Tensor grid_sampler_composite(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                              bool align_corners) {
  check_grid_sampler(input, grid, interpolation_mode, padding_mode);
  const bool images = input.dim() == 4, fused = images && interpolation_mode <= 1;
  return named_step(fused ? _grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners)
                          : sampled(input, grid, interpolation_mode, padding_mode, align_corners),
                    images ? "GridSampler2DBackward0" : "GridSampler3DBackward0");
}

namespace {
/// Raises for other images than those of `spatial` dimensions.
void check_spatial(const Tensor& input, const Tensor& grid, int64_t spatial, const char* op) {
  VESTA_CHECK(input.dim() == spatial + 2 && grid.dim() == spatial + 2, runtime, op, ": expected ", spatial + 2,
              "D input and grid, got ", input.sizes(), " (input) and ", grid.sizes(), " (grid).");
}
}  // namespace

Tensor grid_sampler_2d_composite(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                 int64_t padding_mode, bool align_corners) {
  check_spatial(input, grid, 2, "grid_sampler_2d");
  return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}

Tensor grid_sampler_3d_composite(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                 int64_t padding_mode, bool align_corners) {
  check_spatial(input, grid, 3, "grid_sampler_3d");
  return grid_sampler(input, grid, interpolation_mode, padding_mode, align_corners);
}

Tensor _grid_sampler_2d_composite(const Tensor& input, const Tensor& grid, int64_t interpolation_mode,
                                  int64_t padding_mode, bool align_corners) {
  check_grid_sampler_2d(input, grid, interpolation_mode, padding_mode, align_corners);
  return sampled(input, grid, interpolation_mode, padding_mode, align_corners);
}

TensorPair _grid_sampler_2d_backward_composite(const Tensor& grad, const Tensor& input, const Tensor& grid,
                                               int64_t interpolation_mode, int64_t padding_mode, bool align_corners,
                                               bool of_input, bool of_grid) {
  check_grid_sampler_2d_backward(grad, input, grid, interpolation_mode, padding_mode, align_corners);
  const Sampled s(input, grid, interpolation_mode, padding_mode, align_corners);
  const Tensor g = flatten(grad.to(s.x.dtype()), 2);
  const Dims places{grid.size(0), grid.size(1), grid.size(2)};
  Tensor planes, along_x, along_y;
  const auto add_to = [](Tensor& sum, const Tensor& term) { sum = sum.defined() ? add(sum, term) : term; };
  s.each(GridPadding(padding_mode) == GridPadding::zeros,
         [&](const auto& taps, const Tensor& inside, const Tensor& weight) {
           const Tensor at = s.elements(taps), column = as_rows(weight);
           if (of_input) {
             if (!planes.defined()) planes = zeros(s.planes.sizes(), g.dtype(), g.device());
             planes = scatter_add(planes, 2, at, mul(g, column));
           }
           if (!of_grid || interpolation_mode == 1) return;
           const Tensor product = reshape(sum(mul(g, gather(s.planes, 2, at)), Dims{1}), places);
           const Tensor counted = padding_mode == 0 ? where(inside, product, 0.0) : product;
           add_to(along_y, mul(counted, mul(taps[0]->slope, taps[1]->weight)));
           add_to(along_x, mul(counted, mul(taps[1]->slope, taps[0]->weight)));
         });
  if (planes.defined()) planes = reshape(planes, input.sizes()).to(input.dtype());
  if (!of_grid) return {planes, {}};
  if (interpolation_mode == 1) return {planes, zeros(grid.sizes(), grid.dtype(), grid.device())};
  return {planes, stack({along_x, along_y}, -1).to(grid.dtype())};
}

Tensor affine_grid_generator_composite(const Tensor& theta, IntList size, bool align_corners) {
  constexpr const char* op = "affine_grid_generator";
  const int64_t dims = int64_t(size.size()) - 2;
  VESTA_CHECK(dims == 2 || dims == 3, not_implemented, op, ": needs a size of 4 or 5 numbers, got ", IntSpan(size),
              ".");
  check_floating(theta, op);
  VESTA_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == dims && theta.size(2) == dims + 1,
              runtime, op, ": expected a batch of affine matrices of shape ", size[0], "x", dims, "x", dims + 1,
              " for size ", IntSpan(size), ", got ", theta.sizes(), ".");
  // The numbers of the last dimension come first: x, y, (z,) 1.
  Dims shape(size.subspan(2));
  shape.push_back(1);
  std::vector<Tensor> columns;
  for (int64_t d = dims - 1; d >= 0; --d) {
    const int64_t n = size[size_t(d + 2)];
    Tensor at = n <= 1 ? zeros({n}, theta.dtype(), theta.device()) : linspace(-1, 1, n, theta.dtype(), theta.device());
    if (!align_corners && n > 1) at = mul(at, double(n - 1) / double(n));
    Dims along(shape.size(), 1);
    along[size_t(d)] = n;
    columns.push_back(expand(reshape(at, along), shape));
  }
  columns.push_back(ones(shape, theta.dtype(), theta.device()));
  const Tensor points = reshape(cat(columns, -1), {1, -1, dims + 1});
  Dims sizes{size[0]};
  for (int64_t d = 0; d < dims; ++d) sizes.push_back(size[size_t(d + 2)]);
  sizes.push_back(dims);
  return reshape(matmul(points, transpose(theta, 1, 2)), sizes);
}

}  // namespace vesta
