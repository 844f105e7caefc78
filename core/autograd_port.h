// The port that autograd fills: what Tensor's own methods need of it, as function pointers.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// Is filled by the autograd storey when the library starts. Core calls it for the methods of the same names.
struct AutogradPort {
  void (*backward)(const Tensor& t, const Tensor& gradient, bool retain_graph, bool create_graph) = nullptr;
  Tensor (*grad)(const Tensor& t) = nullptr;
  void (*set_grad)(const Tensor& t, const Tensor& grad) = nullptr;
  bool (*requires_grad)(const Tensor& t) = nullptr;
  void (*set_requires_grad)(const Tensor& t, bool on) = nullptr;
  bool (*is_leaf)(const Tensor& t) = nullptr;
  /// Returns what repr() ends in: `requires_grad=True`, `grad_fn=<AddBackward0>` or nothing.
  std::string (*repr_suffix)(const Tensor& t) = nullptr;
};
extern VESTA_API AutogradPort autograd_port;

/// Plugs all built-in parts in (ops, CPU, autograd); runs once when the library is loaded.
VESTA_API void initialize();

}  // namespace vesta
