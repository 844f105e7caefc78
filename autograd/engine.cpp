// The engine. A tour of a run:
//
// clang-format off
//   run_backward()   checks roots and gradients, finds where the inputs' gradients appear
//   Run::discover    walks the graph from the roots with a stack of its own: a task per node, and in each task how many
//                    gradients are still to come; with inputs given, marks the tasks that lead to one
//   Run::loop        takes the ready task whose node was made last, until none is left:
//                    hooks on what came in, captures, Node::apply, hooks on what goes out, and hand() for every edge
//   hand()           brings a gradient into the form of the input it belongs to (sum, cast: once, here and nowhere
//                    else) and adds it to what the next task has
// clang-format on
//
// Everything runs on the calling thread and nothing recurses, so a backward inside a hook is just another Run.
//
// Note [Streams]
// A node's gradient runs on the stream its forward ran on. A gradient that was computed on one stream and is needed on
// another crosses over in hand(): the other stream waits for an event (the host does not wait), and the memory is
// marked as in use there. Nothing is added in place to memory that has crossed over: a kernel of another stream may
// still have to read it when the last reference is gone. Leaves get their gradients on the stream that was current when
// the run began: the caller can use them right after backward(). A CPU-only run pays one comparison per gradient.
//
// Note [Neighbours as one]
// The gradient of an activation is often the only input of the gradient of the op before it (relu behind batch
// normalisation). Where that op's node knows the activation, postpone() hands over the operands of the activation's
// gradient, and the node computes both gradients in one pass over memory less, with the same bits. This happens only
// where nobody sees the gradient in between (no hook, capture, anomaly mode or recording), and only on the CPU. On CUDA
// the op behind an activation can take both (a linear layer's product applies gelu's gradient to what it writes): its
// node gets the operands of the activation's gradient, under the same conditions, and the rest of that node runs when
// its turn comes. Nothing is deferred: both gradients are computed when the first of them would be.
//
// Note [Sharing a graph between threads] Several threads may run backwards over the same nodes. What belongs to a run
// (counts, gradients under way) lives in its Run, never in a node. Three things are shared: a leaf's grad (locked
// while it is added to), the weak pointer from a leaf to its accumulator (locked), and saved tensors: a run without
// retain_graph releases them while another may be reading. Node counts the applies that are under way and releases
// after the last one; an apply that comes later raises the error about a second backward. Nodes without saved tensors
// pay nothing for this.
#include <vesta/autograd/engine.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <mutex>
#include <optional>
#include <unordered_set>

#include <vesta/autograd/flat_gradient.h>
#include <vesta/autograd/grad_meta.h>
#include <vesta/autograd/pending.h>
#include <vesta/autograd/pieces.h>
#include <vesta/autograd/reduce_to.h>
#include <vesta/autograd/saved.h>
#include <vesta/autograd/task_index.h>
#include <vesta/core/backend.h>
#include <vesta/core/base/warning.h>
#include <vesta/core/dispatch/profiler.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/packed_weights.h>

