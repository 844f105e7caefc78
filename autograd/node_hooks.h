// The kinds of hooks, and the lists of them that a node owns. They are registered through hooks.h.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::autograd {

class GradList;  // <vesta/autograd/node.h>

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

}  // namespace vesta::autograd
