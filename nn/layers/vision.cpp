#include <vesta/nn/layers/vision.h>

#include <cmath>

#include <vesta/core/ops/pool.h>
#include <vesta/core/ops/resample.h>
#include <vesta/nn/functional.h>

namespace vesta::nn {
namespace {

std::string sizes_text(const std::optional<PerDimension<int64_t>>& size,
                       const std::optional<PerDimension<double>>& scale, const std::string& mode) {
  const std::string which = scale ? "scale_factor=" + shown(scale).brief : "size=" + shown(size).brief;
  return which + ", mode='" + mode + "'";
}

/// Returns one value for each of n dimensions.
template <class T>
std::vector<T> spread(const char* name, const PerDimension<T>& given, size_t n) {
  VESTA_CHECK(given.v.size() == 1 || given.v.size() == n, value, "interpolate: expected one ", name, " or ", n,
              ", got ", given.v.size(), ".");
  return given.v.size() == n ? given.v : std::vector<T>(n, given.v[0]);
}

void check_mode(const Tensor& input, const std::string& mode, bool aligns) {
  const int64_t dims = input.dim();
  VESTA_CHECK(dims >= 3 && dims <= 5, not_implemented,
              "interpolate: Input Error: Only 3D, 4D and 5D input Tensors supported (got ", dims, "D).");
  const int64_t wanted = mode == "linear"                          ? 3
                         : mode == "bilinear" || mode == "bicubic" ? 4
                         : mode == "trilinear"                     ? 5
                                                                   : 0;
  VESTA_CHECK(wanted || mode == "nearest" || mode == "nearest-exact" || mode == "area", not_implemented,
              "interpolate: expected a mode 'nearest', 'nearest-exact', 'area', 'linear', 'bilinear', 'bicubic' or "
              "'trilinear', got '",
              mode, "'.");
  VESTA_CHECK(wanted || !aligns, value,
              "interpolate: align_corners option can only be set with the interpolating modes: linear | bilinear | "
              "bicubic | trilinear");
  VESTA_CHECK(!wanted || wanted == dims, not_implemented, "interpolate: Got ", dims, "D input, but ", mode,
              " mode needs ", wanted, "D input");
}

}  // namespace

Tensor functional::interpolate(const Tensor& input, const UpsampleOptions& o, bool antialias) {
  check_mode(input, o.mode, o.align_corners.has_value());
  VESTA_CHECK(!antialias || o.mode == "bilinear" || o.mode == "bicubic", value,
              "interpolate: Anti-alias option is restricted to bilinear and bicubic modes");
  VESTA_CHECK(!o.size || !o.scale_factor, value, "interpolate: only one of size or scale_factor should be defined");
  VESTA_CHECK(o.size || o.scale_factor, value, "interpolate: either size or scale_factor should be defined");
  const bool recompute = o.recompute_scale_factor.value_or(false);
  VESTA_CHECK(!recompute || !o.size, value,
              "interpolate: recompute_scale_factor is not meaningful with an explicit size.");
  const auto n = size_t(input.dim() - 2);
  std::vector<int64_t> sizes;
  std::array<std::optional<double>, 3> scales;  // of depth, rows and columns
  if (o.size) {
    sizes = spread("size", *o.size, n);
  } else {
    const std::vector<double> factors = spread("scale_factor", *o.scale_factor, n);
    for (size_t d = 0; d < n; ++d) {
      sizes.push_back(int64_t(std::floor(double(input.size(int64_t(d) + 2)) * factors[d])));
      if (!recompute && o.mode != "area") scales[3 - n + d] = factors[d];
    }
  }
  if (o.mode == "area") {
    if (n == 1) return adaptive_avg_pool1d(input, sizes);
    return n == 2 ? adaptive_avg_pool2d(input, sizes) : adaptive_avg_pool3d(input, sizes);
  }
  return _interpolate(input, sizes, o.mode, o.align_corners.value_or(false), antialias, scales[0], scales[1],
                      scales[2]);
}

Tensor Upsample::forward(const Tensor& input) { return functional::interpolate(input, options); }
std::string Upsample::extra_repr() const { return sizes_text(options.size, options.scale_factor, options.mode); }

Tensor UpsamplingNearest2d::forward(const Tensor& input) {
  return functional::interpolate(input, {.size = options.size, .scale_factor = options.scale_factor});
}
std::string UpsamplingNearest2d::extra_repr() const {
  return sizes_text(options.size, options.scale_factor, "nearest");
}

Tensor UpsamplingBilinear2d::forward(const Tensor& input) {
  return functional::interpolate(
      input, {.size = options.size, .scale_factor = options.scale_factor, .mode = "bilinear", .align_corners = true});
}
std::string UpsamplingBilinear2d::extra_repr() const {
  return sizes_text(options.size, options.scale_factor, "bilinear");
}

Tensor Unfold::forward(const Tensor& input) {
  return im2col(input, options.kernel_size, options.dilation, options.padding, options.stride);
}

Tensor Fold::forward(const Tensor& input) {
  return col2im(input, options.output_size, options.kernel_size, options.dilation, options.padding, options.stride);
}

}  // namespace vesta::nn
