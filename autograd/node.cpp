#include <vesta/autograd/node.h>

#include <algorithm>
#include <memory>
#include <new>

#include <vesta/autograd/node_hooks.h>
#include <vesta/autograd/pending.h>
#include <vesta/core/backend.h>

namespace vesta::autograd {

constinit thread_local uint64_t sequence_counter __attribute__((tls_model("initial-exec"))) = 0;

namespace {
// The nodes that wait for the outermost destroy() of this thread: Note [Release of a chain].
struct Dying {
  Node* first;
  bool busy;
};
constinit thread_local Dying dying __attribute__((tls_model("initial-exec"))) = {};
constinit thread_local Node* running __attribute__((tls_model("initial-exec"))) = nullptr;
}  // namespace

// ---- GradList -------------------------------------------------------------------------------------------------------

void GradList::grow(size_t n) {
  if (n <= size_) return;
  if (n > capacity_) {
    const size_t capacity = std::max(n, size_t(2) * capacity_);
    auto* const grown = static_cast<Tensor*>(::operator new(capacity * sizeof(Tensor)));
    std::memcpy(static_cast<void*>(grown), static_cast<const void*>(data_), size_ * sizeof(Tensor));
    if (data_ != inline_) ::operator delete(data_);
    data_ = grown, capacity_ = uint32_t(capacity);
  }
  std::uninitialized_value_construct(data_ + size_, data_ + n);
  size_ = uint32_t(n);
}

void GradList::release() {
  std::destroy_n(data_, size_);
  if (data_ != inline_) ::operator delete(data_);
  data_ = inline_, size_ = 0, capacity_ = kInline;
}

bool GradList::any_defined() const {
  for (const Tensor& t : *this) {
    if (t.defined()) return true;
  }
  return false;
}

// ---- Node -----------------------------------------------------------------------------------------------------------

PendingGradient Node::leading_operands() const { return postpone({}); }
GradList Node::apply_rest(GradList grads, Needs, const PendingGradient*) { return grads; }
GradList Node::apply_with_previous(GradList, Needs, const PendingGradient&) {
  fail(Cause::runtime, name(), ": it does not take the gradient of what is before it.");
}
PendingGradient Node::postpone(Tensor) const { fail(Cause::runtime, name(), ": its gradient cannot be postponed."); }

GradList Node::apply_pending(const PendingGradient& grad, Needs needs) {
  return apply(GradList(grad.resolve()), needs);
}

Node::~Node() {
  if (edges_ != inline_edges_) delete[] edges_;
  delete[] more_metas_;
  if (!borrows_hooks_) delete hooks_;
}

void Node::destroy(Node* n) noexcept {
  n->next_dying_ = dying.first;
  dying.first = n;
  if (dying.busy) return;
  dying.busy = true;
  while (Node* next = dying.first) {
    dying.first = next->next_dying_;
    delete next;
  }
  dying.busy = false;
}

bool Node::try_retain() const noexcept {
  uint32_t n = refs_.load(std::memory_order_relaxed);
  while (n != 0) {
    if (refs_.compare_exchange_weak(n, n + 1, std::memory_order_acquire, std::memory_order_relaxed)) return true;
  }
  return false;
}

void Node::leave(bool release) noexcept {
  if (!keeps_state_) {
    if (release && releases_) release_saved();
    return;
  }
  // One atomic step: our use ends, and (above bit 16) a release is requested. The last user that entered before any
  // release frees; a later one sees the release, raises, and counts down without freeing.
  uint32_t before = uses_.fetch_add(release ? kOneRelease - 1 : uint32_t(-1), std::memory_order_acq_rel);
  bool released = release || (before & kReleased) != 0;
  if (released && (before & ~kReleased) == 1) release_saved();
}

[[gnu::noinline]] void TensorMeta::copy_to_heap(IntSpan sizes) {
  heap_ = new int64_t[sizes.size()];
  std::ranges::copy(sizes, heap_);
  ndim_ = uint8_t(sizes.size());
}

void Node::set_input_meta(uint32_t i, uint32_t count, const Tensor& output) {
  if (count > 1 || output.device().type() != DeviceType::cpu) [[unlikely]]
    return set_any_meta(i, count, output);
  num_metas_ = count;
  meta_.set(output);
}

[[gnu::noinline]] void Node::set_any_meta(uint32_t i, uint32_t count, const Tensor& output) {
  if (count > 1 && !more_metas_) more_metas_ = new TensorMeta[count - 1];
  num_metas_ = count;
  (i == 0 ? meta_ : more_metas_[i - 1]).set(output);
  if (output.device().type() != DeviceType::cpu)
    stream_ = uint16_t(backend(output.device().type()).current_stream(output.device()));
}

NodeHooks& Node::ensure_hooks() {
  if (NodeHooks* have = hooks()) return *have;
  VESTA_ASSERT(!borrows_hooks_);
  auto made = std::make_unique<NodeHooks>();
  NodeHooks* have = nullptr;
  if (!hooks_.compare_exchange_strong(have, made.get(), std::memory_order_acq_rel)) return *have;  // another thread's
  return *made.release();
}

std::string node_name(const char* op) {
  std::string r;
  bool upper = true;
  for (const char* c = op; *c; ++c) {
    if (*c == '_') {
      upper = true;
      continue;
    }
    r += upper && *c >= 'a' && *c <= 'z' ? char(*c - 'a' + 'A') : *c;
    upper = false;
  }
  return r + "Backward0";
}

Node* running_node() noexcept { return running; }
RunningNode::RunningNode(Node* n) noexcept : saved_(running) { running = n; }
RunningNode::~RunningNode() { running = saved_; }

}  // namespace vesta::autograd
