// Recording: the functions that fill the autograd slot of ops. A rule file (rules/TOPIC.cpp) uses these templates only.
//
// clang-format off
//   struct MatmulRule {                                  // its members are what is saved
//     Saved a, b;
//     static MatmulRule save(const Tensor& result, const Tensor& a, const Tensor& b, Needs needs);
//     Grads<2> operator()(const Tensor& g, Needs needs) const;   // one gradient per tensor argument, in order
//   };
//   record<ops::matmul, MatmulRule>();
// clang-format on
//
// `save` gets the op's result, its arguments, and the set of tensor arguments that need a gradient; a rule without
// members needs no `save`. operator() may return Grads<N>, a Tensor (one input) or a GradList; gradients past its end
// are zero. For an op with several results it takes `const GradList&` instead, where an entry may be undefined (no
// gradient came). It does not broadcast, cast or check requires_grad: the engine sums and casts, and an undefined entry
// is a gradient of zero.
//
// A rule may declare
// clang-format off
//   static constexpr bool lists = true;       a TensorList argument counts as that many tensor arguments (cat); without
//                                             it lists hold indices and have no gradient
//   static constexpr unsigned results = 0b1;  which results of several have a gradient; default: those of a float dtype
//   static bool takes(const PointwiseInfo&);  whether operator()(const PendingGradient&, Needs) can take it instead
//   bool fuses_previous(const LeadingActivation&) const;
//                                             whether operator()(g, Needs, const PendingGradient& before) can return
//                                             for input 0 the gradient of what the activation before was computed from
//   LeadingActivation leading() const;        the activation whose gradient operator() computes first, from
//                                             leading_operands(); rest(g, Needs, before or null) does what is left
//   const char* known_op() const;             the op's name as a program knows it, for errors; default: known_name()
// clang-format on
#pragma once
#include <array>

#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/pending.h>
#include <vesta/autograd/saved.h>
#include <vesta/core/dispatch/known_name.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/pointwise.h>
#include <vesta/core/ops/pointwise_traits.h>

namespace vesta::autograd {

/// The gradients of N tensor arguments.
template <size_t N>
using Grads = std::array<Tensor, N>;

/// The number of tensors this thread has saved: a node that saved none can run twice.
extern VESTA_API constinit thread_local uint32_t saves_made __attribute__((tls_model("initial-exec")));

namespace recording {

/// A visitor of a call's arguments that finds which tensor arguments need a gradient.
template <bool lists>
struct Wants {
  uint64_t mask = 0;
  uint32_t count = 0;
  bool any = false;
  bool in_list = false;
  void see(const Tensor& t) {
    if (requires_grad(t)) {
      any = true;
      if (count < 64) mask |= uint64_t(1) << count;
    }
    ++count;
  }
  void see(const TensorList& l) {
    for (const Tensor& t : l) {
      if constexpr (lists) see(t);
      else in_list = in_list || requires_grad(t);
    }
  }
  template <dispatch::Plain T>
  void see(const T&) {}
};

/// A visitor of a call's arguments that sets the edges of a node from the tensor arguments.
template <bool lists>
struct Links {
  Node& node;
  size_t i = 0;
  void see(const Tensor& t) { node.edge(i++) = t.defined() ? gradient_edge(t) : Edge{}; }
  void see(const TensorList& l) {
    if constexpr (lists) {
      for (const Tensor& t : l) see(t);
    }
  }
  template <dispatch::Plain T>
  void see(const T&) {}
};

template <class Rule>
constexpr bool lists_of() {
  if constexpr (requires { Rule::lists; }) return Rule::lists;
  else return false;
}
template <class Rule>
constexpr unsigned results_of() {
  if constexpr (requires { Rule::results; }) return Rule::results;
  else return ~0u;
}

inline GradList to_list(GradList g) { return g; }
inline GradList to_list(Tensor g) { return GradList(std::move(g)); }
template <size_t N>
GradList to_list(Grads<N>&& g) {
  GradList r(N);
  for (size_t i = 0; i < N; ++i) r[i] = std::move(g[i]);
  return r;
}

/// The node of a structured op.
template <class Rule>
class RuleNode final : public Node {
 public:
  /// Constructs the rule in place, so that what `make` saves is not moved. `before`: saves_made before this call.
  template <class Make>
  RuleNode(const char* op, size_t inputs, uint32_t before, const Make& make) : op_(op), rule_(make()) {
    keeps_state_ = saves_made != before;
    may_fuse_previous_ = kFusesPrevious;
    set_num_edges(inputs);
  }
  GradList apply(GradList grads, Needs needs) override {
    if constexpr (std::is_invocable_v<const Rule&, const Tensor&, Needs>) return to_list(rule_(grads[0], needs));
    else return grads.grow(num_inputs()), to_list(rule_(grads, needs));
  }
  bool takes(const PointwiseInfo& activation) const override {
    if constexpr (kTakesPending) return Rule::takes(activation);
    else return Node::takes(activation);
  }
  GradList apply_pending(const PendingGradient& grad, Needs needs) override {
    if constexpr (kTakesPending) return to_list(rule_(grad, needs));
    else return Node::apply_pending(grad, needs);
  }
  LeadingActivation leading() const override {
    if constexpr (kLeads) return rule_.leading();
    else return Node::leading();
  }
  PendingGradient leading_operands() const override {
    if constexpr (kLeads) return rule_.leading_operands();
    else return Node::leading_operands();
  }
  GradList apply_rest(GradList grads, Needs needs, const PendingGradient* before) override {
    if constexpr (kLeads) return to_list(rule_.rest(grads[0], needs, before));
    else return Node::apply_rest(std::move(grads), needs, before);
  }
  bool fuses_previous(const LeadingActivation& before) const override {
    if constexpr (kFusesPrevious) return rule_.fuses_previous(before);
    else return Node::fuses_previous(before);
  }
  GradList apply_with_previous(GradList grads, Needs needs, const PendingGradient& before) override {
    if constexpr (kFusesPrevious) return to_list(rule_(grads[0], needs, before));
    else return Node::apply_with_previous(std::move(grads), needs, before);
  }
  std::string name() const override { return node_name(op_); }
  std::string op() const override {
    if constexpr (requires { rule_.known_op(); }) return rule_.known_op();
    else return std::string(known_name(op_));
  }
  void release_saved() override { rule_ = Rule{}; }

