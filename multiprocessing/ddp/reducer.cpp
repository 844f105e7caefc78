#include <vesta/multiprocessing/ddp/reducer.h>

#include <algorithm>
#include <numeric>
#include <unordered_map>
#include <unordered_set>

#include <vesta/autograd/engine.h>
#include <vesta/autograd/grad_meta.h>
#include <vesta/core/dispatch/profiler.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/view.h>
#include <vesta/multiprocessing/deadline.h>

namespace vesta::ddp {

using Lock = std::lock_guard<std::recursive_mutex>;

/// What the reducer knows about a parameter.
struct Reducer::Slot {
  intrusive_ptr<autograd::AccumulateGrad> accumulator;  // held: a graph refers to the parameter by it
  autograd::HookId hook = 0;
  size_t bucket = 0, place = 0;  // where its gradient lies
  uint64_t last = 0;             // when its last gradient came: the order of buckets
  uint32_t count = 0, left = 0;  // of a static graph: gradients in a backward, and those still to come
  bool used = false;             // got a gradient since the last average
  bool reachable = false;        // from the outputs of a forward since the last round
  bool ready = false;
  bool zeroed = false;           // takes part with zeros, having no gradient
  bool foreign = false;          // its grad is a tensor of the user's and lies elsewhere
  bool used_nowhere = false;     // in the round whose map came last
  Tensor before;                 // its grad before the round, where it was not used since the last average
};

/// The communication of a bucket.
struct Reducer::Send {
  size_t waiting = 0;  // gradients still to come
  bool sent = false;
  WorkPtr work;
  std::shared_ptr<PendingBucket> pending;  // of a communication hook
  std::string name;                        // for messages
};

/// A hook that tells the reducer that a parameter has its gradient.
class Reducer::GradientHook final : public autograd::PostAccumulateHook {
 public:
  GradientHook(std::weak_ptr<Reducer> reducer, size_t index) : reducer_(std::move(reducer)), index_(index) {}
  void call(const Tensor&) override {
    if (auto reducer = reducer_.lock()) reducer->on_gradient(index_);
  }

 private:
  std::weak_ptr<Reducer> reducer_;
  size_t index_;
};

/// The place of a parameter's first gradient: its bucket.
class Reducer::Place final : public autograd::GradPlace {
 public:
  Place(std::weak_ptr<Reducer> reducer, size_t index) : reducer_(std::move(reducer)), index_(index) {}
  Tensor place() override {
    auto reducer = reducer_.lock();
    if (!reducer) return {};
    Lock lock(reducer->mutex_);
    Slot& slot = reducer->slots_[index_];
    if (reducer->round_ && slot.ready && reducer->sends_[slot.bucket].sent) reducer->fail_ready_twice(index_);
    reducer->buckets_[slot.bucket].claim(slot.place);
    return reducer->buckets_[slot.bucket].part(slot.place);
  }

