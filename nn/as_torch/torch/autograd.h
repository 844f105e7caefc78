// torch::autograd: gradients, and functions with a backward of their own.
#pragma once
#include <torch/demangle.h>
#include <torch/ivalue.h>

#include <any>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include <vesta/autograd/function.h>

namespace torch::autograd {

using Variable = Tensor;
using variable_list = std::vector<Variable>;
using tensor_list = variable_list;
using vesta::autograd::Node;

inline void backward(const variable_list& tensors, const variable_list& grad_tensors = {},
                     optional<bool> retain_graph = {}, bool create_graph = false, const variable_list& inputs = {}) {
  vesta::backward(tensors, grad_tensors, retain_graph, create_graph, inputs);
}
inline variable_list grad(const variable_list& outputs, const variable_list& inputs,
                          const variable_list& grad_outputs = {}, optional<bool> retain_graph = {},
                          bool create_graph = false, bool allow_unused = false) {
  return vesta::grad(outputs, inputs, grad_outputs, retain_graph, create_graph, allow_unused);
}

/// Raises where a backward gives NaN, and names the step, within its scope.
class DetectAnomalyGuard {
 public:
  explicit DetectAnomalyGuard(bool check_nan = true) : before_(vesta::autograd::detect_anomaly()) {
    vesta::autograd::set_detect_anomaly(true, check_nan);
  }
  ~DetectAnomalyGuard() { vesta::autograd::set_detect_anomaly(before_); }
  DetectAnomalyGuard(const DetectAnomalyGuard&) = delete;

 private:
  bool before_;
};

/// What forward() of a Function keeps for backward().
class AutogradContext {
 public:
  AutogradContext() = default;
  AutogradContext(const AutogradContext&) = delete;

  std::unordered_map<std::string, IValue> saved_data;
  void save_for_backward(variable_list to_save) { context_->save_for_backward(std::move(to_save)); }
  variable_list get_saved_variables() const { return context_->saved(); }
  void mark_dirty(const variable_list& inputs) { context_->mark_dirty(inputs); }
  void mark_non_differentiable(const variable_list& outputs) { context_->mark_non_differentiable(outputs); }
  void set_materialize_grads(bool on) { context_->set_materialize_grads(on); }
  /// Returns whether the tensor number `i` among the arguments needs a gradient.
  bool needs_input_grad(size_t i) const { return context_->needs_input_grad(i); }

 private:
  template <class>
  friend struct Function;
  vesta::autograd::Context* context_ = nullptr;
  std::vector<bool> is_tensor_;  // an argument of forward()
};

/// The base of a function F with `static Tensor forward(AutogradContext*, arguments...)` (or variable_list) and
/// `static variable_list backward(AutogradContext*, variable_list)`, which returns a gradient for each argument.
template <class F>
struct Function {
  template <class X = F, class... Args>
  static auto apply(Args&&... args) {
    variable_list inputs;
    auto kept = std::make_shared<AutogradContext>();
    const auto collect = [&](const auto& v) {
      using T = std::remove_cvref_t<decltype(v)>;
      const auto add = [&](const Tensor& t) {
        kept->is_tensor_.push_back(true);
        inputs.push_back(t);
      };
      if constexpr (std::is_convertible_v<const T&, const Tensor&>) {
        add(v);
      } else if constexpr (std::is_same_v<T, variable_list>) {
        for (const Tensor& t : v) add(t);
      } else if constexpr (std::is_same_v<T, optional<Tensor>>) {
        if (v) add(*v);
        else kept->is_tensor_.push_back(false);
      } else {
        kept->is_tensor_.push_back(false);
      }
    };
    (collect(args), ...);
    using vesta::autograd::CustomNode;
    static const std::string name = "torch::autograd::CppNode<" + c10::demangle(typeid(F).name()) + ">";
    vesta::intrusive_ptr<CustomNode> node(new CustomNode(name.c_str(), &run_backward));
    kept->context_ = &node->context();
    node->context().values["torch"] = kept;
    node->prepare(inputs);
    auto result = [&] {
      const vesta::NoGrad off;
      return X::forward(kept.get(), std::forward<Args>(args)...);
    }();
    if constexpr (std::is_convertible_v<decltype(result), Tensor>) {
      Tensor one = result;
      node->finish(inputs, {&one, 1});
      return one;
    } else {
      node->finish(inputs, result);
      return result;
    }
  }

 private:
  static variable_list run_backward(vesta::autograd::Context& context, const variable_list& grads) {
    auto& kept = std::any_cast<std::shared_ptr<AutogradContext>&>(context.values.at("torch"));
    variable_list all = F::backward(kept.get(), grads), of_tensors;
    const std::vector<bool>& is_tensor = kept->is_tensor_;
    const size_t tensors = size_t(std::count(is_tensor.begin(), is_tensor.end(), true));
    TORCH_CHECK(all.size() >= is_tensor.size() || all.size() == tensors, "backward: expected a gradient for each of ",
                is_tensor.size(), " arguments of forward, got ", all.size(), ".");
    if (all.size() == tensors) return all;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i < is_tensor.size() && is_tensor[i]) of_tensors.push_back(all[i]);
      else TORCH_CHECK(!all[i].defined(), "backward: argument ", i, " of forward is no tensor, but has a gradient.");
    }
    return of_tensors;
  }
};

}  // namespace torch::autograd