namespace vesta::autograd {
namespace {

constexpr uint32_t kNone = ~uint32_t(0);

/// What a run knows about one node.
struct Task {
  Node* node;
  uint32_t waiting = 0;  // gradients that are still to come
  uint32_t capture = kNone;  // first of the captures at this node
  bool target = false;  // accumulates into an input that was asked for
  bool needed = true;  // its gradients are wanted
  bool runs = true;  // so are the gradients it computes
  bool leading_done = false;  // what came is the gradient of the activation's input: Note [Neighbours as one]
  GradList grads;
  std::unique_ptr<Pieces> pieces = nullptr;  // of one of them, to be joined before anything else comes to it
  std::unique_ptr<PendingGradient> pending = nullptr;  // instead of them: Note [Neighbours as one]
  explicit Task(Node* n) : node(n) {}
  bool has_gradient() const { return pieces || grads.any_defined(); }
  /// Makes a gradient of the pieces.
  void join_pieces() {
    if (!pieces) return;
    const std::unique_ptr<Pieces> joined = std::move(pieces);
    grads.grow(node->num_inputs());
    grads[joined->input_nr()] = joined->join();
  }
};

/// A gradient to be returned: that of input `input_nr` of a node.
struct Capture {
  uint32_t input_nr;
  uint32_t next;  // at the same node
  Tensor grad;
};

bool anomaly = false, anomaly_nan = false;
std::atomic<bool> profiled{false};

std::string form(const Tensor& t) { return text(t.sizes(), " ", t.dtype(), " on ", t.device()); }

/// Checks a gradient that `from` computed for an input like `meta`, and sums and casts it to that form.
[[gnu::noinline]] Tensor reform(Tensor g, const TensorMeta& meta, const Node* from, size_t i) {
  IntSpan to = meta.sizes(), is = g.sizes();
  bool broadcasts = to.size() <= is.size();
  for (size_t d = 0; broadcasts && d < to.size(); ++d) {
    int64_t have = is[is.size() - to.size() + d];
    broadcasts = to[d] == have || to[d] == 1;
  }
  VESTA_CHECK(broadcasts, runtime, from ? from->name() : "backward", ": returned an invalid gradient at index ", i,
              ": expected a shape that sums to ", to, ", got ", is, ".");
  // A number on the CPU may be an operand of a call on another device.
  const bool at_home = g.device() == meta.device() || (to.empty() && meta.device().type() == DeviceType::cpu);
  const bool converts = is_differentiable(g.dtype()) || !is_complex(meta.dtype());
  VESTA_CHECK(converts && at_home, runtime, from ? from->name() : "backward",
              ": returned an invalid gradient at index ", i, ": expected ", meta.dtype(), " on ", meta.device(),
              ", got ", form(g), ".");
  const Tensor r = reduce_to(g, to, meta.dtype());
  return r.device() == meta.device() ? r : r.to(meta.device());
}

/// Adds `g` to the sum so far; in place if `may_change` and nobody else has it.
void add_to(Tensor& sum, Tensor g, bool may_change) {
  if (!sum.defined()) {
    sum = std::move(g);
  } else if (may_change && !GradMode::enabled() && held_only_here(sum) && sum.impl()->dense()) {
    ops::add(sum, g, 1, Out{&sum, Out::inplace});  // a sparse sum is never dense()
  } else {
    sum = ops::add(sum, g, 1, Out{});
  }
}

/// A guard that makes a stream current for this thread while it lives.
class OnStream {
 public:
  OnStream(Device device, uint32_t stream)
      : backend_(backend(device.type())), device_(device), before_(backend_.current_stream(device)) {
    backend_.set_current_stream(device, stream);
  }
  ~OnStream() { backend_.set_current_stream(device_, before_); }
  OnStream(const OnStream&) = delete;
  uint32_t before() const { return before_; }

 private:
  Backend& backend_;
  Device device_;
  uint32_t before_;
};

/// What of a node's gradient a neighbour computes with it: Note [Neighbours as one].
struct Neighbours {
  const PendingGradient* behind = nullptr;  // instead of the gradient of the result
  const PendingGradient* before = nullptr;
  bool leading_done = false;  // the node behind has computed the leading activation
};

/// One backward run on this thread. Kept between runs for its memory.
class Run {
 public:
  void add_root(Edge edge, Tensor g);
  void want(const Edge& edge, bool capture, size_t position);
  void discover();
  void loop(bool retain_graph);
  Tensor take_capture(size_t position) { return std::move(captures_[position].grad); }
  void clear();
  Tensor* sum_in_progress();
  bool keep_piece(const Tensor& g, bool alone, IntSpan sizes, int64_t dim, int64_t start);

  std::vector<std::function<void()>> callbacks;
  Run* outer = nullptr;  // the run that this one is inside of

 private:
  uint32_t task_of(Node* n);
  void mark_needed();
  void run_task(uint32_t index, bool retain_graph);
  void run_on_device(uint32_t index, bool retain_graph);
  void run_here(uint32_t index, bool retain_graph);
  bool postpone(uint32_t index, Tensor& grad, bool retain_graph);
  std::optional<PendingGradient> reach(const Node& node, const GradList& grads, Needs needs);
  GradList apply(Node& node, GradList grads, const Neighbours& with, Needs needs, bool retain_graph);
  Needs needs_of(const Task& task);
  Task* only_task();
  bool sums_here(Device device) const;
  bool is_at_home(const Tensor& t) const;
  void hand(const Edge& edge, Tensor g, const Node* from, size_t i);
  void cross_over(const Tensor& g, uint32_t to);
  bool has_crossed(const Tensor& g) const { return g.defined() && crossed_.contains(g.impl()->storage().get()); }
  uint32_t home(Device device) const;
  void ready(uint32_t task);
  void run_tensor_hooks(NodeHooks& hooks, GradList& grads);

