// Hooks: what a user may attach to tensors, nodes and saved tensors. These are C++ interfaces; language bindings
// implement them and take their own lock (the engine runs without the GIL).
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include <vesta/autograd/node.h>

namespace vesta::autograd {

/// A hook that is called with the gradient of a tensor as soon as it is complete.
class VESTA_API TensorHook {
 public:
  virtual ~TensorHook() = default;
  /// Returns a replacement, or an undefined tensor to keep `grad`.
  virtual Tensor call(const Tensor& grad) = 0;
};

/// A hook that is called before a node runs. It may replace the incoming gradients (some may be undefined).
class VESTA_API NodePreHook {
 public:
  virtual ~NodePreHook() = default;
  virtual void call(GradList& grad_outputs) = 0;
};

/// A hook that is called after a node ran. It may replace the gradients of the node's inputs.
class VESTA_API NodePostHook {
 public:
  virtual ~NodePostHook() = default;
  virtual void call(GradList& grad_inputs, const GradList& grad_outputs) = 0;
};

/// A hook that is called with a leaf after a gradient was added to its grad.
class VESTA_API PostAccumulateHook {
 public:
  virtual ~PostAccumulateHook() = default;
  virtual void call(const Tensor& leaf) = 0;
};

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

/// The id of a registered hook; 0 is none.
using HookId = uint64_t;

/// The hooks of one kind, in order of registration.
template <class Hook>
struct HookList {
  struct Entry {
    HookId id;
    uint32_t input_nr;  // of tensor hooks on a node: the output of the op they belong to
    std::shared_ptr<Hook> hook;  // shared: a hook that removes itself while it runs lives on until it returns
  };
  std::vector<Entry> entries;
};

/// The place where retain_grad() keeps a non-leaf's gradient. It is shared by the tensor and the node that computed
/// it, so that neither owns the other.
struct RetainedGrad : RefCounted {
  Tensor grad;
  static void destroy(RetainedGrad* r) noexcept { delete r; }
};

/// All hooks of a node. A leaf owns its hooks, and its accumulator borrows them.
struct VESTA_API NodeHooks {
  HookList<TensorHook> tensor;
  HookList<NodePreHook> pre;
  HookList<NodePostHook> post;
  HookList<PostAccumulateHook> post_accumulate;
  std::vector<std::pair<uint32_t, intrusive_ptr<RetainedGrad>>> retained;
  std::string module_path;  // which module the op ran in, for anomaly reports; empty where unknown
  std::shared_ptr<void> attached;  // what a language binding keeps with the node (Python's metadata)
  void* stream = nullptr;  // of devices with streams: where the op ran
};

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