 private:
  std::weak_ptr<Reducer> reducer_;
  size_t index_;
};

// ---- making

std::shared_ptr<Reducer> Reducer::make(std::vector<Tensor> parameters, std::vector<std::string> names,
                                       ProcessGroupPtr group, const ReducerOptions& options) {
  VESTA_CHECK(!parameters.empty(), runtime,
              "DistributedDataParallel: expected a parameter that requires grad, got none.");
  VESTA_CHECK(names.size() == parameters.size(), value, "Reducer: expected a name for each of ", parameters.size(),
              " parameters, got ", names.size(), " (names).");
  VESTA_CHECK(group != nullptr, value, "Reducer: expected a process group, got none (group).");
  for (size_t i = 0; i < parameters.size(); ++i) {
    VESTA_CHECK(autograd::requires_grad(parameters[i]) && autograd::is_leaf(parameters[i]), value,
                "Reducer: expected leaves that require grad, got ", names[i], " (parameters).");
  }
  std::shared_ptr<Reducer> r(new Reducer(std::move(parameters), std::move(names), std::move(group), options));
  r->hook_parameters();
  return r;
}

Reducer::Reducer(std::vector<Tensor> parameters, std::vector<std::string> names, ProcessGroupPtr group,
                 const ReducerOptions& options)
    : parameters_(std::move(parameters)),
      names_(std::move(names)),
      group_(std::move(group)),
      options_(options),
      slots_(parameters_.size()) {
  // The order in which gradients come is not known yet. One bucket is sent when all are there; if some may not come,
  // the reverse order of registration is the best guess.
  const bool one = rebuilds() && options_.bucket_limits.empty();
  BucketPlan plan = assign_buckets(parameters_, one ? std::vector{INT64_MAX} : limits());
  std::ranges::reverse(plan.buckets);
  make_buckets(plan);
}

std::vector<int64_t> tapered_limits(int64_t total, int64_t first, int64_t most) {
  std::vector<int64_t> limits{first};
  for (int64_t left = total - first; left > 0; left -= limits.back())
    limits.push_back(std::min(most, std::max(first, left / 4)));
  return limits;
}

/// Returns the limits of buckets in the order in which they are filled.
std::vector<int64_t> Reducer::limits() const {
  if (!options_.bucket_limits.empty()) return options_.bucket_limits;
  if (!options_.taper || !rebuilds()) return {options_.first_bucket_bytes, options_.bucket_bytes};
  int64_t total = 0;
  for (const Tensor& p : parameters_) total += p.numel() * p.element_size();
  return tapered_limits(total, options_.first_bucket_bytes, options_.bucket_bytes);
}

void Reducer::hook_parameters() {
  for (size_t i = 0; i < parameters_.size(); ++i) {
    slots_[i].accumulator = autograd::grad_accumulator(parameters_[i]);
    slots_[i].accumulator->set_place(std::make_shared<Place>(weak_from_this(), i));
    slots_[i].hook =
        autograd::register_post_accumulate_hook(parameters_[i], std::make_shared<GradientHook>(weak_from_this(), i));
  }
}

Reducer::~Reducer() {
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].accumulator) continue;
    slots_[i].accumulator->set_place(nullptr);
    autograd::remove_hook(parameters_[i], slots_[i].hook);
  }
}

void Reducer::make_buckets(const BucketPlan& plan) {
  std::vector<Bucket> old = std::move(buckets_);
  buckets_.clear();
  sends_.clear();
  sends_.resize(plan.buckets.size());
  stats_.bucket_bytes.clear();
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    std::vector<Tensor> members;
    for (size_t i : plan.buckets[b]) members.push_back(parameters_[i]);
    Bucket& bucket = buckets_.emplace_back(std::move(members), plan.buckets[b]);
    for (size_t place = 0; place < plan.buckets[b].size(); ++place) {
      Slot& slot = slots_[plan.buckets[b][place]];
      if (!old.empty()) bucket.adopt(place, old[slot.bucket].part(slot.place));
      slot.bucket = b, slot.place = place;
    }
    sends_[b].name = text("DistributedDataParallel, bucket ", b + 1, " of ", plan.buckets.size(), " (",
                          names_of(plan.buckets[b]), ")");
    stats_.bucket_bytes.push_back(bucket.nbytes());
  }
}

void Reducer::register_comm_hook(std::shared_ptr<CommHook> hook) {
  Lock lock(mutex_);
  VESTA_CHECK(!comm_hook_, runtime, "register_comm_hook or register_builtin_comm_hook can only be called once.");
  VESTA_CHECK(stats_.rounds == 0 && !round_, runtime,
              "register_comm_hook: expected to be called before the first backward, got a reducer that has averaged.");
  comm_hook_ = std::move(hook);
}

void Reducer::set_forward_work(WorkPtr work, Tensor count) {
  Lock lock(mutex_);
  forward_work_ = std::move(work);
  forward_count_ = std::move(count);
}

ReducerStats Reducer::stats() const {
  Lock lock(mutex_);
  return stats_;
}

// ---- around forward

bool Reducer::prepare_for_forward() {
  Lock lock(mutex_);
  if (sync_) check_finished();
  if (rebuilt_ || round_ || !rebuilds() || stats_.rounds == 0) return false;
  const std::vector<size_t> order = agreed_order();
  std::vector<Tensor> sorted;
  sorted.reserve(order.size());
  for (size_t i : order) sorted.push_back(parameters_[i]);
  make_buckets(assign_buckets(sorted, limits(), order));
  rebuilt_ = stats_.rebuilt = true;
  return true;
}

