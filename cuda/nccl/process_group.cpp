// NcclGroup: the collectives on NCCL. A tour of all_reduce:
//
//   all_reduce   checks, describes the call (Fingerprint) and what NCCL is to do (Operation)
//   issue        gives it a number (GroupCore::submit), makes the communicator where this is the first call, and queues
//                it on the communicator's stream, behind what the current stream has queued: the host waits for nothing
//   follow       on the group's thread: sends the fingerprint to the next rank, waits for the end on the device and
//                compares what the rank before sent, one step behind the device
//   wait         makes the current stream wait for the end (NcclWork)
//
// GroupCore and the monitor find a rank that dies, differs or does not come, as in every group; that ends in
// NcclEngine::abort, which aborts the communicators, so that no stream hangs.
#include <vesta/cuda/nccl/process_group.h>

#include <sys/random.h>

#include <map>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/nccl/messages.h>
#include <vesta/cuda/nccl/operands.h>
#include <vesta/cuda/register.h>
#include <vesta/multiprocessing/collective_checks.h>

namespace vesta::cuda::nccl {
namespace {

/// The engine that a group's thread and monitor see for NCCL: something that can be aborted.
class NcclEngine final : public Engine {
 public:
  explicit NcclEngine(std::shared_ptr<GroupState> group) : group_(std::move(group)) {}
  /// Aborts the communicators of a failed group; those of a group that has not failed are closed when it has left.
  void abort() noexcept override { group_->abort_if_failed(); }

 private:
  const std::shared_ptr<GroupState> group_;
};

/// Agrees with the other ranks on a string that no other group of this name and store has: keys of a failed group may
/// still be there.
std::string agree_on_token(const Meeting& m) {
  if (m.rank != 0) return m.read(0);
  uint64_t random = 0;
  if (getrandom(&random, sizeof random, 0) != sizeof random) fail(Cause::runtime, "nccl: no randomness.");
  const std::string token = std::to_string(random);
  m.publish(token);
  return token;
}

/// The bytes that this rank sends to each other rank and expects from it; empty if all ranks know that anyway.
struct PairSizes {
  std::vector<size_t> sent, expected;
};

/// A collective to be queued.
struct Operation {
  Fingerprint print;
  std::vector<Tensor> inputs, outputs;  // the user's
  std::vector<Operand> operands;
  Tensor flat;  // for the list forms: the memory NCCL works on, made on the communicator's stream
  std::function<void(Operation&)> before, after;  // copies, on the communicator's stream
  std::function<void(Operation&, Comm, nccl::Stream)> call;
  PairSizes sizes;  // else nobody asked for it, so it gets no context now
  int device = 0;
  Milliseconds timeout{0};
  bool blocking = false;
  std::shared_ptr<NcclWork> work;
};

/// Returns a tensor with room for n times the model's values, allocated on the current stream.
Tensor flat_of(int n, const Tensor& model) {
  std::vector<int64_t> sizes{n};
  sizes.insert(sizes.end(), model.sizes().begin(), model.sizes().end());
  return empty_tensor(sizes, model.dtype(), model.device());
}

char* at(const Tensor& t, size_t bytes) { return static_cast<char*>(t.data_ptr()) + bytes; }

class NcclGroup final : public ProcessGroup {
 public:
  NcclGroup(StorePtr store, int rank, int size, const GroupOptions& o);
  ~NcclGroup() override;

