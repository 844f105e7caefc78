// Node: one step of the tape. An op that records makes a node; its edges point at the nodes its inputs came from.
//
// A node gets the gradients of the op's outputs and returns those of the op's inputs. Nodes are made on every recorded
// call, so they come from the pool, keep up to four edges and one output's shape inline, and count their own
// references.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <span>
#include <string>

#include <vesta/core/pool.h>
#include <vesta/core/tensor.h>

namespace vesta {
struct PointwiseInfo;  // <vesta/core/ops/pointwise.h>
}

namespace vesta::autograd {

class Node;
struct NodeHooks;        // <vesta/autograd/node_hooks.h>
struct PendingGradient;  // <vesta/autograd/pending.h>
using NodePtr = intrusive_ptr<Node>;

/// The set of inputs that need a gradient. Past 64 inputs the answer is always yes; unneeded gradients are dropped.
struct Needs {
  uint64_t mask = ~uint64_t(0);
  constexpr bool operator[](size_t i) const { return i >= 64 || (mask >> i & 1) != 0; }
};

/// The activation whose gradient a node's apply() computes first, null if there is none; and whether the node has saved
/// what a device's own form of that gradient reads.
struct LeadingActivation {
  const PointwiseInfo* activation = nullptr;
  bool kept = false;
};

/// The gradients that enter or leave a node; an undefined tensor is a gradient of zero. Three fit inline. A list is
/// handed on some ten times per node, so moving one is a copy of pointers, and destroying an empty one does nothing.
class VESTA_API GradList {
 public:
  GradList() {}
  explicit GradList(size_t n) { grow(n); }
  explicit GradList(Tensor one) : size_(1) { new (inline_) Tensor(std::move(one)); }
  GradList(GradList&& o) noexcept { take(o); }
  GradList& operator=(GradList&& o) noexcept {
    if (this != &o) clear(), take(o);
    return *this;
  }
  ~GradList() { clear(); }
  size_t size() const { return size_; }
  Tensor& operator[](size_t i) { return data_[i]; }
  const Tensor& operator[](size_t i) const { return data_[i]; }
  Tensor* begin() { return data_; }
  Tensor* end() { return data_ + size_; }
  const Tensor* begin() const { return data_; }
  const Tensor* end() const { return data_ + size_; }
  operator std::span<const Tensor>() const { return {data_, size_}; }
  /// Extends the list to n entries; new ones are undefined.
  void grow(size_t n);
  void clear() {
    if (size_) release();
  }
  bool any_defined() const;

 private:
  /// Moves the entries of `o` into this list, which is empty: a Tensor is a pointer that may lie anywhere.
  void take(GradList& o) noexcept {
    static_assert(sizeof(Tensor) == sizeof(void*));
    size_ = o.size_, capacity_ = o.capacity_;
    std::memcpy(static_cast<void*>(inline_), static_cast<const void*>(o.inline_), sizeof inline_);
    data_ = o.data_ == o.inline_ ? inline_ : o.data_;
    o.data_ = o.inline_, o.size_ = 0, o.capacity_ = kInline;
  }
  void release();