  struct Root {
    Edge edge;
    Tensor grad;
  };
  struct Ready {
    uint64_t sequence_nr;
    uint32_t task;
    bool operator<(const Ready& o) const { return sequence_nr < o.sequence_nr; }
  };
  std::vector<Root> roots_;
  std::vector<Task> tasks_;
  TaskIndex index_;
  std::vector<Ready> heap_;
  std::vector<Capture> captures_;
  std::vector<Node*> stack_;
  std::vector<std::pair<Device, uint32_t>> homes_;  // streams that were current when the run began, where they differ
  std::unordered_set<const Storage*> crossed_;  // memory that more than one stream has used: Note [Streams]
  bool restricted_ = false;
  const Edge* only_edge_ = nullptr;  // of the node that runs, where its gradient may be added in place
};

constinit thread_local Run* current __attribute__((tls_model("initial-exec"))) = nullptr;
constinit thread_local Run* spare __attribute__((tls_model("initial-exec"))) = nullptr;
struct SpareOwner {
  ~SpareOwner() { delete std::exchange(spare, nullptr); }
};

/// A loan of this thread's Run, or of a fresh one for a backward inside a backward.
class RunScope {
 public:
  RunScope() : outer_(current) {
    run_ = spare ? std::exchange(spare, nullptr) : fresh();
    run_->outer = outer_;
    current = run_;
  }
  ~RunScope() {
    run_->clear();
    current = outer_;
    if (spare) delete run_;
    else spare = run_;
  }
  RunScope(const RunScope&) = delete;
  Run* operator->() const { return run_; }

