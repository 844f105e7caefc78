// Group normalisation of contiguous inputs and of those with channels last, in one of two ways (GroupNormLaunch).
#include <vesta/cuda/kernels/group_norm.h>

#include <algorithm>
#include <optional>

#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/norm.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

constexpr int64_t kBlocks = 1024;  // so many blocks of the weights' gradient keep the largest GPUs busy

/// The operands as the kernels read them: of one memory format, vectors of the input's dtype or of the statistics'.
struct Groups {
  bool last;  // channels last
  Tensor x, weight, bias;
  DType wide;
  GroupNormLaunch l;

  Groups(const Tensor& input, const Tensor& w, const Tensor& b, const GroupNormShape& shape)
      : last(fitting_format(input, shape)),
        x(dense_image(input, last)),
        weight(ready(w, input.dtype())),
        bias(ready(b, input.dtype())),
        wide(statistics_dtype(input.dtype())) {
    l.images = shape.images, l.channels = shape.channels, l.inner = shape.inner, l.groups = shape.groups;
    l.channels_last = last || shape.inner == 1;
    if (x.numel() == 0) return;
    l.stream = stream_of(x), l.dtype = x.dtype(), l.x = x.impl()->data();
    if (weight.defined()) l.weight = weight.impl()->data(), l.wide_weight = weight.dtype() == wide;
    if (bias.defined()) l.bias = bias.impl()->data(), l.wide_bias = bias.dtype() == wide;
  }
  /// The kernels see [N, C, HxW]: an input of other first dimensions is contiguous.
  static bool fitting_format(const Tensor& input, const GroupNormShape& shape) {
    const bool as_seen = input.dim() > 2 && input.size(0) == shape.images && input.size(1) == shape.channels;
    return as_seen && suggests_channels_last(input);
  }
  static Tensor ready(const Tensor& t, DType dtype) {
    if (!t.defined()) return t;
    const bool known = t.dtype() == dtype || t.dtype() == statistics_dtype(dtype);
    return contiguous_values(known ? t : _to_copy(t, statistics_dtype(dtype)));
  }
  Tensor result() const { return empty_image(x.sizes(), last, x.dtype(), x.device()); }
  /// Sets whether rows of a tile can be loaded at once: of four channels, or of four positions; or 16 bytes.
  void set_packed(std::initializer_list<const char*> pointers) {
    const int64_t bytes = l.by_team() ? std::min<int64_t>(16, kGroupTile * itemsize(l.dtype)) : 16;
    l.packed = (!l.by_team() || (l.channels_last ? l.depth() : l.inner) % kGroupTile == 0) &&
               std::ranges::all_of(
                   pointers, [&](const char* p) { return reinterpret_cast<uintptr_t>(p) % uintptr_t(bytes) == 0; });
  }
};

/// The scratch memory of the three steps.
struct Steps {
  Tensor sums, map;
  explicit Steps(GroupNormLaunch& l, const Device& device, DType wide) {
    const int64_t lanes = group_lanes(itemsize(l.dtype)), most = group_piece(itemsize(l.dtype));
    const auto share = [](int64_t n, int64_t parts) { return (n + parts - 1) / parts; };
    l.piece = share(share(l.inner, share(l.inner, most)), lanes) * lanes, l.pieces = share(l.inner, l.piece);
    sums = empty_tensor(Dims{l.pieces, l.images, l.channels, 2}, DType::float64, device);
    map = empty_tensor(Dims{4, l.images, l.channels}, wide, device);
    l.sums = sums.data_ptr<double>(), l.map = map.impl()->data();
  }
};

TensorTriple group_norm_kernel(const Tensor& input, MaybeTensor weight, MaybeTensor bias, int64_t N, int64_t C,
                               int64_t HxW, int64_t group, double eps) {
  constexpr const char* op = "native_group_norm";
  check_one_device(op, {&input, &*weight, &*bias});
  DeviceGuard guard(input.device().index());
  Groups groups(input, weight, bias, GroupNormShape(op, input, weight, bias, N, C, HxW, group));
  const Tensor y = groups.result();
  const Tensor mean = empty_tensor(Dims{N, group}, groups.wide, input.device());
  const Tensor rstd = empty_tensor(Dims{N, group}, groups.wide, input.device());
  if (y.numel() == 0) return {y, mean, rstd};
  GroupNormLaunch& l = groups.l;
  l.y = y.impl()->data(), l.mean = mean.impl()->data(), l.rstd = rstd.impl()->data(), l.eps = eps;
  groups.set_packed({l.x, l.y});
  std::optional<Steps> steps;
  if (!l.by_team()) steps.emplace(l, input.device(), groups.wide);
  group_norm(l);
  return {y, mean, rstd};
}

TensorTriple group_norm_backward_kernel(const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                        const Tensor& rstd, int64_t N, int64_t C, int64_t HxW, int64_t group) {
  constexpr const char* op = "_group_norm_backward";
  check_one_device(op, {&grad, &input, &*weight, &mean, &rstd});
  DeviceGuard guard(input.device().index());
  Groups groups(input, weight, {}, GroupNormShape(op, input, weight, {}, N, C, HxW, group));
  const Device device = input.device();
  const Tensor gx = groups.result();
  if (gx.numel() == 0) {
    const Tensor none = zeros(Dims{C}, mean.dtype(), device);
    return {gx, none, zeros_like(none)};
  }
  const Tensor g = dense_image(grad.dtype() == input.dtype() ? grad : _to_copy(grad, input.dtype()), groups.last);
  const auto statistic = [&](const Tensor& t) {
    return contiguous_values(t.dtype() == groups.wide ? t : _to_copy(t, groups.wide));
  };
  const Tensor means = statistic(mean), scales = statistic(rstd);
  const Tensor gw = empty_tensor(Dims{C}, groups.wide, device), gb = empty_tensor(Dims{C}, groups.wide, device);
  GroupNormLaunch& l = groups.l;
  l.grad = g.impl()->data(), l.y = gx.impl()->data();
  l.mean = means.impl()->data(), l.rstd = scales.impl()->data();
  l.weight_gradient = gw.impl()->data(), l.bias_gradient = gb.impl()->data();
  groups.set_packed({l.x, l.y, l.grad});
  if (!l.by_team()) {
    const Steps steps(l, device, groups.wide);
    group_norm_backward(l);
    return {gx, gw, gb};
  }
  const int64_t blocks = (C + kGroupTile - 1) / kGroupTile, tiles = N * ((HxW + kGroupTile - 1) / kGroupTile);
  const int64_t most = std::max<int64_t>(1, kBlocks / blocks);
  l.piece = std::max<int64_t>(256, (tiles + most - 1) / most), l.pieces = (tiles + l.piece - 1) / l.piece;
  const Tensor parts = empty_tensor(Dims{l.pieces, 2, C}, groups.wide, device);
  const Tensor counters = empty_tensor(Dims{blocks}, DType::int32, device);
  l.parts = parts.impl()->data(), l.counters = reinterpret_cast<unsigned*>(counters.impl()->data());
  group_norm_backward(l);
  return {gx, gw, gb};
}

}  // namespace

void register_group_norm() {
  ops::native_group_norm.set_kernel(DeviceType::cuda, group_norm_kernel);
  ops::_group_norm_backward.set_kernel(DeviceType::cuda, group_norm_backward_kernel);
}

}  // namespace vesta::cuda