  static constexpr uint32_t kInline = 3;
  Tensor* data_ = inline_;
  uint32_t size_ = 0, capacity_ = kInline;
  union {
    Tensor inline_[kInline];  // constructed up to size_
  };
};

/// An edge of the tape: gradients flow to input `input_nr` of `node`. A null node takes none.
struct Edge {
  NodePtr node;
  uint32_t input_nr = 0;
  explicit operator bool() const { return bool(node); }
};

/// The form of an output of the recorded op (shape, dtype, device). The engine brings its gradient into the same form.
class VESTA_API TensorMeta {
 public:
  TensorMeta() = default;
  explicit TensorMeta(const Tensor& t) { set(t); }
  TensorMeta(const TensorMeta&) = delete;
  ~TensorMeta() {
    if (ndim_ > kInline) delete[] heap_;
  }
  void set(const Tensor& t) {
    dtype_ = t.dtype(), device_ = t.device();
    const IntSpan from = t.sizes();
    if (from.size() > kInline) [[unlikely]]
      return copy_to_heap(from);
    for (size_t i = 0; i < from.size(); ++i) inline_[i] = from[i];
    ndim_ = uint8_t(from.size());
  }
  IntSpan sizes() const { return {ndim_ <= kInline ? inline_ : heap_, ndim_}; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  /// Returns whether `t` has this shape, dtype and device.
  bool fits(const Tensor& t) const {
    return t.dtype() == dtype_ && t.device() == device_ && t.dim() == ndim_ &&
           std::memcmp(t.sizes().data(), sizes().data(), size_t(ndim_) * 8) == 0;
  }

 private:
  static constexpr size_t kInline = 4;
  void copy_to_heap(IntSpan sizes);
  DType dtype_ = DType::float32;
  Device device_;
  uint8_t ndim_ = 0;
  union {
    int64_t inline_[kInline];
    int64_t* heap_;
  };
};

/// A step of the tape. Subclasses implement apply() and name(), and release_saved() where they hold tensors.
///
/// Note [Release of a chain]
/// A node owns its edges' nodes, saved tensors own tensors, tensors own their nodes: freeing a long chain by nested
/// destructors would need a stack as deep as the chain. Every path passes through Node::destroy, so the recursion is
/// cut there: a destroy inside a destroy only adds the node to a thread-local list, which the outermost destroy
/// empties.
class VESTA_API Node : public pool::Pooled {
 public:
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  /// Returns the gradients of the inputs (those in `needs`) given those of the outputs. Grad mode tells whether this
  /// call itself is recorded.
  virtual GradList apply(GradList grads, Needs needs) = 0;
  /// Returns PyTorch's name of the step: MulBackward0.
  virtual std::string name() const = 0;
  /// Returns the name that the node is shown by: name(), unless show_as() gave another.
  std::string shown_name() const { return shown_ ? shown_ : name(); }
  /// Shows the node by another name, a literal: that of the step that PyTorch makes of several ops.
  void show_as(const char* name) { shown_ = name; }
  /// Lets the gradient of input 0 have a gradient of zero with respect to it (flat_gradient.h).
  void make_flat() { flat_ = true; }
  bool flat() const { return flat_; }
  /// Returns the name of the op that was recorded, for errors; the node's name where there is no op.
  virtual std::string op() const { return name(); }
  /// Drops what was saved for apply(); called after it unless the graph is retained.
  virtual void release_saved() {}

  /// Returns the op whose gradient postpone() can hand over; null where it cannot.
  const PointwiseInfo* postponable() const { return postponable_; }
  /// Computes the part of apply() that reads what was saved; resolve() computes the rest.
  virtual PendingGradient postpone(Tensor grad) const;
  /// Returns whether apply_pending() accepts a gradient that is still to pass through this activation.
  virtual bool takes(const PointwiseInfo&) const { return false; }
  /// Does what apply() does with the resolved gradient as the only one.
  virtual GradList apply_pending(const PendingGradient& grad, Needs needs);

  /// Returns the activation whose gradient apply() computes first.
  virtual LeadingActivation leading() const { return {postponable_, false}; }
  /// Returns the operands of that gradient, except for the gradient of the activation's result.
  virtual PendingGradient leading_operands() const;
  /// Does the rest of apply(), given that gradient (of the activation's input); with `before`, the rest of
  /// apply_with_previous().
  virtual GradList apply_rest(GradList grads, Needs, const PendingGradient* before);
  /// Returns whether fuses_previous() may be true.
  bool may_fuse_previous() const { return may_fuse_previous_; }
  /// Returns whether apply_with_previous() can also compute the first gradient of the node before input 0.
  virtual bool fuses_previous(const LeadingActivation&) const { return false; }
  /// Does what apply() does, and also takes the gradient of input 0 through the activation before it.
  virtual GradList apply_with_previous(GradList grads, Needs needs, const PendingGradient& before);