 private:
  [[gnu::noinline]] static Run* fresh() {
    static thread_local SpareOwner owner;
    (void)&owner;
    return new Run;
  }
  Run *outer_, *run_;
};

void Run::clear() {
  if (tasks_.capacity() > 4096) std::vector<Task>().swap(tasks_);
  else tasks_.clear();
  roots_.clear();
  heap_.clear();
  captures_.clear();
  callbacks.clear();
  homes_.clear();
  crossed_.clear();
  index_.clear();
  restricted_ = false;
}

uint32_t Run::task_of(Node* n) {
  TaskIndex::Entry& e = index_.at(n);
  if (index_.taken(e)) return e.task;
  auto task = uint32_t(tasks_.size());
  index_.add(e, n, task);
  tasks_.emplace_back(n);
  stack_.push_back(n);
  return task;
}

void Run::add_root(Edge edge, Tensor g) { roots_.push_back({std::move(edge), std::move(g)}); }

void Run::want(const Edge& edge, bool capture, size_t position) {
  restricted_ = true;
  uint32_t t = task_of(edge.node.get());
  Task& task = tasks_[t];
  if (captures_.size() <= position) captures_.resize(position + 1, {0, kNone, {}});
  if (!capture) {
    task.target = true;
    return;
  }
  captures_[position] = {edge.input_nr, task.capture, {}};
  task.capture = uint32_t(position);
}

/// Makes a task of every node the roots reach, and counts the gradients each will get.
void Run::discover() {
  stack_.clear();
  size_t early = tasks_.size();  // tasks that want() made are not walked yet
  std::vector<bool> seen(early);
  auto visit = [&](Node* n) {
    uint32_t t = task_of(n);
    if (t < early && !seen[t]) {
      seen[t] = true;
      stack_.push_back(n);
    }
    return t;
  };
  for (const Root& r : roots_) visit(r.edge.node.get());
  while (!stack_.empty()) {
    Node* n = stack_.back();
    stack_.pop_back();
    for (const Edge& e : n->edges()) {
      if (e.node) ++tasks_[visit(e.node.get())].waiting;
    }
  }
  if (restricted_) mark_needed();
}

/// Marks the tasks that lead to a requested input. A node is settled after all nodes it leads to; the stack is our
/// own.
void Run::mark_needed() {
  enum : uint8_t { fresh, leads = 1, done = 2 };
  std::vector<uint8_t> state(tasks_.size(), fresh);
  std::vector<std::pair<uint32_t, uint32_t>> path;  // a task and the edge to follow next
  auto asked = [&](uint32_t t) { return tasks_[t].target || tasks_[t].capture != kNone || (state[t] & leads) != 0; };
  for (const Root& r : roots_) {
    path.push_back({index_.find(r.edge.node.get()), 0});
    while (!path.empty()) {
      auto& [t, next] = path.back();
      auto edges = tasks_[t].node->edges();
      if ((state[t] & done) != 0 || next == edges.size()) {
        state[t] |= done;
        bool wanted = asked(t);
        path.pop_back();
        if (!path.empty() && wanted) state[path.back().first] |= leads;
      } else if (const Edge& e = edges[next++]; e.node) {
        path.push_back({index_.find(e.node.get()), 0});
      }
    }
  }
  for (uint32_t t = 0; t < tasks_.size(); ++t) {
    tasks_[t].needed = asked(t);
    tasks_[t].runs = tasks_[t].target || (state[t] & leads) != 0;
  }
}

void Run::ready(uint32_t task) {
  heap_.push_back({tasks_[task].node->sequence_nr(), task});
  std::push_heap(heap_.begin(), heap_.end());
}

void Run::hand(const Edge& edge, Tensor g, const Node* from, size_t i) {
  uint32_t t = index_.find(edge.node.get());
  Task& task = tasks_[t];
  if (g.defined() && task.needed) {
    const TensorMeta& meta = edge.node->input_meta(edge.input_nr);
    if (!meta.fits(g)) g = reform(std::move(g), meta, from, i);
    task.grads.grow(edge.node->num_inputs());
    if (g.device().type() == DeviceType::cpu) [[likely]] {
      task.join_pieces();
      add_to(task.grads[edge.input_nr], std::move(g), true);
    } else {
      const Device device = g.device();
      const uint32_t wanted = edge.node->accumulates() ? home(device) : edge.node->stream();
      cross_over(g, wanted);
      OnStream on(device, wanted);
      task.join_pieces();
      Tensor& sum = task.grads[edge.input_nr];
      add_to(sum, std::move(g), !has_crossed(sum));
    }
  }
  if (from && --tasks_[t].waiting == 0) ready(t);
}

/// Makes `g`, which was computed on the current stream of its device, ready for use on stream `to`.
void Run::cross_over(const Tensor& g, uint32_t to) {
  Backend& b = backend(g.device().type());
  const uint32_t from = b.current_stream(g.device());
  if (from == to) return;
  b.order(g.device(), to, from);
  b.record_use(*g.impl()->storage(), to);
  crossed_.insert(g.impl()->storage().get());
}

/// Returns the stream of a device that was current when the run began.
uint32_t Run::home(Device device) const {
  for (auto& [d, stream] : homes_) {
    if (d == device) return stream;
  }
  return backend(device.type()).current_stream(device);
}

void Run::loop(bool retain_graph) {
  for (Root& r : roots_) hand(r.edge, std::move(r.grad), nullptr, 0);
  for (const Root& r : roots_) {
    uint32_t t = index_.find(r.edge.node.get());
    if (tasks_[t].waiting == 0) {
      tasks_[t].waiting = kNone;  // queued: a root that is given twice runs once
      ready(t);
    }
  }
  while (!heap_.empty()) {
    std::pop_heap(heap_.begin(), heap_.end());
    uint32_t t = heap_.back().task;
    heap_.pop_back();
    run_task(t, retain_graph);
  }
}

void Run::run_tensor_hooks(NodeHooks& hooks, GradList& grads) {
  for (auto& e : hooks.tensor.now()) {
    if (e.input_nr >= grads.size() || !grads[e.input_nr].defined()) continue;
    Tensor changed = e.hook->call(grads[e.input_nr]);
    if (!changed.defined()) continue;
    VESTA_CHECK(std::ranges::equal(changed.sizes(), grads[e.input_nr].sizes()), runtime,
                "hook has changed the size of value: expected ", grads[e.input_nr].sizes(), ", got ", changed.sizes(),
                ".");
    VESTA_CHECK(changed.dtype() == grads[e.input_nr].dtype() && changed.device() == grads[e.input_nr].device(), runtime,
                "hook has changed the type of value: expected a gradient of ", grads[e.input_nr].dtype(), " on ",
                grads[e.input_nr].device(), ", got ", changed.dtype(), " on ", changed.device(),
                ". Convert it back with .to().");
    grads[e.input_nr] = std::move(changed);
  }
  for (auto& e : hooks.pre.now()) e.hook->call(grads);
  for (auto& [i, slot] : hooks.retained.now()) {
    if (i >= grads.size() || !grads[i].defined()) continue;
    for (;;) {  // another thread may add to it meanwhile; an op that may be recorded runs under no lock
      Tensor before = slot->get();
      // A clone is the user's own: the run and other tensors share this gradient.
      Tensor sum = before.defined() ? ops::add(before, grads[i], 1, Out{}) : clone(grads[i], "contiguous_format");
      if (slot->replace(before, std::move(sum))) break;
    }
  }
}

Needs Run::needs_of(const Task& task) {
  Needs needs{0};
  auto edges = task.node->edges();
  for (size_t i = 0; i < edges.size() && i < 64; ++i) {
    if (edges[i].node && (!restricted_ || tasks_[index_.find(edges[i].node.get())].needed))
      needs.mask |= uint64_t(1) << i;
  }
  return needs;
}

void check_nan(const Node& node, const GradList& grads) {
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) continue;
    NoGrad off;
    VESTA_CHECK(!any(isnan(grads[i])).item<bool>(), runtime, node.name(), ": Function '", node.name(),
                "' returned nan values in its ", i, "th output.");
  }
}

