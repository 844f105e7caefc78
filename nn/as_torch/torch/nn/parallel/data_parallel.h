// Data parallelism in one process: the module's copies on several devices compute a part of the batch each.
#pragma once
#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <torch/types.h>

#include <torch/nn/module.h>

#include <vesta/core/ops/copy.h>

namespace torch::nn {

/// What the functions of parallel modules see of a module.
struct ModuleAccess {
  /// Makes the tensors of replicas results of the original's: their gradients add up in it.
  static void tie(Module& from, const std::vector<std::shared_ptr<Module>>& replicas) {
    for (const auto& replica : replicas) {
      const auto tie_all = [](auto& own, auto& made) {
        for (auto& entry : own) {
          if (!entry.value().defined() || !entry.value().requires_grad()) continue;
          Tensor& copy = made[entry.key()];
          copy.set_requires_grad(false);
          vesta::copy_(copy, entry.value());
        }
      };
      tie_all(from.parameters_, replica->parameters_);
      tie_all(from.buffers_, replica->buffers_);
    }
    for (auto& child : from.children_) {
      std::vector<std::shared_ptr<Module>> below;
      for (const auto& replica : replicas) below.push_back(replica->children_[child.key()]);
      tie(*child.value(), below);
    }
  }
};

namespace parallel {

/// Returns copies of a module on devices. Their gradients are added to those of the module.
template <class M>
std::vector<std::shared_ptr<M>> replicate(const std::shared_ptr<M>& module, const std::vector<Device>& devices) {
  std::vector<std::shared_ptr<M>> replicas;
  for (const Device& device : devices) replicas.push_back(std::dynamic_pointer_cast<M>(module->clone(device)));
  ModuleAccess::tie(*module, {replicas.begin(), replicas.end()});
  return replicas;
}
template <class M>
std::vector<ModuleHolder<M>> replicate(const ModuleHolder<M>& module, const std::vector<Device>& devices) {
  const auto replicas = replicate(module.ptr(), devices);
  return {replicas.begin(), replicas.end()};
}

/// Calls each module with the input of its number, in a thread each; returns the results, on `devices` or where the
/// inputs are. The first error of a thread is raised here.
template <class M>
std::vector<Tensor> parallel_apply(std::vector<M>& modules, const std::vector<Tensor>& inputs,
                                   const std::optional<std::vector<Device>>& devices = std::nullopt) {
  TORCH_CHECK(modules.size() == inputs.size(), "Must have as many inputs as modules");
  TORCH_CHECK(!devices || modules.size() == devices->size(), "Must have as many devices as modules");
  std::vector<Tensor> outputs(modules.size());
  std::vector<std::exception_ptr> errors(modules.size());
  const bool recorded = vesta::GradMode::enabled();
  {
    std::vector<std::jthread> threads;
    for (size_t i = 0; i < modules.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          const vesta::GradMode mode(recorded);
          outputs[i] = modules[i]->forward(inputs[i]).to(devices ? (*devices)[i] : inputs[i].device());
        } catch (...) {
          errors[i] = std::current_exception();
        }
      });
    }
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return outputs;
}

/// Calls a module with a batch whose parts along `dim` are computed on several devices (all GPUs unless given), by
/// copies of the module; returns the results as one tensor on `output_device`, the first of them unless given.
template <class M>
Tensor data_parallel(M module, Tensor input, std::optional<std::vector<Device>> devices = std::nullopt,
                     std::optional<Device> output_device = std::nullopt, int64_t dim = 0) {
  if (!devices) {
    const size_t count = torch::cuda::device_count();
    TORCH_CHECK(count > 0, "Expected at least one CUDA device to be available");
    devices.emplace();
    for (size_t i = 0; i < count; ++i) devices->push_back(Device(kCUDA, DeviceIndex(i)));
  }
  TORCH_CHECK(!devices->empty(), "data_parallel: expected one or more devices, got none");
  const Device home = output_device.value_or(devices->front());
  if (devices->size() == 1) {
    module->to(devices->front());
    return module->forward(input.to(devices->front())).to(home);
  }
  std::vector<Tensor> parts = vesta::chunk(input, int64_t(devices->size()), dim);
  devices->resize(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = parts[i].to((*devices)[i]);
  auto replicas = replicate(module, *devices);
  std::vector<Tensor> outputs = parallel_apply(replicas, parts, *devices);
  for (Tensor& output : outputs) output = output.to(home);
  return vesta::cat(outputs, dim);
}

}  // namespace parallel
}  // namespace torch::nn
