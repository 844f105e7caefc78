// Reading images at places of a grid (Jaderberg et al. 2015, "Spatial transformer networks"), made of other ops.
#include <array>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/resample.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/torch_rules.h>

namespace vesta {
namespace {

enum Padding : int64_t { zeros_outside, border, reflection };

/// One dimension of the places: from grid numbers to elements.
struct Axis {
  int64_t n;
  Padding padding;
  bool align_corners;

  /// Brings [-1, 1] to elements: to [0, n - 1], or to [-0.5, n - 0.5].
  Tensor unnormalized(const Tensor& g) const {
    if (align_corners) return mul(add(g, 1), double(n - 1) / 2);
    return div(sub(mul(add(g, 1), double(n)), 1), 2);
  }
  /// Brings places outside to the border or to their mirror image.
  Tensor clipped(const Tensor& at) const {
    if (padding == zeros_outside) return at;
    return clamp(padding == reflection ? reflected(at) : at, 0, double(n - 1));
  }
  /// Returns the number of a neighbour as an index, and 1 where it is inside.
  std::pair<Tensor, Tensor> neighbour(const Tensor& at) const {
    const Tensor k = padding == zeros_outside ? at : clipped(at);
    const Tensor inside = logical_and(ge(k, 0), le(k, double(n - 1)));
    return {clamp(where(isfinite(k), k, 0.0), 0, double(n - 1)).to(DType::int64), inside};
  }

 private:
  Tensor reflected(const Tensor& at) const {
    const double low = align_corners ? 0 : -0.5, span = align_corners ? double(n - 1) : double(n);
    if (span == 0) return zeros_like(at);
    const Tensor distance = abs(sub(at, low));
    const Tensor turns = floor(div(distance, span)), rest = sub(distance, mul(turns, span));
    return where(eq(remainder(turns.detach(), 2), 0), add(rest, low), sub(wrapped(span + low), rest));
  }
};

/// Reads input [N, C, plane...] at one neighbour per axis; the result is [N, C, outs].
Tensor read_at(const Tensor& planes, const std::vector<Tensor>& index, const std::vector<int64_t>& sizes) {
  Tensor flat = index[0];
  for (size_t d = 1; d < index.size(); ++d) flat = add(mul(flat, sizes[d]), index[d]);
  const int64_t n = planes.size(0), c = planes.size(1);
  return gather(planes, 2, expand(reshape(flat, {n, 1, -1}), {n, c, flat.numel() / std::max<int64_t>(n, 1)}));
}

/// The weights of the four neighbours floor - 1 to floor + 2 at a distance t behind the floor: cubic convolution with
/// a = -0.75 (Keys 1981).
std::array<Tensor, 4> cubic_weights(const Tensor& t) {
  constexpr double a = -0.75;
  auto near = [](const Tensor& x) { return add(mul(mul(sub(mul(x, a + 2), a + 3), x), x), 1); };
  auto far = [](const Tensor& x) { return sub(mul(add(mul(sub(mul(x, a), 5 * a), x), 8 * a), x), 4 * a); };
  return {far(add(t, 1)), near(t), near(sub(wrapped(1.0), t)), far(sub(wrapped(2.0), t))};
}

/// A neighbour along one axis: its index, its weight, and 1 where it is inside.
struct Tap {
  Tensor index, weight, inside;
};
using Taps = std::vector<Tap>;

Taps taps_of(const Axis& axis, const Tensor& grid, int64_t mode) {
  const Tensor at = axis.unnormalized(grid);
  Taps taps;
  auto tap = [&](const Tensor& place, const Tensor& weight) {
    auto [index, inside] = axis.neighbour(place.detach());
    taps.push_back({index, weight, inside});
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
  } else {
    const Tensor low = floor(at.detach());
    const std::array<Tensor, 4> w = cubic_weights(sub(at, low));
    for (int k = 0; k < 4; ++k) tap(add(low, k - 1), w[size_t(k)]);
  }
  return taps;
}

}  // namespace

Tensor grid_sampler_composite(const Tensor& input, const Tensor& grid, int64_t interpolation_mode, int64_t padding_mode,
                              bool align_corners) {
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
  Dims sizes{input.size(0), input.size(1)};
  for (int64_t d = 0; d < dims; ++d) {
    VESTA_CHECK(input.size(d + 2) > 0, runtime, op, "(): expected input to have non-empty spatial dimensions, but ",
                "input has sizes ", input.sizes(), ".");
    sizes.push_back(grid.size(d + 1));
  }
  const Tensor x = input.to(compute_type(input.dtype())), places = grid.to(x.dtype());
  std::vector<Taps> axes;  // in the order of input's dimensions; the grid has x first
  std::vector<int64_t> plane;
  for (int64_t d = 0; d < dims; ++d) {
    const Axis axis{input.size(d + 2), Padding(padding_mode), align_corners};
    axes.push_back(taps_of(axis, select(places, -1, dims - 1 - d), interpolation_mode));
    plane.push_back(input.size(d + 2));
  }
  const Tensor planes = flatten(x, 2);
  Tensor result;
  const size_t most = axes[0].size();
  size_t count = 1;
  for (int64_t d = 0; d < dims; ++d) count *= most;
  for (size_t number = 0; number < count; ++number) {  // each combination of neighbours
    Tensor weight, inside;
    std::vector<Tensor> index;
    size_t rest = number;
    for (const Taps& taps : axes) {
      const Tap& t = taps[rest % most];
      rest /= most;
      index.push_back(t.index);
      weight = weight.defined() ? mul(weight, t.weight) : t.weight;
      inside = inside.defined() ? logical_and(inside, t.inside) : t.inside;
    }
    const Tensor counted = padding_mode == zeros_outside ? where(inside, weight, 0.0) : weight;
    Tensor term = mul(read_at(planes, index, plane), reshape(counted, {input.size(0), 1, -1}));
    result = result.defined() ? add(result, term) : term;
  }
  return named_step(reshape(result, sizes).to(input.dtype()),
                    dims == 2 ? "GridSampler2DBackward0" : "GridSampler3DBackward0");
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