  WorkPtr all_reduce(std::vector<Tensor> tensors, ReduceOp op, const CallOptions& o) override;
  WorkPtr broadcast(std::vector<Tensor> tensors, int root, const CallOptions& o) override;
  WorkPtr reduce(Tensor tensor, int root, ReduceOp op, const CallOptions& o) override;
  WorkPtr all_gather(std::vector<Tensor> outputs, Tensor input, const CallOptions& o) override;
  WorkPtr all_gather_into(Tensor output, Tensor input, const CallOptions& o) override;
  WorkPtr reduce_scatter(Tensor output, std::vector<Tensor> inputs, ReduceOp op, const CallOptions& o) override;
  WorkPtr reduce_scatter_tensor(Tensor output, Tensor input, ReduceOp op, const CallOptions& o) override;
  WorkPtr all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, const CallOptions& o) override;
  WorkPtr all_to_all_single(Tensor output, Tensor input, std::vector<int64_t> output_splits,
                            std::vector<int64_t> input_splits, const CallOptions& o) override;
  WorkPtr gather(std::vector<Tensor> outputs, Tensor input, int root, const CallOptions& o) override;
  WorkPtr scatter(Tensor output, std::vector<Tensor> inputs, int root, const CallOptions& o) override;
  WorkPtr send(Tensor tensor, int destination, int tag, const CallOptions& o) override;
  WorkPtr recv(Tensor tensor, int source, int tag, const CallOptions& o) override;
  WorkPtr barrier(const CallOptions& o) override;
  void start_coalescing() override;
  WorkPtr end_coalescing() override;
  void abort(const std::string& reason) override;
  void shutdown() override;
  std::string report(uint64_t sequence) const override { return core_->report(sequence); }
  bool busy() const override { return core_->busy(); }
  uint64_t sequence_number() const override { return core_->given(); }

 private:
  WorkPtr start(Operation op, Collective what, const CallOptions& o);
  void issue(std::vector<Operation> ops);
  void queue(std::vector<Operation>& ops, uint64_t first);
  void follow(Call& call, const std::shared_ptr<NcclWork>& work, const PairSizes& sizes);
  std::shared_ptr<Communicator> communicator(int device, const Look& look);
  Operation exchange(Collective what, std::vector<Operand> outs, std::vector<Operand> ins, PairSizes sizes);
  WorkPtr in_batch(WorkPtr work);
  CollectiveChecks checks(Collective what) const { return {what, rank(), size(), check_device}; }