/// Returns the parameters in the order in which rank 0 got their gradients; parameters without a gradient come last.
std::vector<size_t> Reducer::agreed_order() {
  std::vector<size_t> order(slots_.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::ranges::stable_sort(order, {}, [&](size_t i) { return slots_[i].last - 1; });  // 0, none, wraps to the end
  NoGrad off;
  Tensor shared = empty_tensor(std::array{int64_t(order.size())}, DType::int64);
  std::ranges::copy(order, shared.data_ptr<int64_t>());
  CallSite here("DistributedDataParallel, order of buckets");
  Tensor sent = shared.to(parameters_[0].device());
  group_->broadcast({sent}, 0)->wait();
  shared = sent.to(Device{});
  std::copy_n(shared.data_ptr<int64_t>(), order.size(), order.begin());
  return order;
}

void Reducer::prepare_for_backward(const std::vector<Tensor>& outputs, bool sync) {
  Lock lock(mutex_);
  if (!sync) {
    if (!forward_seen_) sync_ = false;
    return;
  }
  check_finished();
  if (options_.find_unused_parameters && !options_.static_graph) search(outputs);
  sync_ = forward_seen_ = true;
}

/// Records which parameters a backward from `outputs` can reach.
void Reducer::search(const std::vector<Tensor>& outputs) {
  if (!searched_) {
    for (Slot& slot : slots_) slot.reachable = false;
  }
  searched_ = true;
  std::unordered_map<const autograd::Node*, Slot*> leaves;
  for (Slot& slot : slots_) leaves.emplace(slot.accumulator.get(), &slot);
  std::unordered_set<const autograd::Node*> seen;
  std::vector<const autograd::Node*> stack;
  auto visit = [&](const autograd::Edge& edge) {
    if (!edge.node || !seen.insert(edge.node.get()).second) return;
    if (auto leaf = leaves.find(edge.node.get()); leaf != leaves.end()) leaf->second->reachable = true;
    else stack.push_back(edge.node.get());
  };
  for (const Tensor& t : outputs) {
    if (t.defined()) visit(autograd::gradient_edge(t));
  }
  while (!stack.empty()) {
    const autograd::Node* node = stack.back();
    stack.pop_back();
    for (const autograd::Edge& edge : node->edges()) visit(edge);
  }
}

void Reducer::check_finished() {
  if (!round_) return;
  std::vector<size_t> missing;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].ready) missing.push_back(i);
  }
  abandon_round();  // a caller that catches the error may continue
  fail(Cause::runtime,
       "DistributedDataParallel: expected to have finished reduction in the prior iteration before starting a new one, "
       "but on rank ",
       group_->rank(), " ", missing.size(), " of ", slots_.size(), " parameters got no gradient: ", names_of(missing),
       ". If the forward does not use them in every iteration, or its loss does not depend on all of its outputs, pass "
       "find_unused_parameters=True; an error in the middle of a backward leaves a reduction unfinished, too.");
}

// ---- a round

/// Returns whether this round finds out which parameters no rank used: it does if that may change or is not known yet.
bool Reducer::sends_used_map() const { return options_.static_graph ? stats_.rounds == 0 : ends_with_backward_; }

/// Finds the divisor of the gradients; with uneven inputs, the ranks that still have inputs are counted.
void Reducer::set_divisor() {
  divide_by_ = double(group_->size());
  if (!forward_work_) return;
  forward_work_->wait();
  if (forward_count_.defined()) divide_by_ = forward_count_.item<double>();
  forward_work_.reset();
  forward_count_ = {};
}

void Reducer::begin_round() {
  round_ = true;
  next_bucket_ = 0;
  began_ = Clock::now();
  set_divisor();
  for (size_t b = 0; b < buckets_.size(); ++b) {
    sends_[b].waiting = buckets_[b].size();
    sends_[b].sent = false;
  }
  for (Slot& slot : slots_) {
    slot.ready = slot.zeroed = slot.foreign = false;
    slot.left = slot.count;
  }
  ends_with_backward_ = options_.find_unused_parameters || options_.static_graph || !forward_seen_;
  if (ends_with_backward_) autograd::queue_final_callback([self = shared_from_this()] { self->end_of_backward(); });
  if (!forward_seen_) return;  // nothing is known about such a backward
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (counted_ ? slots_[i].count == 0 : searched_ && !slots_[i].reachable) mark_ready(i);
  }
}

void Reducer::on_gradient(size_t i) {
  Lock lock(mutex_);
  Slot& slot = slots_[i];
  slot.used = true;
  if (!sync_) return;
  if (!round_) begin_round();
  slot.last = ++tick_;
  if (counting()) {
    ++slot.count;
  } else if (counted_ && slot.left > 1) {
    --slot.left;
  } else {
    mark_ready(i);
  }
}