/// Returns PyTorch's name of a node in profiles.
std::string profiled_name(const Node& node) {
  return node.accumulates() ? "torch::autograd::AccumulateGrad" : node.name();
}

GradList apply_with(Node& node, GradList grads, const Neighbours& with, Needs needs) {
  if (with.leading_done) return node.apply_rest(std::move(grads), needs, with.before);
  if (with.behind) return node.apply_pending(*with.behind, needs);
  if (with.before) return node.apply_with_previous(std::move(grads), needs, *with.before);
  return node.apply(std::move(grads), needs);
}

GradList apply_profiled(Node& node, GradList grads, const Neighbours& with, Needs needs) {
  const profiler::Part part(profiler::Kind::node, profiled_name(node), node.sequence_nr());
  profiler::note(part.token(), grads, false);
  GradList result = apply_with(node, std::move(grads), with, needs);
  profiler::note(part.token(), result, true);
  return result;
}

/// A use of what a node has saved.
class Use {
 public:
  explicit Use(Node& node) : node_(node), running_(&node) {
    VESTA_CHECK(
        node.enter(), runtime,
        "Trying to backward through the graph a second time (or directly access saved tensors after they have "
        "already been freed). Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify retain_graph=True if you need to backward through the graph a second time or if "
        "you need to access saved tensors after calling backward. The node is ",
        node.name(), ".");
  }
  ~Use() { node_.leave(release_); }
  Use(const Use&) = delete;
  /// Declares the use to be complete: its end releases what was saved unless the graph is retained.
  void complete(bool retain_graph) { release_ = !retain_graph; }

 private:
  Node& node_;
  bool release_ = false;
  RunningNode running_;
};

GradList Run::apply(Node& node, GradList grads, const Neighbours& with, Needs needs, bool retain_graph) {
  Use use(node);
  GradList result;
  if (profiled.load(std::memory_order_relaxed)) result = apply_profiled(node, std::move(grads), with, needs);
  else result = apply_with(node, std::move(grads), with, needs);
  use.complete(retain_graph);
  if (node.flat() && GradMode::enabled() && result.size() > 0 && result[0].defined() && node.edges()[0]) {
    result[0] = flat_gradient(result[0], node.edges()[0]);
  }
  return result;
}

/// Takes the leading activation of the node before input 0 over, if this node can compute it: Note [Neighbours as one].
std::optional<PendingGradient> Run::reach(const Node& node, const GradList& grads, Needs needs) {
  const Edge& edge = node.edges()[0];
  if (!edge.node || edge.input_nr != 0 || !needs[0] || GradMode::enabled() || !grads[0].defined()) return {};
  if (grads[0].device().type() == DeviceType::cpu) return {};
  Task& task = tasks_[index_.find(edge.node.get())];
  const bool seen = task.waiting != 1 || task.has_gradient() || task.capture != kNone || task.node->hooks();
  if (seen || !task.needed || !task.runs || edge.node->stream() != node.stream()) return {};
  Use use(*edge.node);
  const LeadingActivation leading = edge.node->leading();
  if (!leading.activation || !node.fuses_previous(leading)) return {};
  task.leading_done = true;
  return edge.node->leading_operands();
}