  StorePtr store_;
  std::shared_ptr<GroupCore> core_;
  std::shared_ptr<GroupState> group_;
  std::unique_ptr<Messages> messages_;
  std::mutex order_;  // operations are numbered and queued in the same order
  std::map<int, std::shared_ptr<Communicator>> communicators_;  // of collectives, by device; under order_
  std::atomic<int> last_device_{-1};
};

/// What start_coalescing collects on this thread: collectives to be queued as one, and messages.
struct Collected {
  std::vector<Operation> ops;
  std::vector<WorkPtr> works;
};
thread_local std::map<const NcclGroup*, Collected> collecting;

// ---- The group ----

NcclGroup::NcclGroup(StorePtr store, int rank, int size, const GroupOptions& o)
    : ProcessGroup(o.name, "nccl", rank, size, o.timeout),
      store_(std::make_shared<PrefixStore>(o.name, std::move(store))),
      core_(std::make_shared<GroupCore>("nccl", o.name, *store_, rank, size, o.timeout)),
      group_(std::make_shared<GroupState>(core_)) {
  auto meet = [this](const Meeting& m) {
    store_ = std::make_shared<PrefixStore>(agree_on_token(m), store_);
    return std::make_unique<NcclEngine>(group_);
  };
  core_->start(meet, o.timeout);
  messages_ = std::make_unique<Messages>(core_, group_, store_);
  if (!o.ranks.empty()) set_ranks(o.ranks);
}

NcclGroup::~NcclGroup() {
  if (core_->forked()) {  // the parent's threads and communicators are not here
    new std::shared_ptr<GroupState>(group_);
    for (auto& [device, c] : communicators_) new std::shared_ptr<Communicator>(c);
    return;
  }
  try {
    NcclGroup::shutdown();
  } catch (...) {  // the group is gone either way
  }
}

void NcclGroup::abort(const std::string& reason) {
  const std::string whole = text("group '", name(), "' was aborted by ", core_->mesh.who(rank()), ": ", reason);
  core_->fail(whole, true);
  group_->communicators.abort(whole);
}

void NcclGroup::shutdown() {
  if (core_->forked()) return;
  // While collectives are under way other ranks may need this one for the order of their messages.
  std::exception_ptr interrupt;
  for (Backoff pause; core_->busy() && !core_->failed() && !interrupt; pause.sleep()) {
    try {
      check_interrupt();
    } catch (...) {
      interrupt = std::current_exception();
      core_->fail(text("group '", name(), "': ", core_->mesh.who(rank()), " was interrupted while it left."), true);
    }
  }
  messages_->stop();
  core_->stop();
  communicators_.clear();
  group_->communicators.close();
  if (interrupt) std::rethrow_exception(interrupt);
}

std::shared_ptr<Communicator> NcclGroup::communicator(int device, const Look& look) {
  auto& known = communicators_[device];
  if (known) return known;
  const std::string key = text("nccl/", communicators_.size());
  auto made = group_->communicators.add(device, rank(), size());
  UniqueId id;
  if (rank() == 0) {
    check(functions().unique_id(&id), "ncclGetUniqueId");
    store_->set(key, std::string(id.internal, sizeof id.internal));
  } else {
    for (Backoff pause; !store_->check({key}); pause.sleep()) look();
    const std::string bytes = store_->get(key);
    VESTA_ASSERT(bytes.size() == sizeof id.internal);
    std::memcpy(id.internal, bytes.data(), sizeof id.internal);
  }
  made->connect(id);
  made->settle(look);
  if (rank() == 0) store_->delete_key(key);  // all have read it
  return known = made;
}

WorkPtr NcclGroup::start(Operation op, Collective what, const CallOptions& o) {
  op.print.what = what;
  op.timeout = timeout_of(o);
  op.device = what == Collective::barrier ? op.device : device_of(what, op.inputs, op.outputs);
  op.work = std::make_shared<NcclWork>(vesta::name(what), op.timeout, group_, op.blocking);
  op.work->set_outputs(op.outputs);
  op.work->keep(op.inputs);
  op.work->keep(op.outputs);
  WorkPtr work = op.work;
  if (auto open = collecting.find(this); open != collecting.end()) {
    VESTA_CHECK(open->second.ops.empty() || open->second.ops[0].device == op.device, device, vesta::name(what),
                ": expected tensors on cuda:", open->second.ops[0].device,
                ", as in the calls before, got cuda:", op.device, ".");
    open->second.works.push_back(work);
    open->second.ops.push_back(std::move(op));
    return work;
  }
  std::vector<Operation> one;
  one.push_back(std::move(op));
  issue(std::move(one));
  return work;
}

/// Informs the messages that collectives up to `last` are queued, or have failed, at the end of its scope.
struct CollectivesQueued {
  Messages& messages;
  uint64_t last;
  ~CollectivesQueued() { messages.collectives_queued(last); }
};

void NcclGroup::issue(std::vector<Operation> ops) {
  if (core_->failed()) group_->notice.heard();  // submit or the group's thread tells the user
  std::lock_guard lock(order_);
  const uint64_t first = messages_->call_collectives(ops.size());
  const CollectivesQueued queued{*messages_, first + ops.size() - 1};
  for (Operation& op : ops) {
    core_->submit(op.print, op.work,
                  [this, work = op.work, sizes = op.sizes](Call& call) { follow(call, work, sizes); });
  }
  try {
    queue(ops, first);
  } catch (const Error& e) {
    const bool interrupted = e.cause() == Cause::interrupt;
    for (Operation& op : ops) op.work->not_queued(std::make_exception_ptr(Error(e)));
    if (interrupted) throw;
    ops[0].work->raise();  // says more: which rank died or differs
    throw;
  } catch (...) {
    const auto error = DistributedError(DistributedCause::backend, "the call was interrupted.");
    for (Operation& op : ops) op.work->not_queued(std::make_exception_ptr(error));
    throw;
  }
}

void NcclGroup::queue(std::vector<Operation>& ops, uint64_t first) {
  const int device = ops[0].device;
  const auto deadline = deadline_in(ops[0].timeout);
  const std::string title = core_->title(ops[0].print, ops[0].work->sequence_number());
  Look look = [&] {
    check_interrupt();
    core_->check_failed(title);
    if (size() == 1 && Clock::now() >= deadline) distributed_fail(DistributedCause::backend, title, " timed out.");
  };
  look();
  for (Backoff pause; !messages_->clear(first); pause.sleep()) look();
  auto comm = communicator(device, look);
  last_device_ = device;
  const Communicator::Busy busy(*comm);
  const cuda::Stream now = current_stream(device);
  {
    StreamGuard guard(comm->stream());
    Event start;
    start.record(now);
    start.block(comm->stream());
    for (Operation& op : ops) {
      for (Operand& operand : op.operands) operand.prepare();
      if (op.before) op.before(op);
    }
    comm->queue([&](Comm c) {
      for (Operation& op : ops) op.call(op, c, comm->handle());
    });
    comm->settle(look);
    for (Operation& op : ops) {
      if (op.after) op.after(op);
      for (const Operand& operand : op.operands) operand.finish();
    }
  }
  for (Operation& op : ops) {
    Event end;
    end.record(comm->stream());
    op.work->queued(std::move(end), now, comm);
  }
}

// ---- On the group's thread ----

/// Compares what each pair sends and expects: NCCL would wait forever if that differs.
void compare_sizes(Call& call, const PairSizes& sizes, int rank) {
  const auto& [sent, expected] = sizes;
  std::vector<std::string> mine;
  for (size_t r = 0; r < sent.size(); ++r) mine.push_back(Call::sizes(sent[r], expected[r]));
  const auto got = call.exchange([&](int r) { return std::string_view(mine[size_t(r)]); });
  for (size_t r = 0; r < sent.size(); ++r) {
    std::string_view theirs = got[r];
    if (int(r) != rank) call.compare_sizes(int(r), sent[r], expected[r], theirs);
  }
}

void NcclGroup::follow(Call& call, const std::shared_ptr<NcclWork>& work, const PairSizes& sizes) {
  const auto deadline = size() == 1 ? deadline_in(work->timeout()) : Clock::time_point::max();  // else the monitor
  auto wait = [&] { work->await(*core_, call.sequence(), deadline); };
  try {
    if (size() == 1) {
      work->await(*core_, call.sequence(), deadline);
    } else if (sizes.sent.empty()) {
      call.bulk(wait);
    } else {
      compare_sizes(call, sizes, rank());
      call.run_engine(wait);
    }
  } catch (const std::exception& e) {
    if (size() == 1) core_->fail(e.what(), false);
    throw;
  }
}

// ---- Coalescing ----

void NcclGroup::start_coalescing() {
  VESTA_CHECK(!collecting.count(this), runtime, "start_coalescing: group '", name(),
              "' already collects calls on this thread. Call end_coalescing first.");
  collecting[this];
}

WorkPtr NcclGroup::end_coalescing() {
  auto open = collecting.find(this);
  VESTA_CHECK(open != collecting.end(), runtime, "end_coalescing: group '", name(),
              "' collects no calls on this thread. Call start_coalescing first.");
  Collected all = std::move(open->second);
  collecting.erase(open);
  if (!all.ops.empty()) issue(std::move(all.ops));
  return coalesced(std::move(all.works));
}

WorkPtr NcclGroup::in_batch(WorkPtr work) {
  if (auto open = collecting.find(this); open != collecting.end()) open->second.works.push_back(work);
  return work;
}

// ---- Reductions ----

WorkPtr NcclGroup::all_reduce(std::vector<Tensor> tensors, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_reduce;
  checks(kWhat).together(tensors, true);
  Operation p;
  for (const Tensor& t : tensors) p.operands.push_back(inout_of(t));
  const Reducer r = reducer(kWhat, op, tensors[0].dtype());
  p.print = Fingerprint::of(tensors, op);
  p.outputs = std::move(tensors);
  p.call = [r](Operation& p, Comm c, nccl::Stream s) {
    Operator with(r, c);
    for (Operand& x : p.operands) {
      const size_t n = x.numel() * size_t(r.per_element);
      check(functions().all_reduce(x.data(), x.data(), n, r.type, with, c, s), "ncclAllReduce", c);
    }
  };
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::reduce(Tensor tensor, int root, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::reduce;
  checks(kWhat).rank(root, "dst");
  checks(kWhat).tensor(tensor, rank() == root);
  const Reducer r = reducer(kWhat, op, tensor.dtype());
  Operation p;
  p.print = Fingerprint::of({tensor}, op, root);
  p.operands.push_back(rank() == root ? inout_of(tensor) : input_of(tensor));
  p.outputs = {tensor};
  p.call = [r, root](Operation& p, Comm c, nccl::Stream s) {
    Operator with(r, c);
    Operand& x = p.operands[0];
    const size_t n = x.numel() * size_t(r.per_element);
    check(functions().reduce(x.data(), x.data(), n, r.type, with, root, c, s), "ncclReduce", c);
  };
  return start(std::move(p), kWhat, o);
}

/// Queues a reduce_scatter from `from` (size() times the output's values) into the first operand.
void reduce_parts(const Reducer& r, const void* from, Operand& to, Comm c, nccl::Stream s) {
  Operator with(r, c);
  check(functions().reduce_scatter(from, to.data(), to.numel() * size_t(r.per_element), r.type, with, c, s),
        "ncclReduceScatter", c);
}

WorkPtr NcclGroup::reduce_scatter(Tensor output, std::vector<Tensor> inputs, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::reduce_scatter;
  checks(kWhat).tensor(output, true);
  checks(kWhat).list(inputs, output, false);
  const Reducer r = reducer(kWhat, op, output.dtype());
  Operation p;
  p.print = Fingerprint::of({output}, op);
  p.operands.push_back(output_of(output));
  p.before = [n = size()](Operation& p) {
    p.flat = flat_of(n, p.outputs[0]);
    for (int i = 0; i < n; ++i) copy_(select(p.flat, 0, i), p.inputs[size_t(i)].detach());
  };
  p.call = [r](Operation& p, Comm c, nccl::Stream s) { reduce_parts(r, p.flat.data_ptr(), p.operands[0], c, s); };
  p.inputs = std::move(inputs);
  p.outputs = {output};
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::reduce_scatter_tensor(Tensor output, Tensor input, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::reduce_scatter_tensor;
  checks(kWhat).scattered(output, input);
  const Reducer r = reducer(kWhat, op, output.dtype());
  Operation p;
  p.print = Fingerprint::of({output}, op);
  p.operands = {output_of(output), input_of(input)};
  p.inputs = {input};
  p.outputs = {output};
  p.call = [r](Operation& p, Comm c, nccl::Stream s) { reduce_parts(r, p.operands[1].data(), p.operands[0], c, s); };
  return start(std::move(p), kWhat, o);
}

// ---- Copies: as bytes, for every dtype ----

WorkPtr NcclGroup::broadcast(std::vector<Tensor> tensors, int root, const CallOptions& o) {
  constexpr Collective kWhat = Collective::broadcast;
  checks(kWhat).rank(root, "src");
  checks(kWhat).together(tensors, rank() != root);
  Operation p;
  for (const Tensor& t : tensors) p.operands.push_back(rank() == root ? input_of(t) : output_of(t));
  p.print = Fingerprint::of(tensors, root);
  p.outputs = std::move(tensors);
  p.call = [root](Operation& p, Comm c, nccl::Stream s) {
    for (Operand& x : p.operands) {
      check(functions().broadcast(x.data(), x.data(), x.bytes(), uint8, root, c, s), "ncclBroadcast", c);
    }
  };
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::all_gather(std::vector<Tensor> outputs, Tensor input, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_gather;
  checks(kWhat).tensor(input, false);
  checks(kWhat).list(outputs, input, true);
  Operation p;
  p.print = Fingerprint::of({input});
  p.operands = {input_of(input)};
  p.inputs = {input};
  p.outputs = std::move(outputs);
  p.before = [n = size()](Operation& p) { p.flat = flat_of(n, p.inputs[0]); };
  p.call = [](Operation& p, Comm c, nccl::Stream s) {
    Operand& x = p.operands[0];
    check(functions().all_gather(x.data(), p.flat.data_ptr(), x.bytes(), uint8, c, s), "ncclAllGather", c);
  };
  p.after = [n = size()](Operation& p) {
    for (int i = 0; i < n; ++i) copy_(p.outputs[size_t(i)].detach(), select(p.flat, 0, i));
  };
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::all_gather_into(Tensor output, Tensor input, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_gather_into;
  checks(kWhat).gathered(output, input);
  Operation p;
  p.print = Fingerprint::of({input});
  p.operands = {input_of(input), output_of(output)};
  p.inputs = {input};
  p.outputs = {output};
  p.call = [](Operation& p, Comm c, nccl::Stream s) {
    Operand& x = p.operands[0];
    check(functions().all_gather(x.data(), p.operands[1].data(), x.bytes(), uint8, c, s), "ncclAllGather", c);
  };
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::gather(std::vector<Tensor> outputs, Tensor input, int root, const CallOptions& o) {
  constexpr Collective kWhat = Collective::gather;
  checks(kWhat).rank(root, "dst");
  checks(kWhat).tensor(input, false);
  checks(kWhat).list_of_root(outputs, input, true, root, "destination", "gather_list");
  Operation p;
  p.print = Fingerprint::of({input}, root);
  p.operands.push_back(input_of(input));
  for (const Tensor& t : outputs) p.operands.push_back(output_of(t));
  p.inputs = {input};
  p.outputs = std::move(outputs);
  p.call = [root, me = rank()](Operation& p, Comm c, nccl::Stream s) {
    const size_t bytes = p.operands[0].bytes();
    if (me != root) check(functions().send(p.operands[0].data(), bytes, uint8, root, c, s), "ncclSend", c);
    for (int r = 0; r + 1 < int(p.operands.size()); ++r) {
      if (r != me) check(functions().recv(p.operands[size_t(r) + 1].data(), bytes, uint8, r, c, s), "ncclRecv", c);
    }
  };
  p.after = [root, me = rank()](Operation& p) {
    if (me == root) copy_(p.operands[size_t(me) + 1].memory, p.operands[0].memory);
  };
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::scatter(Tensor output, std::vector<Tensor> inputs, int root, const CallOptions& o) {
  constexpr Collective kWhat = Collective::scatter;
  checks(kWhat).rank(root, "src");
  checks(kWhat).tensor(output, true);
  checks(kWhat).list_of_root(inputs, output, false, root, "source", "scatter_list");
  Operation p;
  p.print = Fingerprint::of({output}, root);
  p.operands.push_back(output_of(output));
  for (const Tensor& t : inputs) p.operands.push_back(input_of(t));
  p.inputs = std::move(inputs);
  p.outputs = {output};
  p.call = [root, me = rank()](Operation& p, Comm c, nccl::Stream s) {
    const size_t bytes = p.operands[0].bytes();
    if (me != root) check(functions().recv(p.operands[0].data(), bytes, uint8, root, c, s), "ncclRecv", c);
    for (int r = 0; r + 1 < int(p.operands.size()); ++r) {
      if (r != me) check(functions().send(p.operands[size_t(r) + 1].data(), bytes, uint8, r, c, s), "ncclSend", c);
    }
  };
  p.after = [root, me = rank()](Operation& p) {
    if (me == root) copy_(p.operands[0].memory, p.operands[size_t(me) + 1].memory);
  };
  return start(std::move(p), kWhat, o);
}

// ---- All to all ----

/// Sends a part to each rank and receives one from it: parts are separate tensors, or parts of one input and one
/// output.
Operation NcclGroup::exchange(Collective what, std::vector<Operand> outs, std::vector<Operand> ins, PairSizes sizes) {
  const bool lists = outs.size() > 1 || size() == 1;
  checks(what).to_itself(sizes.sent[size_t(rank())], sizes.expected[size_t(rank())]);
  Operation p;
  p.sizes = std::move(sizes);
  p.operands = std::move(outs);
  p.operands.insert(p.operands.end(), ins.begin(), ins.end());
  p.call = [lists, n = size_t(size())](Operation& p, Comm c, nccl::Stream s) {
    const Functions& f = functions();
    size_t from = 0, to = 0;
    for (size_t r = 0; r < n; ++r) {
      const Operand &out = p.operands[lists ? r : 0], &in = p.operands[lists ? n + r : 1];
      const size_t sent = p.sizes.sent[r], expected = p.sizes.expected[r];
      if (sent) check(f.send(at(in.memory, from), sent, uint8, int(r), c, s), "ncclSend", c);
      if (expected) check(f.recv(at(out.memory, to), expected, uint8, int(r), c, s), "ncclRecv", c);
      if (!lists) from += sent, to += expected;
    }
  };
  return p;
}

WorkPtr NcclGroup::all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_to_all;
  checks(kWhat).lists(outputs, inputs);
  std::vector<Operand> outs, ins;
  PairSizes sizes;
  for (size_t r = 0; r < inputs.size(); ++r) {
    ins.push_back(input_of(inputs[r]));
    outs.push_back(output_of(outputs[r]));
    sizes.sent.push_back(ins.back().bytes());
    sizes.expected.push_back(outs.back().bytes());
  }
  Operation p = exchange(kWhat, std::move(outs), std::move(ins), std::move(sizes));
  p.print.add({}, inputs[0].dtype());  // each pair has its own sizes
  p.inputs = std::move(inputs);
  p.outputs = std::move(outputs);
  return start(std::move(p), kWhat, o);
}

WorkPtr NcclGroup::all_to_all_single(Tensor output, Tensor input, std::vector<int64_t> output_splits,
                                     std::vector<int64_t> input_splits, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_to_all_single;
  checks(kWhat).tensor(input, false);
  checks(kWhat).tensor(output, true);
  checks(kWhat).same_type(output, input);
  PairSizes sizes{checks(kWhat).row_bytes(input, std::move(input_splits), "input"),
                  checks(kWhat).row_bytes(output, std::move(output_splits), "output")};
  Operation p = exchange(kWhat, {output_of(output)}, {input_of(input)}, std::move(sizes));
  p.print.add(input.sizes().subspan(1), input.dtype());  // rows are alike; each pair has its own number of them
  p.inputs = {input};
  p.outputs = {output};
  return start(std::move(p), kWhat, o);
}

// ---- Messages and barriers ----

WorkPtr NcclGroup::send(Tensor tensor, int destination, int tag, const CallOptions& o) {
  checks(Collective::send).tensor(tensor, false);
  checks(Collective::send).rank(destination, "dst");
  return in_batch(messages_->send(tensor, destination, tag, timeout_of(o)));
}

WorkPtr NcclGroup::recv(Tensor tensor, int source, int tag, const CallOptions& o) {
  checks(Collective::recv).tensor(tensor, true);
  if (source != -1) checks(Collective::recv).rank(source, "src");
  return in_batch(messages_->receive(tensor, source, tag, timeout_of(o)));
}

WorkPtr NcclGroup::barrier(const CallOptions& o) {
  const int device = last_device_ >= 0 ? last_device_.load() : current_device();
  Operation p;
  p.device = device;
  p.blocking = true;
  p.before = [device](Operation& p) {
    const int64_t one[] = {1};
    p.flat = empty_tensor(IntSpan(one, 1), DType::uint8, Device(DeviceType::cuda, int8_t(device)));
  };
  p.call = [](Operation& p, Comm c, nccl::Stream s) {
    check(functions().all_reduce(p.flat.data_ptr(), p.flat.data_ptr(), 1, uint8, op_max, c, s), "ncclAllReduce", c);
  };
  return start(std::move(p), Collective::barrier, o);
}

}  // namespace

ProcessGroupPtr new_group(StorePtr store, int rank, int size, const GroupOptions& options) {
  functions();  // raises if there is no NCCL
  return std::make_shared<NcclGroup>(std::move(store), rank, size, options);
}

}  // namespace vesta::cuda::nccl

namespace vesta::cuda {

void register_nccl() {
  register_backend("nccl", nccl::new_group, [](std::string* why_not) {
    if (visible_devices() == 0) *why_not = why_no_device();
    else *why_not = nccl::problem();
    return why_not->empty();
  });
}

}  // namespace vesta::cuda