/// Ends a round that ends with its backward: parameters without a gradient by now get none.
void Reducer::end_of_backward() {
  Lock lock(mutex_);
  if (!round_) return;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (!slots_[i].ready) mark_ready(i);
  }
}

void Reducer::mark_ready(size_t i) {
  Slot& slot = slots_[i];
  Send& send = sends_[slot.bucket];
  if (send.sent) fail_ready_twice(i);
  NoGrad off;
  gather(i);
  if (std::exchange(slot.ready, true)) return;  // it had been taken as unused
  if (--send.waiting == 0) send_ready_buckets();
}

/// Makes sure that the gradient of parameter `i`, or zeros, lies in its bucket.
void Reducer::gather(size_t i) {
  Slot& slot = slots_[i];
  Bucket& bucket = buckets_[slot.bucket];
  const Tensor g = autograd::grad(parameters_[i]);
  slot.zeroed = !g.defined();
  slot.foreign = g.defined() && !g.is_same(bucket.part(slot.place));
  slot.before = {};
  if (slot.zeroed || slot.foreign) bucket.claim(slot.place);
  const Tensor& part = bucket.part(slot.place);
  if (slot.zeroed) {
    zero_(part);
  } else if (slot.foreign) {
    copy_into(part, g.detach(), "ddp");
  } else if (!slot.used) {
    slot.before = clone(part);  // the average of equal numbers may differ from them
  }
}

void Reducer::send_ready_buckets() {
  while (next_bucket_ < buckets_.size() && sends_[next_bucket_].waiting == 0) send(next_bucket_++);
  if (next_bucket_ < buckets_.size()) return;
  if (sends_used_map()) send_used_map();
  autograd::queue_callback([self = shared_from_this()] { self->finish(); });
}

void Reducer::send(size_t b) {
  Send& send = sends_[b];
  Bucket& bucket = buckets_[b];
  send.sent = true;
  if (may_skip(b)) return;
  CallSite here(send.name);
  const profiler::Part part(profiler::Kind::part, "DistributedDataParallel: send of a bucket");
  if (comm_hook_) {
    GradBucket shown(b, b + 1 == buckets_.size(), bucket.flat(), bucket.parts(), bucket.parameters());
    send.pending = comm_hook_->run(shown);
    VESTA_CHECK(send.pending != nullptr, runtime,
                "communication hook: expected a future of the reduced bucket, got none.");
    return;
  }
  if (divide_by_ != 1) ops::div(bucket.flat(), wrapped(divide_by_), Out{&bucket.flat(), Out::inplace});
  send.work = group_->all_reduce({bucket.flat()});
}

/// Returns whether a bucket need not be sent: by the user's options, no rank uses its parameters.
bool Reducer::may_skip(size_t b) const {
  if (!options_.skip_unused_buckets || !ends_with_backward_) return false;
  return std::ranges::none_of(buckets_[b].indices(), [&](size_t i) { return slots_[i].used; });
}

/// Starts the sum that counts how many ranks used each parameter.
void Reducer::send_used_map() {
  Tensor map = empty_tensor(std::array{int64_t(slots_.size())}, DType::int32);
  for (size_t i = 0; i < slots_.size(); ++i) map.data_ptr<int32_t>()[i] = slots_[i].used;
  used_map_ = map.to(parameters_[0].device());
  CallSite here("DistributedDataParallel, which parameters were used");
  used_work_ = group_->all_reduce({used_map_});
}

/// Waits for the buckets and sets the parameters' gradients.
void Reducer::finish() {
  Lock lock(mutex_);
  if (!round_) return;
  struct Reset {  // also if a rank has died: the next round starts anew
    Reducer& reducer;
    ~Reset() { reducer.abandon_round(); }
  } reset{*this};
  NoGrad off;
  const profiler::Part part(profiler::Kind::part, "DistributedDataParallel: end of backward");
  const auto start = Clock::now();
  for (size_t b = 0; b < buckets_.size(); ++b) receive(b);
  receive_used_map();
  stats_.exposed_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  stats_.total_exposed_seconds += stats_.exposed_seconds;
  stats_.backward_seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  std::vector<bool> unused;
  for (size_t i = 0; i < slots_.size(); ++i) {
    unused.push_back(!slots_[i].used);
    settle(i, (options_.static_graph || map_received_) && slots_[i].used_nowhere);
  }
  stats_.unused_changed |= stats_.rounds > 0 && unused != unused_before_;
  unused_before_ = std::move(unused);
  ++stats_.rounds;
  if (options_.static_graph) counted_ = true;
  for (Slot& slot : slots_) slot.used = false;
  forward_seen_ = searched_ = false;
}