  std::span<const Edge> edges() const { return {edges_, num_edges_}; }
  /// Returns the number of the op's outputs: the number of gradients apply() gets.
  uint32_t num_inputs() const { return num_metas_; }
  const TensorMeta& input_meta(uint32_t i) const { return i == 0 ? meta_ : more_metas_[i - 1]; }
  /// Returns the stream of the outputs' device that the op ran on; its gradient runs there too.
  uint32_t stream() const { return stream_; }
  /// Returns the number that orders execution. Of the ready nodes the one made last runs first; accumulation runs at
  /// once.
  uint64_t sequence_nr() const { return sequence_nr_; }
  /// Returns whether the node runs even if no gradient reaches it (custom functions see zeros).
  bool runs_without_gradient() const { return runs_without_gradient_; }
  /// Returns whether saved tensors were released, or will be once a concurrent run ends.
  bool released() const noexcept { return (uses_.load(std::memory_order_acquire) & kReleased) != 0; }
  /// Returns whether this is the node that adds into a leaf's grad.
  bool accumulates() const { return accumulates_; }

  /// Returns the hooks of this node, null where there are none.
  NodeHooks* hooks() const { return hooks_.load(std::memory_order_acquire); }
  /// Returns the hooks of this node, which are created on first use.
  NodeHooks& ensure_hooks();

  // Building: called once, before the node is shared.
  /// Returns whether apply() needs tensors that the first run without retain_graph releases.
  bool keeps_state() const { return keeps_state_; }
  /// Makes room for n edges.
  void set_num_edges(size_t n) {
    if (n > kInlineEdges) edges_ = new Edge[n];
    num_edges_ = uint32_t(n);
  }
  Edge& edge(size_t i) { return edges_[i]; }
  /// Records the shape, dtype and device of output `i` of `count`.
  void set_input_meta(uint32_t i, uint32_t count, const Tensor& output);

