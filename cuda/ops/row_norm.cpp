// Layer and root mean square normalisation over rows: one kernel forward, two backward. And vectors divided by their
// lengths, one kernel each.
#include <vesta/cuda/kernels/row_norm.h>
#include <vesta/cuda/kernels/unit_vectors.h>

#include <algorithm>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/norm.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

constexpr int64_t kBlocks = 1024;  // so many blocks of the weights' gradient keep the largest GPUs busy

/// The rows of an operand, and the vectors that scale them: of its dtype or of the statistics', as the kernels read
/// them.
struct Rows {
  Tensor x;
  DType wide;
  Tensor weight, bias;  // of x's dtype, or both of the statistics'
  int64_t n;
  Dims statistics;
  LayerNormLaunch l;

  Rows(const char* op, const Tensor& input, IntSpan shape, const Tensor& w, const Tensor& b)
      : x(contiguous_values(input)),
        wide(statistics_dtype(input.dtype())),
        weight(ready(w, input.dtype(), b)),
        bias(ready(b, input.dtype(), w)),
        n(check_row_norm(op, input, shape, w, b)),
        statistics(input.sizes()) {
    std::fill(statistics.end() - std::ptrdiff_t(shape.size()), statistics.end(), 1);
    if (x.numel() == 0) return;
    l.stream = stream_of(x), l.dtype = x.dtype();
    l.x = x.impl()->data(), l.n = n, l.rows = x.numel() / n;
    if (weight.defined()) l.weight = weight.impl()->data(), l.wide_vectors = weight.dtype() == wide;
    if (bias.defined()) l.bias = bias.impl()->data(), l.wide_vectors = bias.dtype() == wide;
  }
  Tensor ready(const Tensor& t, DType dtype, const Tensor& other) const {
    if (!t.defined()) return t;
    const bool narrow = t.dtype() == dtype && (!other.defined() || other.dtype() == dtype);
    return contiguous_values(narrow || t.dtype() == wide ? t : _to_copy(t, wide));
  }
};

/// Returns a contiguous tensor, or a copy if it does not begin at a multiple of 16 bytes: which kernel runs, and so the
/// last bits, depends on the shape alone.
Tensor aligned(const Tensor& t) {
  if (!t.defined() || reinterpret_cast<uintptr_t>(t.impl()->data()) % 16 == 0) return t;
  Tensor copy = empty_tensor(t.sizes(), t.dtype(), t.device());
  copy_values(copy, t);
  return copy;
}

TensorTriple layer_norm_kernel(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeTensor bias,
                               double eps) {
  DeviceGuard guard(input.device().index());
  Rows rows("layer_norm", input, normalized_shape, weight, bias);
  const Tensor y = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (y.numel() == 0) {
    const Tensor none = zeros(rows.statistics, rows.wide, input.device());
    return {y, none, zeros_like(none)};
  }
  const Tensor mean = empty_tensor(rows.statistics, rows.wide, input.device());
  const Tensor rstd = empty_tensor(rows.statistics, rows.wide, input.device());
  LayerNormLaunch& l = rows.l;
  l.y = y.impl()->data(), l.mean = mean.impl()->data(), l.rstd = rstd.impl()->data(), l.eps = eps;
  l.packed = rows_are_packs(l.n, l.dtype, {l.x, l.y, l.weight, l.bias});
  layer_norm(l);
  return {y, mean, rstd};
}

TensorPair rms_norm_kernel(const Tensor& input, IntList normalized_shape, MaybeTensor weight, MaybeDouble eps) {
  DeviceGuard guard(input.device().index());
  Rows rows("rms_norm", input, normalized_shape, weight, {});
  const Tensor y = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (y.numel() == 0) return {y, zeros(rows.statistics, rows.wide, input.device())};
  const Tensor rstd = empty_tensor(rows.statistics, rows.wide, input.device());
  LayerNormLaunch& l = rows.l;
  l.y = y.impl()->data(), l.rstd = rstd.impl()->data(), l.eps = eps ? *eps : rms_norm_eps(input.dtype());
  l.packed = rows_are_packs(l.n, l.dtype, {l.x, l.y, l.weight, l.bias});
  layer_norm(l);
  return {y, rstd};
}

/// Returns the gradients of the input, the weight and the bias; without a mean those of rms_norm, without a bias.
TensorTriple row_gradients(const char* op, const Tensor& grad, const Tensor& input, IntSpan normalized_shape,
                           const Tensor& weight, const Tensor& mean, const Tensor& rstd) {
  DeviceGuard guard(input.device().index());
  Rows rows(op, aligned(contiguous_values(input)), normalized_shape, aligned(weight), {});
  const Device device = input.device();
  const Tensor gx = empty_tensor(input.sizes(), input.dtype(), device);
  if (gx.numel() == 0) {
    const Tensor none = zeros(normalized_shape, rstd.dtype(), device);
    return {gx, none, zeros_like(none)};
  }
  const Tensor g = aligned(contiguous_values(grad.dtype() == input.dtype() ? grad : _to_copy(grad, input.dtype())));
  const auto statistic = [&](const Tensor& t) {
    return !t.defined() ? t : contiguous_values(t.dtype() == rows.wide ? t : _to_copy(t, rows.wide));
  };
  const Tensor means = statistic(mean), scales = statistic(rstd);
  const Tensor gw = empty_tensor(normalized_shape, rows.wide, device);
  const Tensor gb = mean.defined() ? empty_tensor(normalized_shape, rows.wide, device) : Tensor();
  LayerNormGradientLaunch launch;
  LayerNormLaunch& l = launch.base = rows.l;
  l.y = gx.impl()->data(), l.rstd = scales.impl()->data();
  if (mean.defined()) l.mean = means.impl()->data(), launch.bias_gradient = gb.impl()->data();
  launch.grad = g.impl()->data();
  l.packed = rows_are_packs(l.n, l.dtype, {l.x, l.y, l.weight, launch.grad});
  const int64_t tiles = (l.n + kNormTile - 1) / kNormTile, most = std::max<int64_t>(1, kBlocks / tiles);
  if (launch.reads_once()) {
    launch.tiles = NormTiles(l.rows, l.n), launch.pieces = launch.tiles.blocks;
  } else {
    launch.piece = std::max<int64_t>(32, (l.rows + most - 1) / most);
    launch.pieces = (l.rows + launch.piece - 1) / launch.piece;
  }
  const Tensor parts = empty_tensor(Dims{launch.pieces, 2, l.n}, rows.wide, device);
  const Tensor counters = empty_tensor(Dims{tiles}, DType::int32, device);
  launch.parts = parts.impl()->data(), launch.counters = reinterpret_cast<unsigned*>(counters.impl()->data());
  launch.weight_gradient = gw.impl()->data();
  layer_norm_backward(launch);
  return {gx, gw, gb};
}