void Reducer::receive(size_t b) {
  Send& send = sends_[b];
  if (send.work) {
    send.work->synchronize();
    send.work.reset();
  } else if (send.pending) {
    const Tensor& flat = buckets_[b].flat();
    const Tensor got = send.pending->wait();
    VESTA_CHECK(got.defined() && got.numel() == flat.numel(), runtime, "communication hook: expected a tensor of ",
                flat.numel(), " elements, the bucket's, got ", got.defined() ? text(got.sizes()) : "none", ".");
    if (!got.is_same(flat)) copy_into(flat, reshape(got, flat.sizes()), "ddp");
    send.pending.reset();
  }
}

void Reducer::receive_used_map() {
  map_received_ = used_work_ != nullptr;
  if (!map_received_) return;
  used_work_->wait();
  const Tensor map = used_map_.to(Device{});
  for (size_t i = 0; i < slots_.size(); ++i) slots_[i].used_nowhere = map.data_ptr<int32_t>()[i] == 0;
}

/// Makes the averaged gradient in the bucket the gradient of parameter `i`.
void Reducer::settle(size_t i, bool used_nowhere) {
  Slot& slot = slots_[i];
  const Tensor& part = buckets_[slot.bucket].part(slot.place);
  if (used_nowhere) {
    if (slot.before.defined()) copy_into(part, slot.before, "ddp");
  } else if (slot.zeroed) {
    autograd::set_grad(parameters_[i], part);
  } else if (slot.foreign) {
    copy_into(autograd::grad(parameters_[i]), part, "ddp");
  }
}

/// Ends a round at any point. A bucket that was sent and not received may still be written to.
void Reducer::abandon_round() {
  for (size_t b = 0; b < buckets_.size(); ++b) {
    if (sends_[b].work || sends_[b].pending) buckets_[b].abandon();
  }
  reset_round();
}

void Reducer::reset_round() {
  round_ = ends_with_backward_ = false;
  for (Send& send : sends_) send.work.reset(), send.pending.reset(), send.sent = false;
  for (Slot& slot : slots_) slot.before = {};
  used_work_.reset();
  used_map_ = {};
}

void Reducer::shadow_round() {
  Lock lock(mutex_);
  NoGrad off;
  for (size_t b = 0; b < buckets_.size(); ++b) {
    Tensor zeros = zeros_like(buckets_[b].flat());
    CallSite here(sends_[b].name);
    if (!comm_hook_) {
      sends_[b].work = group_->all_reduce({zeros});
      continue;
    }
    std::vector<Tensor> parts;
    for (const Tensor& p : buckets_[b].parts()) parts.push_back(zeros_like(p));
    GradBucket shown(b, b + 1 == buckets_.size(), zeros, parts, buckets_[b].parameters());
    sends_[b].pending = comm_hook_->run(shown);
  }
  ends_with_backward_ = options_.find_unused_parameters || options_.static_graph;
  for (Slot& slot : slots_) slot.used = false;
  if (sends_used_map()) send_used_map();
  for (Send& send : sends_) {
    if (send.work) send.work->wait();
    if (send.pending) send.pending->wait();
  }
  receive_used_map();
  ++stats_.rounds;
  reset_round();
}

// ---- messages

void Reducer::fail_ready_twice(size_t i) const {
  fail(Cause::runtime, "DistributedDataParallel: expected to mark a variable ready only once, but parameter ",
       names_[i], " (index ", i,
       ") got a gradient after its bucket was on its way. Reasons: it is used by two backwards of one "
       "forward, as with reentrant checkpointing, where static_graph=True helps; or a parameter is used outside of "
       "forward, or by a forward whose outputs were not returned.");
}

std::string Reducer::names_of(const std::vector<size_t>& indices) const {
  constexpr size_t kShown = 20;
  std::string r;
  for (size_t k = 0; k < std::min(indices.size(), kShown); ++k) r += (k ? ", " : "") + names_[indices[k]];
  if (indices.size() > kShown) r += text(" and ", indices.size() - kShown, " more");
  return r;
}

}  // namespace vesta::ddp