/// Hands a gradient on without computing it, if the node it goes to can take it so: Note [Neighbours as one].
bool Run::postpone(uint32_t index, Tensor& grad, bool retain_graph) {
  Node& node = *tasks_[index].node;
  const Edge& edge = node.edges()[0];
  if (!edge.node || edge.input_nr != 0 || GradMode::enabled() || !edge.node->takes(*node.postponable())) return false;
  if (!grad.defined() || grad.device().type() != DeviceType::cpu) return false;
  const uint32_t next = index_.find(edge.node.get());
  Task& task = tasks_[next];
  const bool seen = task.waiting != 1 || task.has_gradient() || task.capture != kNone || task.node->hooks();
  if (seen || !task.needed || !task.runs || !edge.node->input_meta(0).fits(grad)) return false;
  Use use(node);
  {
    std::optional<profiler::Part> part;
    if (profiled.load(std::memory_order_relaxed))
      part.emplace(profiler::Kind::node, profiled_name(node), node.sequence_nr());
    task.pending = std::make_unique<PendingGradient>(node.postpone(grad));
  }
  use.complete(retain_graph);
  --task.waiting;
  ready(next);
  return true;
}

void Run::run_task(uint32_t index, bool retain_graph) {
  if (!profiled.load(std::memory_order_relaxed)) [[likely]]
    return run_on_device(index, retain_graph);
  const Node& node = *tasks_[index].node;
  const profiler::Part part(profiler::Kind::function, profiled_name(node), node.sequence_nr());
  run_on_device(index, retain_graph);
}

void Run::run_on_device(uint32_t index, bool retain_graph) {
  Node& node = *tasks_[index].node;
  const Device device = node.input_meta(0).device();
  if (device.type() == DeviceType::cpu) [[likely]]
    return run_here(index, retain_graph);
  const uint32_t home_stream = home(device);
  const uint32_t stream = node.accumulates() ? home_stream : node.stream();
  OnStream on(device, stream);
  if (stream != home_stream && on.before() == home_stream) homes_.emplace_back(device, home_stream);
  run_here(index, retain_graph);
}

void Run::run_here(uint32_t index, bool retain_graph) {
  tasks_[index].join_pieces();
  GradList grads = std::move(tasks_[index].grads);
  Node& node = *tasks_[index].node;
  auto edges = node.edges();
  NodeHooks* hooks = node.hooks();
  std::unique_ptr<PendingGradient> pending = std::move(tasks_[index].pending);
  if (hooks) [[unlikely]] {
    VESTA_CHECK(!tasks_[index].leading_done, runtime, node.name(),
                ": a hook was added while a backward runs that has taken its gradient already. Add it before.");
    if (pending) {  // a hook of this run has added these
      grads = GradList(pending->resolve());
      pending.reset();
    }
    grads.grow(node.num_inputs());
    run_tensor_hooks(*hooks, grads);
  }
  for (uint32_t c = tasks_[index].capture; c != kNone; c = captures_[c].next) {
    if (captures_[c].input_nr >= grads.size()) continue;
    Tensor& g = captures_[c].grad = grads[captures_[c].input_nr];
    if (g.defined() && g.device().type() != DeviceType::cpu) cross_over(g, home(g.device()));
  }
  GradList result;
  bool runs = tasks_[index].runs && (node.runs_without_gradient() || pending || grads.any_defined());
  if (runs) {
    Needs needs = needs_of(tasks_[index]);
    if (node.runs_without_gradient()) grads.grow(node.num_inputs());
    bool posts = hooks && !hooks->post.empty();
    if (node.postponable() && !anomaly && !posts && postpone(index, grads[0], retain_graph)) return;
    Neighbours with{pending.get(), nullptr, tasks_[index].leading_done};
    std::optional<PendingGradient> before;
    if (node.may_fuse_previous() && !anomaly && !posts && !pending) {
      before = reach(node, grads, needs);
      if (before) with.before = &*before;
    }
    only_edge_ = edges.size() == 1 && edges[0].node && !anomaly && !posts ? edges.data() : nullptr;
    GradList kept;  // what came in, for hooks that want to see it
    if (posts) {
      kept.grow(grads.size());
      for (size_t i = 0; i < grads.size(); ++i) kept[i] = grads[i];
    }
    if (anomaly) [[unlikely]] {
      try {
        result = apply(node, std::move(grads), with, needs, retain_graph);
      } catch (const Error& e) {
        std::string where = hooks && !hooks->module_path.empty() ? " (in " + hooks->module_path + ")" : "";
        fail(e.cause(), node.name(), where, ": ", e.message());
      }
      if (anomaly_nan) check_nan(node, result);
    } else {
      result = apply(node, std::move(grads), with, needs, retain_graph);
    }
    only_edge_ = nullptr;
    if (posts) {
      for (auto& e : hooks->post.now()) e.hook->call(result, kept);
    }
  }
  for (size_t i = 0; i < edges.size(); ++i) {
    if (edges[i].node) hand(edges[i], i < result.size() ? std::move(result[i]) : Tensor(), &node, i);
  }
}

