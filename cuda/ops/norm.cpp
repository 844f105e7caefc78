// Batch normalisation. The running statistics are updated on the device.
#include <vesta/cuda/kernels/norm.h>

#include <algorithm>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/norm.h>
#include <vesta/cuda/device.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

// Elements of a channel that a block sums, a multiple of the least, and how many blocks are wanted. Of pixels, whose
// channels lie side by side, a block sums up to 32 packs of channels and has many elements in flight: two blocks on
// each multiprocessor of the largest GPUs, once over.
struct Pieces {
  int64_t most, least, blocks;
};
constexpr Pieces kRunPieces{16384, 1024, 512}, kPixelPieces{1024, 32, 264};

ChannelVector vector_of(const Tensor& t) {
  if (!t.defined()) return {};
  return {t.impl()->data(), t.dtype(), t.strides()[0]};
}

/// Returns whether 16 bytes can be loaded at once from all of these.
bool are_aligned(std::initializer_list<const char*> pointers) {
  return std::ranges::all_of(pointers, [](const char* p) { return reinterpret_cast<uintptr_t>(p) % 16 == 0; });
}

/// A launch and its scratch memory. Pieces depend on the shape alone: any GPU gives the same bits.
struct Launch {
  BatchNormLaunch l;
  Tensor sums, map;
  Launch(const Tensor& x, const BatchNormShape& shape, const Tensor& y, bool channels_last) {
    l.stream = stream_of(x), l.dtype = x.dtype();
    l.x = x.impl()->data(), l.y = y.impl()->data();
    l.batch = shape.batch, l.channels = shape.channels, l.inner = shape.inner;
    if (channels_last) l.batch = shape.count(), l.inner = 1;  // pixels are rows of channels
    const Pieces& want = l.inner == 1 ? kPixelPieces : kRunPieces;
    const int64_t pack = 16 / itemsize(l.dtype), groups = l.channels % pack == 0 ? l.channels / pack : l.channels;
    const int64_t tiles = l.inner == 1 ? (groups + 31) / 32 : l.channels;
    const auto share = [](int64_t n, int64_t parts) { return (n + parts - 1) / parts; };
    const int64_t even = share(shape.count(), std::max<int64_t>(1, want.blocks / std::max<int64_t>(1, tiles)));
    l.piece = std::clamp(share(even, want.least) * want.least, want.least, want.most);
    l.pieces = std::max<int64_t>(1, share(shape.count(), l.piece));
    const int64_t sizes[] = {l.channels, l.pieces, 3};
    sums = empty_tensor(sizes, DType::float64, x.device());
    map = empty_tensor(Dims{4, l.channels}, statistics_dtype(l.dtype), x.device());
    l.sums = sums.data_ptr<double>(), l.map = static_cast<char*>(map.impl()->data());
  }
};

/// Returns the result, the mean and 1 / sqrt(var + eps): those of the running statistics in evaluation.
TensorTriple normalize(const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                       MaybeTensor running_var, bool training, double momentum, double eps) {
  const BatchNormShape shape = batch_norm_shape(input, weight, bias, running_mean, running_var, training);
  DeviceGuard guard(input.device().index());
  const bool last = suggests_channels_last(input);
  Tensor x = dense_image(input, last), y = empty_image(x.sizes(), last, x.dtype(), x.device());
  const DType stats = statistics_dtype(x.dtype());
  Tensor mean = empty_tensor({&shape.channels, 1}, stats, x.device());
  Tensor invstd = empty_tensor({&shape.channels, 1}, stats, x.device());
  Launch run(x, shape, y, last);
  BatchNormLaunch& l = run.l;
  l.training = training, l.update = shape.update, l.momentum = momentum, l.eps = eps;
  l.weight = vector_of(weight), l.bias = vector_of(bias);
  l.running_mean = vector_of(running_mean), l.running_var = vector_of(running_var);
  l.mean = vector_of(mean), l.invstd = vector_of(invstd);
  l.packed = are_aligned({l.x, l.y});
  batch_norm(l);
  if (shape.update) {
    running_mean->impl()->bump("batch_norm");
    running_var->impl()->bump("batch_norm");
  }
  return {y, mean, invstd};
}

TensorTriple batch_norm_kernel(const Tensor& input, MaybeTensor weight, MaybeTensor bias, MaybeTensor running_mean,
                               MaybeTensor running_var, bool training, double momentum, double eps) {
  TensorTriple r = normalize(input, weight, bias, running_mean, running_var, training, momentum, eps);
  if (training) return r;
  const Tensor none = empty_tensor(Dims{0}, std::get<1>(r).dtype(), input.device());  // as PyTorch has it
  return {std::get<0>(r), none, none};
}

TensorTriple batch_norm_evaluation_kernel(const Tensor& input, MaybeTensor weight, MaybeTensor bias,
                                          const Tensor& running_mean, const Tensor& running_var, double eps) {
  return normalize(input, weight, bias, running_mean, running_var, false, 0, eps);
}

TensorTriple batch_norm_backward_kernel(const Tensor& grad, const Tensor& input, MaybeTensor weight, const Tensor& mean,
                                        const Tensor& invstd, bool training) {
  check_one_device("_batch_norm_backward", {&grad, &input, &*weight, &mean, &invstd});
  DeviceGuard guard(input.device().index());
  const bool last = suggests_channels_last(input);
  Tensor x = dense_image(input, last);
  Tensor g = dense_image(grad.dtype() == x.dtype() ? grad : _to_copy(grad, x.dtype()), last);
  const BatchNormShape shape(x);
  Tensor gx = empty_image(x.sizes(), last, x.dtype(), x.device());
  Tensor gw = empty_tensor({&shape.channels, 1}, mean.dtype(), x.device());
  Tensor gb = empty_tensor({&shape.channels, 1}, mean.dtype(), x.device());
  Launch run(x, shape, gx, last);
  BatchNormLaunch& l = run.l;
  l.grad = g.impl()->data(), l.training = training;
  l.weight = vector_of(weight), l.mean = vector_of(mean), l.invstd = vector_of(invstd);
  l.weight_gradient = vector_of(gw), l.bias_gradient = vector_of(gb);
  l.packed = are_aligned({l.x, l.y, l.grad});
  batch_norm(l);
  return {gx, gw, gb};
}

}  // namespace

void register_norm() {
  ops::native_batch_norm.set_kernel(DeviceType::cuda, batch_norm_kernel);
  ops::_batch_norm_evaluation.set_kernel(DeviceType::cuda, batch_norm_evaluation_kernel);
  ops::_batch_norm_backward.set_kernel(DeviceType::cuda, batch_norm_backward_kernel);
}

}  // namespace vesta::cuda
