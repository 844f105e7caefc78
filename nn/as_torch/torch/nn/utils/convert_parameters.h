// All parameters as one vector, and back.
#pragma once
#include <vector>

#include <torch/types.h>

#include <vesta/autograd/accumulate_grad.h>
#include <vesta/core/ops/view.h>

namespace torch::nn::utils {
namespace detail {

inline void check_one_device(const std::vector<Tensor>& parameters) {
  for (const Tensor& p : parameters) {
    TORCH_CHECK(p.device() == parameters[0].device(),
                "Found two parameters on different devices, this is currently not supported.");
  }
}

}  // namespace detail

/// Returns the elements of all parameters, which must be on one device. Gradients flow back.
inline Tensor parameters_to_vector(const std::vector<Tensor>& parameters) {
  detail::check_one_device(parameters);
  std::vector<Tensor> parts;
  for (const Tensor& p : parameters) parts.push_back(vesta::view(p, {-1}));
  return vesta::cat(parts);
}

/// Makes the parameters views of a vector's memory, one after the other.
inline void vector_to_parameters(const Tensor& vec, const std::vector<Tensor>& parameters) {
  detail::check_one_device(parameters);
  const vesta::NoGrad off;
  int64_t start = 0;
  for (const Tensor& p : parameters) {
    const Tensor part = vesta::narrow(vec.detach(), 0, start, p.numel());
    vesta::autograd::replace_memory(p, vesta::view(part, p.sizes()), "vector_to_parameters");
    start += p.numel();
  }
}

}  // namespace torch::nn::utils