/// Returns the task that the current node's only gradient goes to, null where something sees that gradient.
Task* Run::only_task() {
  if (!only_edge_ || GradMode::enabled()) return nullptr;
  Task& task = tasks_[index_.find(only_edge_->node.get())];
  return task.needed ? &task : nullptr;
}

/// Returns whether gradients of a device for that task are summed on the stream that the current node runs on.
bool Run::sums_here(Device device) const {
  if (device.type() == DeviceType::cpu) return true;
  const Node& to = *only_edge_->node;
  const uint32_t wanted = to.accumulates() ? home(device) : to.stream();
  return backend(device.type()).current_stream(device) == wanted;
}

/// Returns whether `t` is summed on the stream that the current node runs on.
bool Run::is_at_home(const Tensor& t) const { return sums_here(t.device()) && !has_crossed(t); }

Tensor* Run::sum_in_progress() {
  Task* task = only_task();
  if (!task) return nullptr;
  if (task->pieces && !sums_here(task->pieces->device())) return nullptr;  // hand() joins them on their stream
  task->join_pieces();
  if (only_edge_->input_nr >= task->grads.size()) return nullptr;
  Tensor& sum = task->grads[only_edge_->input_nr];
  return sum.defined() && held_only_here(sum) && sum.impl()->dense() && is_at_home(sum) ? &sum : nullptr;
}

bool Run::keep_piece(const Tensor& g, bool alone, IntSpan sizes, int64_t dim, int64_t start) {
  Task* task = only_task();
  if (!task || !is_at_home(g)) return false;
  const uint32_t nr = only_edge_->input_nr;
  const TensorMeta& meta = only_edge_->node->input_meta(nr);
  if (!std::ranges::equal(meta.sizes(), sizes) || meta.dtype() != g.dtype() || meta.device() != g.device())
    return false;
  if (nr < task->grads.size() && task->grads[nr].defined()) return false;  // there is a sum that it is added to
  if (!task->pieces) task->pieces = std::make_unique<Pieces>(sizes, dim, nr);
  if (!task->pieces->takes(g, dim, nr)) return false;
  // A view would keep all the memory that it is of.
  const size_t whole = size_t(numel_of(sizes, "keep_piece") * g.element_size());
  const bool as_it_is = alone && g.impl()->dense() && g.impl()->storage()->nbytes() <= 2 * whole;
  task->pieces->add(as_it_is ? g : clone(g, "contiguous_format"), start);
  return true;
}

/// Returns the gradient a root starts with. An undefined `given` means one, for a root of one element.
Tensor root_gradient(const Tensor& root, const Tensor& given, size_t i) {
  if (given.defined()) {
    VESTA_CHECK(std::ranges::equal(given.sizes(), root.sizes()), runtime, "Mismatch in shape: grad_output[", i,
                "] has a shape of ", given.sizes(), " and output[", i, "] has a shape of ", root.sizes(), ".");
    VESTA_CHECK(is_complex(given.dtype()) == is_complex(root.dtype()), runtime,
                "For complex Tensors, both grad_output and output are required to have the same dtype: grad_output[", i,
                "] has ", given.dtype(), " and output[", i, "] has ", root.dtype(), ".");
    return given;
  }
  VESTA_CHECK(root.numel() == 1, runtime, "grad can be implicitly created only for scalar outputs");
  VESTA_CHECK(!is_complex(root.dtype()), runtime,
              "grad can be implicitly created only for real scalar outputs but got ", root.dtype());
  Tensor one = empty_tensor(root.sizes(), root.dtype(), root.device());
  if (root.dtype() == DType::float32 && root.device().type() == DeviceType::cpu) {  // nearly always
    *static_cast<float*>(one.data_ptr()) = 1;
    return one;
  }
  NoGrad off;
  ops::fill_(one, Scalar(1.0));
  return one;
}

/// Warns, once: what a recorded run leaves in x.grad has a graph that leads back to x, a cycle that nobody collects.
void warn_of_cycle() {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  warn(
      "Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient "
      "which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you "
      "have to use this function, make sure to reset the .grad fields of your parameters to None after use to break "
      "the cycle and avoid the leak.");
}

}  // namespace