  // Reference counting, for intrusive_ptr.
  void retain() const noexcept { refs_.fetch_add(1, std::memory_order_relaxed); }
  void retain_first() const noexcept { refs_.store(1, std::memory_order_relaxed); }
  bool release() const noexcept {
    if (!accumulates_ &&
        refs_.load(std::memory_order_acquire) == 1) {  // a leaf may revive its accumulator: no shortcut
      refs_.store(0, std::memory_order_relaxed);
      return true;
    }
    return refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  /// Takes a reference unless the node is dying.
  bool try_retain() const noexcept;
  uint32_t use_count() const noexcept { return refs_.load(std::memory_order_acquire); }
  static void destroy(Node* n) noexcept;

  /// Begins a use of saved state; returns false if it has been released. Note [Sharing a graph between threads] in
  /// engine.cpp.
  bool enter() noexcept {
    if (!keeps_state_ || (uses_.fetch_add(1, std::memory_order_acquire) & kReleased) == 0) return true;
    uses_.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  /// Ends a use; with `release`, what was saved is freed as soon as no other use is under way.
  void leave(bool release) noexcept;

  void* pyobject = nullptr;  // the Python wrapper, borrowed: whoever makes one clears it

 protected:
  Node() : sequence_nr_(next_sequence_nr()) {}
  explicit Node(uint64_t sequence_nr) : sequence_nr_(sequence_nr) {}
  static constexpr size_t kInlineEdges = 4;
  static constexpr uint64_t kRunsAtOnce = ~uint64_t(0);

  bool keeps_state_ = false;  // a second backward needs what the first released: enter() and leave() count
  bool releases_ = false;  // release_saved() is called, without that protocol
  bool runs_without_gradient_ = false;
  bool accumulates_ = false;
  bool borrows_hooks_ = false;  // hooks_ belongs to the leaf
  bool may_fuse_previous_ : 1 = false;
  bool flat_ : 1 = false;
  uint16_t stream_ = 0;
  const PointwiseInfo* postponable_ = nullptr;
  const char* shown_ = nullptr;  // the name that was given to show_as()

  std::atomic<NodeHooks*> hooks_{nullptr};

 private:
  static constexpr uint32_t kReleased = 0xffff0000u, kOneRelease = 0x10000u;
  void set_any_meta(uint32_t i, uint32_t count, const Tensor& output);
  static uint64_t next_sequence_nr();

  mutable std::atomic<uint32_t> refs_{0};
  std::atomic<uint32_t> uses_{0};  // running applies below, releases above
  union {
    uint64_t sequence_nr_;
    Node* next_dying_;
  };
  Edge inline_edges_[kInlineEdges];
  Edge* edges_ = inline_edges_;
  uint32_t num_edges_ = 0;
  uint32_t num_metas_ = 0;
  TensorMeta meta_;
  TensorMeta* more_metas_ = nullptr;
};

/// The number of nodes this thread has made. PyTorch numbers nodes per thread too, so that threads share no counter.
extern VESTA_API constinit thread_local uint64_t sequence_counter __attribute__((tls_model("initial-exec")));
inline uint64_t Node::next_sequence_nr() { return sequence_counter++; }

/// Returns PyTorch's node name for an op's name: index_select gives IndexSelectBackward0.
VESTA_API std::string node_name(const char* op);

/// Returns the node whose apply() is running on this thread; saved tensors name it in errors. Null outside of apply().
VESTA_API Node* running_node() noexcept;
/// A guard that declares a node to be running while it lives, also for reading saved tensors from outside the engine.
class VESTA_API RunningNode {
 public:
  explicit RunningNode(Node* n) noexcept;
  ~RunningNode();
  RunningNode(const RunningNode&) = delete;

 private:
  Node* saved_;
};

/// An object that chooses where the first gradient of a leaf goes. It is asked each time a gradient arrives and the
/// leaf has none.
class VESTA_API GradPlace {
 public:
  virtual ~GradPlace() = default;
  /// Returns a tensor like the leaf. It takes a copy of the gradient and becomes the leaf's grad. An undefined tensor
  /// means no such memory.
  virtual Tensor place() = 0;
};

/// The node that adds gradients into the grad of a leaf. There is one at a time per leaf: the leaf points at it weakly
/// and it owns the leaf, so hooks and bucketed reducers can rely on its identity as long as they hold it.
class VESTA_API AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(Tensor variable);
  ~AccumulateGrad() override;
  GradList apply(GradList grads, Needs needs) override;
  std::string name() const override { return "AccumulateGrad"; }
  const Tensor& variable() const { return variable_; }
  /// Lets the engine see the leaf's hooks (the leaf owns them).
  void borrow_hooks(NodeHooks* hooks) { hooks_.store(hooks, std::memory_order_release); }
  /// Makes the first gradient be copied into `target` (same shape and dtype), which becomes the leaf's grad. In this
  /// way a bucket of gradients stays one piece of memory. An undefined tensor ends that.
  void set_target(Tensor target);
  /// Sets an object that chooses such a target each time; null ends that. Must not be called while a backward runs.
  void set_place(std::shared_ptr<GradPlace> place) { place_ = std::move(place); }
  /// Returns whether a target for the first gradient is set.
  bool has_place() const { return place_ != nullptr || target_.defined(); }

 private:
  Tensor chosen_target();

  Tensor variable_, target_;
  std::shared_ptr<GradPlace> place_;
};

/// The base that a language binding subclasses for custom functions: see record_function() in
/// <vesta/autograd/function.h>. apply() sees undefined gradients as they are; the subclass replaces them by zeros
/// where it promises so.
class VESTA_API FunctionNode : public Node {
 protected:
  FunctionNode() {
    runs_without_gradient_ = true;
    releases_ = true;
  }
};

}  // namespace vesta::autograd