 private:
  static constexpr bool kTakesPending = requires(const PointwiseInfo& activation) { Rule::takes(activation); };
  static constexpr bool kLeads = requires(const Rule& rule) { rule.leading(); };
  static constexpr bool kFusesPrevious =
      requires(const Rule& rule, const LeadingActivation& before) { rule.fuses_previous(before); };
  const char* op_;
  Rule rule_;
};

enum class Kind : uint8_t { fresh, view, inplace };

/// Attaches a node to the results of a call.
inline void attach(Kind kind, NodePtr node, const Tensor& t, unsigned) {
  if (!is_differentiable(t.dtype())) return;
  node->set_input_meta(0, 1, t);
  if (kind == Kind::fresh) set_history(t, std::move(node));
  else if (kind == Kind::view) set_view_history(t, std::move(node));
  else rebase_history(t, std::move(node));
}
template <class... T>
void attach(Kind, const NodePtr& node, const std::tuple<T...>& results, unsigned which) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    auto one = [&](uint32_t i, const Tensor& t) {
      if (!t.defined()) return;
      node->set_input_meta(i, sizeof...(T), t);
      if ((which >> i & 1) != 0 && is_differentiable(t.dtype())) set_history(t, node, i);
    };
    (one(uint32_t(I), std::get<I>(results)), ...);
  }(std::make_index_sequence<sizeof...(T)>{});
}

/// Returns whether any result can have a gradient.
inline bool any_differentiable(const Tensor& t) { return is_differentiable(t.dtype()); }
template <class... T>
bool any_differentiable(const std::tuple<T...>& results) {
  return std::apply([](const auto&... t) { return ((t.defined() && is_differentiable(t.dtype())) || ...); }, results);
}

template <class First, class... A>
const Tensor& first_of(const First& first, const A&...) {
  return first;
}

template <class Rule, class R, class... A>
Rule make_rule(const R& result, const A&... a, Needs needs) {
  if constexpr (requires { Rule::save(result, a..., needs); }) {
    return Rule::save(result, a..., needs);
  } else {
    static_assert(!requires { &Rule::save; }, "a rule's save takes the op's result, all of its arguments and Needs");
    return Rule{};
  }
}

/// Records and runs a call of a structured op: the function in its autograd slot.
template <auto& op, class Rule, Kind kind, class R, class... A>
R call(A... a) {
  constexpr bool lists = lists_of<Rule>();
  Wants<lists> wants;
  (wants.see(a), ...);
  if (wants.in_list) op.refuse_layer(Layer::autograd);
  if constexpr (kind == Kind::inplace) check_inplace(first_of(a...), wants.any, op.name);
  auto below = [&]() -> R {
    Below autograd(Layer::autograd);
    return op(static_cast<A>(a)...);
  };
  if (!wants.any) return below();
  R result = below();
  if (!any_differentiable(result)) return result;
  auto* node = new RuleNode<Rule>(op.name, wants.count, saves_made, [&] {
    return make_rule<Rule, R, std::remove_cvref_t<A>...>(result, a..., Needs{wants.mask});
  });
  auto owner = NodePtr::first(node);
  Links<lists> links{*node};
  (links.see(a), ...);
  attach(kind, std::move(owner), result, results_of<Rule>());
  return result;
}

template <auto& op, class Rule, Kind kind, class R, class... A>
void install(Op<R(A...)>& o) {
  static_assert(std::is_default_constructible_v<Rule>, "releasing a rule's saved tensors assigns an empty rule");
  o.set_layer(Layer::autograd, &call<op, Rule, kind, R, A...>);
}

