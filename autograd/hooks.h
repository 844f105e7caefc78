// Hooks: what a user may attach to tensors, nodes and saved tensors. These are C++ interfaces; language bindings
// implement them and take their own lock (the engine runs without the GIL).
#pragma once
#include <memory>

#include <vesta/autograd/node.h>
#include <vesta/autograd/node_hooks.h>

namespace vesta::autograd {

/// A packed saved tensor; unpack() may be called more than once.
class VESTA_API PackedTensor {
 public:
  virtual ~PackedTensor() = default;
  virtual Tensor unpack() = 0;
};
/// Hooks that decide how tensors are saved (moved to the host, recomputed, ...) while they are on the thread's stack.
class VESTA_API SavedTensorHooks {
 public:
  virtual ~SavedTensorHooks() = default;
  virtual std::unique_ptr<PackedTensor> pack(const Tensor& t) = 0;
};

/// A guard that pushes saved-tensor hooks for this thread while it lives.
class VESTA_API SavedTensorHooksGuard {
 public:
  explicit SavedTensorHooksGuard(std::shared_ptr<SavedTensorHooks> hooks);
  ~SavedTensorHooksGuard();
  SavedTensorHooksGuard(const SavedTensorHooksGuard&) = delete;
};
/// Pushes hooks by hand (pop_saved_tensor_hooks pops them): for bindings whose guard is an object of another language.
VESTA_API void push_saved_tensor_hooks(std::shared_ptr<SavedTensorHooks> hooks);
VESTA_API void pop_saved_tensor_hooks();

/// Registers a hook; the id removes them again. A tensor hook needs a tensor that requires grad.
VESTA_API HookId register_hook(const Tensor& t, std::shared_ptr<TensorHook> hook);
VESTA_API HookId register_post_accumulate_hook(const Tensor& leaf, std::shared_ptr<PostAccumulateHook> hook);
VESTA_API HookId register_prehook(Node& node, std::shared_ptr<NodePreHook> hook);
VESTA_API HookId register_hook(Node& node, std::shared_ptr<NodePostHook> hook);
/// Removes a hook from the tensor or its node, wherever it is; an unknown id is ignored.
VESTA_API void remove_hook(const Tensor& t, HookId id);
VESTA_API void remove_hook(Node& node, HookId id);

/// Makes a tensor hook from a callable Tensor(const Tensor&).
template <class F>
std::shared_ptr<TensorHook> tensor_hook(F f) {
  struct Hook final : TensorHook {
    F f;
    explicit Hook(F g) : f(std::move(g)) {}
    Tensor call(const Tensor& grad) override { return f(grad); }
  };
  return std::make_shared<Hook>(std::move(f));
}

}  // namespace vesta::autograd
