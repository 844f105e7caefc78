#include <vesta/autograd/hooks.h>

#include <atomic>
#include <mutex>

#include <vesta/autograd/accumulate_grad.h>
#include <vesta/autograd/views.h>

namespace vesta::autograd {
namespace {

HookId next_id() {
  static std::atomic<HookId> last{0};
  return ++last;
}

template <class Hook>
HookId add(HookList<Hook>& list, std::shared_ptr<Hook> hook, uint32_t input_nr = 0) {
  HookId id = next_id();
  list.add({id, input_nr, std::move(hook)});
  return id;
}

void remove_from(NodeHooks& hooks, HookId id) {
  hooks.tensor.remove(id);
  hooks.pre.remove(id);
  hooks.post.remove(id);
  hooks.post_accumulate.remove(id);
}

/// Returns the hooks of a leaf, which its accumulator must see whenever it is made.
NodeHooks& leaf_hooks(const Tensor& leaf) {
  GradMeta& m = ensure_meta(leaf);
  {
    std::lock_guard lock(m.lock);
    if (m.hooks) return *m.hooks;
    m.hooks = std::make_unique<NodeHooks>();
  }
  if (leaf.impl()->layers & bit(Layer::autograd)) grad_accumulator(leaf)->borrow_hooks(m.hooks.get());
  return *m.hooks;
}

}  // namespace

HookId register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook) {
  VESTA_CHECK(requires_grad(t), runtime,
              "register_hook: cannot register a hook on a tensor that doesn't require gradient.");
  if (NodePtr fn = grad_fn(t)) return add(fn->ensure_hooks().tensor, std::move(hook), output_nr(t));
  return add(leaf_hooks(t).tensor, std::move(hook));
}

HookId register_post_accumulate_hook(const Tensor& leaf, std::shared_ptr<PostAccumulateHook> hook) {
  VESTA_CHECK(requires_grad(leaf), runtime,
              "register_post_accumulate_grad_hook: cannot register a hook on a tensor that doesn't require gradient.");
  VESTA_CHECK(
      !grad_fn(leaf), runtime,
      "register_post_accumulate_grad_hook: post accumulate grad hooks cannot be registered on non-leaf tensors.");
  return add(leaf_hooks(leaf).post_accumulate, std::move(hook));
}

namespace {
NodeHooks& hooks_of(Node& node) {
  return node.accumulates() ? leaf_hooks(static_cast<AccumulateGrad&>(node).variable()) : node.ensure_hooks();
}
}  // namespace

HookId register_prehook(Node& node, std::shared_ptr<NodePreHook> hook) {
  return add(hooks_of(node).pre, std::move(hook));
}
HookId register_hook(Node& node, std::shared_ptr<NodePostHook> hook) {
  return add(hooks_of(node).post, std::move(hook));
}

void remove_hook(const Tensor& t, HookId id) {
  NodeHooks* hooks = nullptr;
  if (t.impl()->autograd) {
    std::lock_guard lock(meta(t)->lock);
    hooks = meta(t)->hooks.get();
  }
  if (hooks) remove_from(*hooks, id);
  if (NodePtr fn = grad_fn(t); fn && fn->hooks()) remove_from(*fn->hooks(), id);
}
void remove_hook(Node& node, HookId id) {
  if (node.hooks()) remove_from(*node.hooks(), id);
}

}  // namespace vesta::autograd
