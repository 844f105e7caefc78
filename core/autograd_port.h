// The port that autograd fills: the function pointers that Tensor's own methods need.
#pragma once
#include <vesta/core/tensor.h>

namespace vesta {

/// A table that the autograd level fills when the library starts. Core calls it for the methods of the same names.
struct AutogradPort {
  void (*backward)(const Tensor& t, const Tensor& gradient, bool retain_graph, bool create_graph) = nullptr;
  Tensor (*grad)(const Tensor& t) = nullptr;
  void (*set_grad)(const Tensor& t, const Tensor& grad) = nullptr;
  bool (*requires_grad)(const Tensor& t) = nullptr;
  void (*set_requires_grad)(const Tensor& t, bool on) = nullptr;
  bool (*is_leaf)(const Tensor& t) = nullptr;
  /// Gives `t` the geometry and the history of a view of it, by an in-place op of that name.
  void (*become_view)(const Tensor& t, const Tensor& view, const char* op) = nullptr;
  /// Raises where `t` may not be written in place while gradients are on (a leaf that requires one, or a view of one).
  void (*check_inplace)(const Tensor& t, const char* op) = nullptr;
  /// Returns the end of repr(): `requires_grad=True`, `grad_fn=<AddBackward0>` or nothing.
  std::string (*repr_suffix)(const Tensor& t) = nullptr;
  /// Shows the node that made `t` by another name, a literal.
  void (*name_step)(const Tensor& t, const char* name) = nullptr;
  /// Lets the gradient that passes the node that made `t` have a gradient of zero with respect to its input.
  void (*flatten_step)(const Tensor& t) = nullptr;
};
extern VESTA_API AutogradPort autograd_port;

/// Registers all built-in parts (ops, CPU, autograd); runs once, when the library is loaded.
VESTA_API void initialize();

}  // namespace vesta