TensorTriple layer_norm_backward_kernel(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                        MaybeTensor weight, const Tensor& mean, const Tensor& rstd) {
  check_one_device("_layer_norm_backward", {&grad, &input, &*weight, &mean, &rstd});
  return row_gradients("layer_norm", grad, input, normalized_shape, weight, mean, rstd);
}

TensorPair rms_norm_backward_kernel(const Tensor& grad, const Tensor& input, IntList normalized_shape,
                                    MaybeTensor weight, const Tensor& rstd) {
  check_one_device("_rms_norm_backward", {&grad, &input, &*weight, &rstd});
  auto [gx, gw, gb] = row_gradients("rms_norm", grad, input, normalized_shape, weight, {}, rstd);
  return {gx, gw};
}

/// Returns a launch over vectors of x along `dim`.
UnitVectors launch_of(const Tensor& x, int64_t dim, double eps, bool raises_value, const Tensor& out,
                      const Tensor& size) {
  UnitVectors l;
  l.dtype = x.dtype(), l.stream = stream_of(x), l.eps = eps, l.raises_value = raises_value, l.length = x.size(dim);
  for (int64_t i = 0; i < x.dim(); ++i) (i < dim ? l.outer : l.inner) *= i == dim ? 1 : x.size(i);
  l.x = x.impl()->data(), l.out = out.impl()->data(), l.size = size.impl()->data();
  return l;
}

/// Returns whether a tensor has so few long vectors that reductions over pieces of them are faster, and more exact,
/// than a block for each.
bool has_few_long(const Tensor& x, int64_t dim) {
  const int64_t n = x.size(wrap_dim(dim, x.dim(), "_unit_vectors"));
  return n > 65536 && x.numel() / n < 128;
}

TensorPair unit_vectors(const Tensor& input, int64_t dim, double eps, bool raises_value) {
  if (input.dim() == 0 || input.numel() == 0 || has_few_long(input, dim))
    return ops::_unit_vectors.body()(input, dim, eps, raises_value);
  const OperandDevice device(input);
  const int64_t d = wrap_dim(dim, input.dim(), "_unit_vectors");
  const Tensor x = contiguous_values(input);
  Dims kept(x.sizes());
  kept[size_t(d)] = 1;
  Tensor out = empty_tensor(x.sizes(), x.dtype(), x.device());
  Tensor size = empty_tensor(kept, statistics_dtype(x.dtype()), x.device());
  run_unit_vectors(launch_of(x, d, eps, raises_value, out, size));
  return {out, size};
}

Tensor unit_vectors_backward(const Tensor& grad, const Tensor& input, const Tensor& size, int64_t dim, double eps,
                             bool raises_value) {
  const bool same = grad.dtype() == input.dtype() && size.dtype() == statistics_dtype(input.dtype()) &&
                    std::ranges::equal(grad.sizes(), input.sizes());
  if (!same || input.dim() == 0 || input.numel() == 0 || has_few_long(input, dim)) {
    return ops::_unit_vectors_backward.body()(grad, input, size, dim, eps, raises_value);
  }
  const OperandDevice device(input);
  const Tensor x = contiguous_values(input), g = contiguous_values(grad), sizes = contiguous_values(size);
  Tensor out = empty_tensor(x.sizes(), x.dtype(), x.device());
  UnitVectors l = launch_of(x, wrap_dim(dim, x.dim(), "_unit_vectors"), eps, raises_value, out, sizes);
  l.grad = g.impl()->data();
  run_unit_vectors_gradient(l);
  return out;
}

}  // namespace

void register_row_norm() {
  ops::native_layer_norm.set_kernel(DeviceType::cuda, layer_norm_kernel);
  ops::_layer_norm_backward.set_kernel(DeviceType::cuda, layer_norm_backward_kernel);
  ops::_fused_rms_norm.set_kernel(DeviceType::cuda, rms_norm_kernel);
  ops::_rms_norm_backward.set_kernel(DeviceType::cuda, rms_norm_backward_kernel);
  ops::_unit_vectors.set_kernel(DeviceType::cuda, unit_vectors);
  ops::_unit_vectors_backward.set_kernel(DeviceType::cuda, unit_vectors_backward);
}

}  // namespace vesta::cuda