/// Runs an op whose gradient is that of a formula in other ops: the function in its autograd slot.
template <auto& op, auto formula, class R, class... A>
R call_composite(A... a) {
  Wants<true> wants;
  (wants.see(a), ...);
  if (wants.any) return formula(a...);
  Below autograd(Layer::autograd);
  return op(static_cast<A>(a)...);
}
template <auto& op, auto formula, class R, class... A>
void install_composite(Op<R(A...)>& o) {
  o.set_layer(Layer::autograd, &call_composite<op, formula, R, A...>);
}

// ---- pointwise ----

/// The autograd record of one pointwise op: its description, its gradients in terms of ops, and when a gradient is g
/// itself.
struct PointwiseRule {
  const PointwiseInfo* info = nullptr;
  Tensor (*formula[3])(const Tensor& g, const Tensor* used, const double* params) = {};
  Tensor (*call)(const Tensor* const* in, const double* params, Out out) = nullptr;  // the op, for sparse operands
};

/// Records and runs a call of any pointwise op. The autograd slot of each such op holds a thin function that calls
/// this.
VESTA_API Tensor call_pointwise(const PointwiseRule& rule, const Tensor* const* in, const double* params, Out out);
/// Does the same for an op with two results.
VESTA_API TensorPair call_pointwise_pair(const PointwiseRule& rule, const Tensor* const* in, const double* params);

/// Computes the gradient of an op of one tensor without parameters from what it uses: its input or its result.
VESTA_API Tensor gradient_of_unary(const PointwiseRule& rule, const Tensor& g, const Tensor& used);

template <auto& op>
PointwiseRule pointwise_rule;

template <auto& op, class R, class... A>
R pointwise_slot(A... a) {
  PointwiseArguments call;
  (call.see(a), ...);
  if constexpr (std::is_same_v<R, Tensor>) return call_pointwise(pointwise_rule<op>, call.in, call.params, call.out);
  else return call_pointwise_pair(pointwise_rule<op>, call.in, call.params);
}

/// Calls a pointwise op with its operands and parameters in order.
template <auto& op, class R, class... A>
R call_again(const Tensor* const* in, const double* params, Out out) {
  auto next = [&]<class V>() -> V {
    if constexpr (std::is_same_v<std::remove_cvref_t<V>, Tensor>) return **in++;
    else if constexpr (std::is_same_v<V, Out>) return out;
    else return traits::Packed<V>::read(std::exchange(params, params + traits::Packed<V>::size));
  };
  std::tuple<A...> arguments { next.template operator()<A>()... };  // in order, in braces
  return std::apply(op, arguments);
}

template <auto& op, class R, class... A>
void install_pointwise(Op<R(A...)>& o) {
  if constexpr (std::is_same_v<R, Tensor>) pointwise_rule<op>.call = &call_again<op, R, A...>;
  o.set_layer(Layer::autograd, &pointwise_slot<op, R, A...>);
}

}  // namespace recording

/// Registers a rule for a structured op with fresh results.
template <auto& op, class Rule>
void record() {
  recording::install<op, Rule, recording::Kind::fresh>(op);
}
/// Registers a rule for an op whose result shares the memory of its first argument.
template <auto& op, class Rule>
void record_view() {
  recording::install<op, Rule, recording::Kind::view>(op);
}
/// Registers a rule for an op that writes to its first argument and returns it. Input 0 of the rule is the old value.
template <auto& op, class Rule>
void record_inplace() {
  recording::install<op, Rule, recording::Kind::inplace>(op);
}
/// Registers a formula made of other ops, which runs instead of the fused kernel whenever an argument requires grad.
/// It is for the backward ops of fused ops, whose own gradients only double backward needs.
template <auto& op, auto formula>
void record_composite() {
  recording::install_composite<op, formula>(op);
}
/// Registers the gradients that a pointwise op's struct declares.
template <auto& op, class Struct>
void record_pointwise() {
  if constexpr (traits::is_differentiable_op<Struct>()) {
    using A = traits::Arity<typename std::remove_cvref_t<decltype(op)>::Signature>;
    recording::PointwiseRule& rule = recording::pointwise_rule<op>;
    rule.info = &op.info;
    auto one = [&]<int i>() {
      using G = traits::Gradient<Struct, A::inputs, typename A::Params, i>;
      if constexpr (i < A::inputs && G::is_formula) {
        rule.formula[i] = [](const Tensor& g, const Tensor* used, const double* params) -> Tensor {
          return G::template call<Tensor>(g, used, params);
        };
      }
    };
    one.template operator()<0>();
    if constexpr (A::inputs > 1) one.template operator()<1>();
    if constexpr (A::inputs > 2) one.template operator()<2>();
    recording::install_pointwise<op>(op);
  } else if constexpr (traits::overwrites<Struct>()) {
    if (!op.schema->inplace) return;
    recording::pointwise_rule<op>.info = &op.info;
    recording::install_pointwise<op>(op);
  }
}

}  // namespace vesta::autograd
