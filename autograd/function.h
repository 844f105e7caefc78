// Custom functions: a user's forward and backward as one step of the tape.
//
// clang-format off
//   struct Cube : vesta::autograd::Function<Cube> {
//     static Tensor forward(Context& ctx, const Tensor& x) { ctx.save_for_backward({x}); return x * x * x; }
//     static TensorVector backward(Context& ctx, const TensorVector& g) {
//       return {g[0] * 3 * ctx.saved()[0].square()};
//     }
//   };
//   Tensor y = Cube::apply(x);
// clang-format on
#pragma once
#include <any>
#include <map>

#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/saved.h>

namespace vesta::autograd {

/// Connects the outputs of a custom forward (which ran without recording) to `node`: sets its edges from `inputs` and
/// gives every differentiable output its history; an output that is an input is replaced by a view of it, unless it is
/// listed in `dirty` (modified in place: its history is rebased). Integer outputs and those in `non_differentiable`
/// stay plain. `inputs` are all tensor arguments of forward; gradients come back in their order. Call it with grad
/// mode on, after the forward; without an input that requires grad it only strips history.
VESTA_API void record_function(const intrusive_ptr<FunctionNode>& node, std::span<const Tensor> inputs,
                               std::span<Tensor> outputs, std::span<const Tensor> dirty = {},
                               std::span<const Tensor> non_differentiable = {});
/// Returns whether recording is on and some input requires grad.
VESTA_API bool any_requires_grad(std::span<const Tensor> inputs);

/// The context that forward and backward of a custom function receive.
class VESTA_API Context {
 public:
  /// Saves inputs or outputs of forward for backward (undefined tensors too).
  void save_for_backward(std::vector<Tensor> tensors) { to_save_ = std::move(tensors); }
  /// Returns what was saved; raises after it was released or when one was overwritten since.
  std::vector<Tensor> saved() const;
  /// Declares inputs that forward modified in place.
  void mark_dirty(std::vector<Tensor> tensors) { dirty_ = std::move(tensors); }
  /// Declares outputs without a gradient.
  void mark_non_differentiable(std::vector<Tensor> tensors) { non_differentiable_ = std::move(tensors); }
  /// Sets whether backward gets zeros (the default) or undefined tensors for outputs that got no gradient.
  void set_materialize_grads(bool on) { materialize_ = on; }
  /// Returns whether input `i` needs a gradient.
  bool needs_input_grad(size_t i) const { return needs_[i]; }
  /// Values that are not tensors, from forward to backward.
  std::map<std::string, std::any> values;

 private:
  friend class CustomNode;
  std::vector<Tensor> to_save_, dirty_, non_differentiable_;
  std::vector<Saved> saved_;
  Needs needs_{0};
  bool materialize_ = true;
  bool released_ = false;
};

/// The node of a custom C++ function.
class VESTA_API CustomNode final : public FunctionNode {
 public:
  using Backward = std::vector<Tensor> (*)(Context& ctx, const std::vector<Tensor>& grads);
  CustomNode(const char* name, Backward backward) : name_(name), backward_(backward) {}
  GradList apply(GradList grads, Needs needs) override;
  std::string name() const override { return name_; }
  void release_saved() override;
  Context& context() { return context_; }
  /// Records which inputs need a gradient, before forward runs.
  void prepare(std::span<const Tensor> inputs);
  /// Saves tensors and connects the outputs after forward has run.
  void finish(std::span<const Tensor> inputs, std::span<Tensor> outputs);

 private:
  const char* name_;
  Backward backward_;
  Context context_;
};

/// The base of custom functions: F has static forward(Context&, ...) returning a Tensor or TensorVector, and static
/// TensorVector backward(Context&, const TensorVector& grads) with one gradient per tensor argument of forward.
template <class F>
class Function {
 public:
  /// Runs forward without recording it, then records the call as one node.
  template <class... A>
  static auto apply(const A&... a) {
    std::vector<Tensor> inputs;
    auto collect = [&](const auto& v) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(v)>, Tensor>) inputs.push_back(v);
    };
    (collect(a), ...);
    intrusive_ptr<CustomNode> node(new CustomNode(function_name(), &F::backward));
    node->prepare(inputs);
    auto run = [&] {
      NoGrad off;
      return F::forward(node->context(), a...);
    };
    auto result = run();
    if constexpr (std::is_same_v<decltype(result), Tensor>) {
      node->finish(inputs, {&result, 1});
    } else {
      node->finish(inputs, result);
    }
    return result;
  }

 private:
  static const char* function_name() {
    if constexpr (requires { F::name; }) return F::name;
    else return "CustomFunctionBackward";
  }
};

}  // namespace vesta::autograd
