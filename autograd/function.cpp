#include <vesta/autograd/function.h>

#include <algorithm>

#include <vesta/core/ops/factory.h>

namespace vesta::autograd {
namespace {

bool contains(std::span<const Tensor> list, const Tensor& t) {
  return std::ranges::any_of(list, [&](const Tensor& o) { return o.is_same(t); });
}

/// Connects one output of a custom function to its node.
void tie(const intrusive_ptr<FunctionNode>& node, std::span<const Tensor> inputs, Tensor& t, uint32_t i, uint32_t count,
         std::span<const Tensor> dirty) {
  node->set_input_meta(i, count, t);
  if (contains(dirty, t)) {
    rebase_history(t, node);
    ensure_meta(t).output_nr = i;
    return;
  }
  if (contains(inputs, t)) t = t.detach();  // an input handed through keeps its own history; the output gets another
  set_history(t, node, i);
}

}  // namespace

bool any_requires_grad(std::span<const Tensor> inputs) {
  return GradMode::enabled() && std::ranges::any_of(inputs, [](const Tensor& t) { return requires_grad(t); });
}

void record_function(const intrusive_ptr<FunctionNode>& node, std::span<const Tensor> inputs, std::span<Tensor> outputs,
                     std::span<const Tensor> dirty, std::span<const Tensor> non_differentiable) {
  bool records = any_requires_grad(inputs);
  for (const Tensor& t : dirty) {
    if (GradMode::enabled()) check_inplace(t, records, "mark_dirty");
    t.impl()->bump("a custom function");
  }
  if (!records) return;
  node->set_num_edges(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) node->edge(i) = inputs[i].defined() ? gradient_edge(inputs[i]) : Edge{};
  auto count = uint32_t(outputs.size());
  for (uint32_t i = 0; i < count; ++i) {
    Tensor& t = outputs[i];
    if (!t.defined()) continue;
    bool plain = !is_differentiable(t.dtype()) || contains(non_differentiable, t);
    if (!plain) {
      tie(node, inputs, t, i, count, dirty);
    } else {
      node->set_input_meta(i, count, t);
      if (contains(inputs, t) || requires_grad(t)) t = t.detach();
    }
  }
}

std::vector<Tensor> Context::saved() const {
  VESTA_CHECK(
      !released_, runtime,
      "Trying to backward through the graph a second time (or directly access saved tensors after they have "
      "already been freed). Specify retain_graph=True if you need to backward through the graph a second time.");
  std::vector<Tensor> r;
  for (const Saved& s : saved_) r.push_back(s());
  return r;
}

void CustomNode::prepare(std::span<const Tensor> inputs) {
  context_.needs_.mask = 0;
  for (size_t i = 0; i < inputs.size() && i < 64; ++i) context_.needs_.mask |= uint64_t(requires_grad(inputs[i])) << i;
}

void CustomNode::finish(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  intrusive_ptr<FunctionNode> self(this);
  record_function(self, inputs, outputs, context_.dirty_, context_.non_differentiable_);
  if (any_requires_grad(inputs)) {
    for (const Tensor& t : context_.to_save_) {
      bool own = false;
      for (uint32_t i = 0; i < outputs.size(); ++i) {
        if (!t.defined() || !t.is_same(outputs[i])) continue;
        context_.saved_.push_back(Saved::result(t, i));
        own = true;
        break;
      }
      if (!own) context_.saved_.push_back(Saved(t));
    }
  }
  context_.to_save_.clear();
  context_.dirty_.clear();
  context_.non_differentiable_.clear();
}

GradList CustomNode::apply(GradList grads, Needs needs) {
  grads.grow(num_inputs());
  std::vector<Tensor> in(num_inputs());
  for (uint32_t i = 0; i < num_inputs(); ++i) {
    const TensorMeta& m = input_meta(i);
    in[i] = grads[i].defined() || !context_.materialize_ ? grads[i] : zeros(m.sizes(), m.dtype(), m.device());
  }
  context_.needs_ = needs;
  std::vector<Tensor> out = backward_(context_, in);
  VESTA_CHECK(out.size() == edges().size(), runtime, "function ", name_,
              " returned an incorrect number of gradients "
              "(expected ",
              edges().size(), ", got ", out.size(), ").");
  GradList r(out.size());
  for (size_t i = 0; i < out.size(); ++i) r[i] = std::move(out[i]);
  return r;
}

void CustomNode::release_saved() {
  context_.released_ = !context_.saved_.empty();
  context_.saved_.clear();
}

}  // namespace vesta::autograd