std::vector<Tensor> run_backward(TensorList roots, TensorList grads, const BackwardOptions& options,
                                 TensorList inputs) {
  VESTA_CHECK(grads.empty() || grads.size() == roots.size(), runtime, "backward: expected one gradient per tensor (",
              roots.size(), "), got ", grads.size(), ".");
  if (options.accumulate && options.create_graph) warn_of_cycle();
  RunScope run;
  for (size_t i = 0; i < roots.size(); ++i) {
    VESTA_CHECK(roots[i].defined() && requires_grad(roots[i]), runtime, "element ", i,
                " of tensors does not require grad and does not have a grad_fn");
    run->add_root(gradient_edge(roots[i]), root_gradient(roots[i], grads.empty() ? Tensor() : grads[i], i));
  }
  GradMode mode(options.create_graph);
  const WithoutPackedWeights written_next;
  std::vector<Edge> held;  // keeps the accumulators of unused inputs alive
  for (size_t i = 0; i < inputs.size(); ++i) {
    VESTA_CHECK(inputs[i].defined() && requires_grad(inputs[i]), runtime,
                "One of the differentiated Tensors does not require grad (input ", i, ").");
    Edge& e = held.emplace_back(gradient_edge(inputs[i]));
    run->want(e, !options.accumulate || !e.node->accumulates(), i);
  }
  run->discover();
  run->loop(options.retain_graph);
  for (size_t i = 0; i < run->callbacks.size(); ++i) {  // a callback may queue another
    auto f = std::move(run->callbacks[i]);
    f();
  }
  std::vector<Tensor> result(options.accumulate ? 0 : inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (options.accumulate && held[i].node->accumulates()) continue;
    Tensor g = run->take_capture(i);
    VESTA_CHECK(g.defined() || options.allow_unused || options.accumulate, runtime,
                "The differentiated Tensor at index ", i,
                " appears to not have been used in the graph. Set allow_unused=True if this is the desired behavior.");
    if (!options.accumulate) {
      result[i] = std::move(g);
    } else if (g.defined()) {
      Tensor old = grad(inputs[i]);
      set_grad(inputs[i], old.defined() ? ops::add(old, g, 1, Out{}) : g);
    }
  }
  return result;
}

void queue_callback(std::function<void()> f) {
  VESTA_CHECK(current, runtime, "queue_callback: expected a backward under way on this thread, got none.");
  current->callbacks.push_back(std::move(f));
}

void queue_final_callback(std::function<void()> f) {
  VESTA_CHECK(current, runtime, "queue_final_callback: expected a backward under way on this thread, got none.");
  Run* run = current;
  while (run->outer) run = run->outer;
  run->callbacks.push_back(std::move(f));
}

Tensor* sum_in_progress() { return current ? current->sum_in_progress() : nullptr; }
bool keep_piece(const Tensor& g, bool alone, IntSpan sizes, int64_t dim, int64_t start) {
  return current && current->keep_piece(g, alone, sizes, dim, start);
}

void set_detect_anomaly(bool enabled, bool check_nan) {
  anomaly = enabled;
  anomaly_nan = enabled && check_nan;
}
bool detect_anomaly() { return anomaly; }
void watch_by_profiler(bool on) { profiled.store(on, std::memory_order_relaxed); }

}  // namespace vesta::autograd

namespace vesta {

void backward(TensorList tensors, TensorList grad_tensors, std::optional<bool> retain_graph, bool create_graph,
              TensorList inputs) {
  autograd::run_backward(tensors, grad_tensors, {retain_graph.value_or(create_graph), create_graph, true, false},
                         inputs);
}

std::vector<Tensor> grad(TensorList outputs, TensorList inputs, TensorList grad_outputs,
                         std::optional<bool> retain_graph, bool create_graph, std::optional<bool> allow_unused,
                         bool materialize_grads) {
  VESTA_CHECK(!inputs.empty(), value, "grad requires non-empty inputs.");
  VESTA_CHECK(!materialize_grads || allow_unused.value_or(true), value,
              "grad: expected allow_unused to be True or not passed with materialize_grads=True, got False.");
  bool unused = allow_unused.value_or(materialize_grads);
  auto r = autograd::run_backward(outputs, grad_outputs,
                                  {retain_graph.value_or(create_graph), create_graph, false, unused}, inputs);
  if (materialize_grads) {
    for (size_t i = 0; i < r.size(); ++i) {
      if (!r[i].defined()) r[i] = zeros_like(inputs[i]);
    }
  }
  return r;
}

}  // namespace vesta
