#include <vesta/cuda/lib/cudnn_conv.h>

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <mutex>

#include <vesta/core/dispatch/layer.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/memory_format.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/precision.h>
#include <vesta/cuda/lib/channels_last.h>
#include <vesta/cuda/lib/cudnn_device.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {
namespace {
using cudnn::Direction;

/// Everything a plan depends on, in order.
using ConvKey = std::array<int64_t, 28>;

ConvKey key_of(Direction direction, const ConvDesc& d, const cudnn::Choice& choice) {
  const Window& w = d.window;
  return {int64_t(direction),
          int64_t(d.dtype),
          choice.tensor_cores,
          choice.deterministic,
          d.batch,
          d.channels,
          d.outputs,
          d.groups,
          w.dims,
          w.kernel[0],
          w.kernel[1],
          w.kernel[2],
          w.stride[0],
          w.stride[1],
          w.stride[2],
          w.padding[0],
          w.padding[1],
          w.padding[2],
          w.dilation[0],
          w.dilation[1],
          w.dilation[2],
          w.in[0],
          w.in[1],
          w.in[2],
          w.out[0],
          w.out[1],
          w.out[2],
          int64_t(d.bias) | int64_t(d.residual) << 1 | int64_t(d.relu) << 2};
}

bool may_convolve_with_cudnn() {
  if (!product_settings().convolution_library) return false;
  const cudnn::Loaded& loaded = cudnn::Loaded::get();
  if (loaded.library.usable()) return true;
  if (std::strcmp(rt::implementation(), "CUDA") == 0) {
    warn_once(loaded.library.problem() + " Convolutions use plain kernels, which are slower.");
  }
  return false;
}

/// Returns how the layouts of a convolution's two operands are obtained: backward reads again what forward read, and
/// the weight's gradient reads the gradient that the input's gradient has read.
std::pair<LayoutUse, LayoutUse> layout_uses(Direction direction, const Tensor& first, const Tensor& second) {
  if (direction == Direction::input_gradient) return {{true, false}, {true, true}};
  if (direction == Direction::weight_gradient) return {{true, false}, {true, false}};
  const bool grad = GradMode::enabled();
  return {{false, grad && second.requires_grad()}, {false, grad && first.requires_grad()}};
}

/// Returns the sizes of a tensor whose channels are its last dimension.
Dims behind(const Window& w, int64_t batch, const Spatial& plane, int64_t channels) {
  Dims sizes{batch};
  for (size_t d = w.dims == 3 ? 0 : 1; d < plane.size(); ++d) sizes.push_back(plane[d]);
  sizes.push_back(channels);
  return sizes;
}

/// What a forward convolution adds.
struct Added {
  Tensor bias, residual;
};

/// Convolves with the device's handle locked; returns an undefined tensor, and perhaps a problem for a warning, if
/// cuDNN cannot.
Tensor convolve_locked(Direction direction, const ConvDesc& d, const Tensor& first, const Tensor& second,
                       const Added& added, bool result_channels_last, std::string& problem) {
  const Device device = first.device();
  auto& on = cudnn::PlansOnDevice<ConvKey>::get(device.index());
  std::lock_guard guard(on.lock);
  const Window& v = d.window;
  try {
    on.use(current_stream(device.index()).handle());
    cudnn::Choice choice;
    choice.tensor_cores = d.dtype != DType::float32 || product_settings().convolution_allow_tf32;
    choice.deterministic = direction == Direction::forward || !may_be_nondeterministic();
    std::string why;
    const auto make = [&](const cudnn::Target& target) { return plan_convolution(direction, d, target, choice); };
    const cudnn::Plan* plan = on.plan(key_of(direction, d, choice), make, why);
    if (!plan) {
      if (!why.empty() && !d.bias && !d.residual && !d.relu)  // else the parts are tried one by one
        problem = fmt::format("cuDNN has no algorithm for a convolution of {} ({}); plain kernels are used.",
                              vesta::name(d.dtype), why);
      return {};
    }
    const auto [of_first_use, of_second_use] = layout_uses(direction, first, second);
    const Tensor a = channels_last(first, of_first_use), b = channels_last(second, of_second_use);
    const Dims sizes = direction == Direction::forward          ? behind(v, d.batch, v.out, d.outputs)
                       : direction == Direction::input_gradient ? behind(v, d.batch, v.in, d.channels)
                                                                : behind(v, d.outputs, v.kernel, d.channels / d.groups);
    Tensor result = empty_tensor(sizes, d.dtype, device), workspace;
    if (plan->workspace()) workspace = empty_tensor(Dims{plan->workspace()}, DType::uint8, device);
    // the numbers of plan_convolution: 1 x, 2 w, 3 y
    const int64_t of_result = direction == Direction::forward ? 3 : direction == Direction::input_gradient ? 1 : 2;
    const int64_t of_first = direction == Direction::input_gradient ? 2 : 1;
    // and 4 the bias, 5 the residual
    size_t count = 3;
    std::array<std::pair<int64_t, void*>, 5> pointers = {{{of_first, a.impl()->data()},
                                                          {6 - of_result - of_first, b.impl()->data()},
                                                          {of_result, result.impl()->data()}}};
    Tensor bias, residual;
    if (d.bias) {
      bias = contiguous_values(added.bias);
      if (reinterpret_cast<uintptr_t>(bias.impl()->data()) % 16 != 0) bias = clone(bias);
      pointers[count++] = {4, bias.impl()->data()};
    }
    if (d.residual) {
      residual = channels_last(added.residual, {});
      pointers[count++] = {5, residual.impl()->data()};
    }
    plan->run(on.handle, {pointers.data(), count}, workspace.defined() ? workspace.impl()->data() : nullptr);
    const Tensor as_images = channels_second(result);
    return result_channels_last ? as_images : contiguous_values(as_images);
  } catch (const cudnn::Refused& e) {
    problem = fmt::format("cuDNN refused a convolution ({}); plain kernels are used.", e.what());
    return {};
  }
}

}  // namespace

Tensor convolve(Direction direction, const ConvDesc& d, const Tensor& first, const Tensor& second,
                bool result_channels_last) {
  if (!may_convolve_with_cudnn()) return {};
  std::string problem;
  Tensor result = convolve_locked(direction, d, first, second, {}, result_channels_last, problem);
  if (!problem.empty()) warn_once(problem);  // unlocked: it may wait for Python's lock, and its holder for ours
  return result;
}

Tensor convolve_with(const ConvDesc& d, const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& residual,
                     bool result_channels_last) {
  if (!may_convolve_with_cudnn()) return {};
  std::string problem;
  Tensor result = convolve_locked(Direction::forward, d, x, w, {bias, residual}, result_channels_last, problem);
  if (!problem.empty()) warn_once(problem);
  return result;
}

}  // namespace vesta::cuda
