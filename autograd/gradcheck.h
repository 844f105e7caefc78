// Checks gradients against finite differences.
#pragma once
#include <functional>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::autograd {

/// A function that gradcheck calls: one result (of any shape) from some inputs.
using CheckedFunction = std::function<Tensor(const std::vector<Tensor>&)>;

struct GradcheckOptions {
  double eps = 1e-6;   // step of the central differences
  double atol = 1e-5;
  double rtol = 1e-3;
};

/// Compares the Jacobian of `f` by backward with central differences, at every element of every input that requires
/// grad (float64, or complex128 along the real and the imaginary axis). Raises naming the first entry that differs;
/// returns true. Differences are (f(x + eps) - f(x - eps)) / (2 eps).
VESTA_API bool gradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                         const GradcheckOptions& options = {});
/// Checks the gradient of the gradient: gradcheck of (inputs, g) -> d f / d inputs applied to g, a random direction.
VESTA_API bool gradgradcheck(const CheckedFunction& f, const std::vector<Tensor>& inputs,
                             const GradcheckOptions& options = {});

}  // namespace vesta::autograd
