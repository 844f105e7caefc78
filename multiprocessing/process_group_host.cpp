// HostGroup: the collectives, for tensors in host memory. Each states what is sent; small values go through
// Call::exchange, large ones through the engine. Tensors that are strided or on a device are copied there and back.
#include <vesta/core/backend.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/multiprocessing/collective_checks.h>
#include <vesta/multiprocessing/host_engine.h>
#include <vesta/multiprocessing/process_group_core.h>
#include <vesta/multiprocessing/process_group_messages.h>
#include <vesta/multiprocessing/reduction.h>
#include <vesta/multiprocessing/store.h>

namespace vesta {
namespace {

int64_t bytes_of(const Tensor& t) { return t.numel() * t.element_size(); }
std::string_view view_of(const Tensor& t) { return {static_cast<const char*>(t.data_ptr()), size_t(bytes_of(t))}; }

/// A tensor of the user and the memory that is sent for it: its own if it is contiguous and on the host.
struct Staged {
  Tensor user, host;
  /// `filled`: the values are needed; otherwise the memory only receives.
  static Staged of(const Tensor& t, bool filled) {
    Tensor plain = t.detach();
    if (plain.is_contiguous() && plain.device().type() == DeviceType::cpu) return {plain, plain};
    if (!filled) return {plain, empty_tensor(plain.sizes(), plain.dtype())};
    Tensor host = plain.device().type() == DeviceType::cpu ? plain : plain.to(Device(DeviceType::cpu));
    return {plain, contiguous(host)};
  }
  void give_back() const {
    if (!user.is_same(host)) copy_(user, host);
  }
};

std::vector<Staged> staged(const std::vector<Tensor>& tensors, bool filled) {
  std::vector<Staged> r;
  for (const Tensor& t : tensors) r.push_back(Staged::of(t, filled));
  return r;
}

/// Makes scratch memory for a number of elements.
Tensor scratch(int64_t numel, DType dtype) {
  const int64_t size[] = {numel};
  return empty_tensor(IntSpan(size, 1), dtype);
}

void check_device(Collective what, const Tensor& t) {
  VESTA_CHECK(t.device().type() == DeviceType::cpu || t.device().type() == DeviceType::cuda, device, name(what),
              ": expected a tensor with values, got one on ", t.device(), ".");
}

bool small(size_t bytes, int size) {
  return bytes <= kEagerBytes && bytes * size_t(size - 1) <= kEagerTotal && size <= kEagerRanks;
}

/// Combines what the ranks sent, in their order, into `into`, which holds this rank's values.
void combine_in_order(const Tensor& into, const std::vector<std::string>& got, int rank, const Reduction& r) {
  const size_t bytes = size_t(bytes_of(into));
  std::string sum(rank == 0 ? std::string(view_of(into)) : got[0]);
  for (size_t i = 1; i < got.size(); ++i) {
    const void* next = int(i) == rank ? into.data_ptr() : got[i].data();
    r.combine(sum.data(), sum.data(), next, bytes / r.element_size);
  }
  std::memcpy(into.data_ptr(), sum.data(), bytes);
}

/// Several tensors of one dtype as one block of bytes; a single tensor is the block itself.
class Packed {
 public:
  explicit Packed(std::vector<Staged> parts) : parts_(std::move(parts)) {
    if (parts_.size() == 1) {
      whole = parts_[0].host;
      return;
    }
    int64_t numel = 0;
    for (const Staged& s : parts_) numel += s.host.numel();
    whole = scratch(numel, parts_[0].host.dtype());
    char* at = static_cast<char*>(whole.data_ptr());
    for (const Staged& s : parts_) {
      std::memcpy(at, s.host.data_ptr(), size_t(bytes_of(s.host)));
      at += bytes_of(s.host);
    }
  }
  void give_back() const {
    const char* at = static_cast<const char*>(whole.data_ptr());
    for (const Staged& s : parts_) {
      if (parts_.size() > 1) std::memcpy(s.host.data_ptr(), at, size_t(bytes_of(s.host)));
      at += bytes_of(s.host);
      s.give_back();
    }
  }
  Tensor whole;

 private:
  std::vector<Staged> parts_;
};

/// Starts a group's core and returns its engine, which the core owns; null in a group of one rank.
HostEngine* start_core(GroupCore& core, HostEngineFactory factory, const GroupOptions& o) {
  std::vector<int> world = o.ranks;
  for (int r = 0; world.size() < size_t(core.mesh.size()); ++r) world.push_back(r);
  core.join_world(std::move(world));
  HostEngine* engine = nullptr;
  auto make = [&](const Meeting& m) {
    auto made = factory(m);
    engine = made.get();
    return made;
  };
  core.start(make, o.timeout);
  return engine;
}

class HostGroup : public ProcessGroup {
 public:
  HostGroup(const std::string& backend, HostEngineFactory factory, Store& store, int rank, int size,
            const GroupOptions& o)
      : ProcessGroup(o.name, backend, rank, size, o.timeout),
        core_(std::make_shared<GroupCore>(backend, o.name, store, rank, size, o.timeout)),
        engine_(start_core(*core_, factory, o)),
        messages_(core_, engine_) {}
  ~HostGroup() override {
    try {
      HostGroup::shutdown();
    } catch (...) {  // the group is gone either way
    }
  }

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
  WorkPtr send(Tensor tensor, int destination, int tag, const CallOptions& o) override {
    checks(Collective::send).tensor(tensor, false);
    checks(Collective::send).rank(destination, "dst");
    return collected(messages_.send(Staged::of(tensor, true).host, destination, tag, timeout_of(o)));
  }
  WorkPtr recv(Tensor tensor, int source, int tag, const CallOptions& o) override {
    checks(Collective::recv).tensor(tensor, true);
    if (source != -1) checks(Collective::recv).rank(source, "src");
    Staged s = Staged::of(tensor, false);
    const bool for_ever = o.timeout.count() <= 0;
    return collected(messages_.receive(s.host, source, tag, timeout_of(o), for_ever, tensor, [s] { s.give_back(); }));
  }
  WorkPtr barrier(const CallOptions& o) override {
    return start({}, Collective::barrier, o, {}, [](Call& call) { call.exchange([](int) { return ""; }); });
  }
  void abort(const std::string& reason) override {
    core_->fail(text("group '", name(), "' was aborted by ", core_->mesh.who(rank()), ": ", reason), true);
  }
  void shutdown() override {
    messages_.stop();
    core_->stop();
  }
  bool busy() const override { return core_->busy(); }
  std::string report(uint64_t sequence) const override { return core_->report(sequence); }
  uint64_t sequence_number() const override { return core_->given(); }

 private:
  WorkPtr start(Fingerprint f, Collective what, const CallOptions& o, std::vector<Tensor> outputs,
                std::function<void(Call&)> run) {
    f.what = what;
    return collected(core_->submit(std::move(f), timeout_of(o), std::move(outputs), std::move(run)));
  }
  CollectiveChecks checks(Collective what) const { return {what, rank(), size(), check_device}; }
  WorkPtr gather_to_all(Collective what, Tensor output, std::vector<Staged> outputs, const Staged& in,
                        const Tensor& input, const CallOptions& o);
  WorkPtr reduce_parts(Collective what, const Staged& out, Tensor flat, ReduceOp op, const Tensor& output,
                       const CallOptions& o);
  WorkPtr exchange_parts(Fingerprint f, Collective what, std::vector<Part> to_send, std::vector<Part> to_receive,
                         std::vector<Tensor> outputs, std::function<void()> afterwards, const CallOptions& o);

  std::shared_ptr<GroupCore> core_;
  HostEngine* const engine_;  // the core's
  Messages messages_;
};

WorkPtr HostGroup::all_reduce(std::vector<Tensor> tensors, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_reduce;
  checks(kWhat).together(tensors, true);
  Fingerprint f = Fingerprint::of(tensors, op);
  std::vector<Staged> parts = staged(tensors, true);
  const Reduction r = reduction(op, tensors[0].dtype());
  return start(std::move(f), kWhat, o, std::move(tensors),
               [op, r, n = size(), me = rank(), engine = engine_, parts = std::move(parts)](Call& call) mutable {
                 Packed packed(std::move(parts));
                 const Tensor& whole = packed.whole;
                 const size_t count = size_t(whole.numel());
                 if (op.kind == ReduceOp::premul_sum) multiply(whole.data_ptr(), count, whole.dtype(), op.factor);
                 if (n > 1 && small(size_t(bytes_of(whole)), n)) {
                   combine_in_order(whole, call.exchange([&](int) { return view_of(whole); }), me, r);
                 } else if (n > 1) {
                   call.bulk([&] { engine->all_reduce(whole.data_ptr(), count, r, call.tag()); });
                 }
                 if (op.kind == ReduceOp::avg) divide(whole.data_ptr(), count, whole.dtype(), n);
                 packed.give_back();
               });
}

WorkPtr HostGroup::broadcast(std::vector<Tensor> tensors, int root, const CallOptions& o) {
  constexpr Collective kWhat = Collective::broadcast;
  checks(kWhat).rank(root, "src");
  checks(kWhat).together(tensors, rank() != root);
  Fingerprint f = Fingerprint::of(tensors, root);
  std::vector<Staged> parts = staged(tensors, rank() == root);
  return start(std::move(f), kWhat, o, std::move(tensors),
               [root, n = size(), me = rank(), engine = engine_, parts = std::move(parts)](Call& call) mutable {
                 if (n == 1) return;
                 Packed packed(std::move(parts));
                 const Tensor& whole = packed.whole;
                 const size_t bytes = size_t(bytes_of(whole));
                 if (small(bytes, n)) {
                   auto got = call.exchange([&](int) { return me == root ? view_of(whole) : std::string_view(); });
                   if (me != root) std::memcpy(whole.data_ptr(), got[size_t(root)].data(), bytes);
                 } else {
                   call.bulk([&] { engine->broadcast(whole.data_ptr(), bytes, root, call.tag()); });
                 }
                 if (me != root) packed.give_back();
               });
}

WorkPtr HostGroup::reduce(Tensor tensor, int root, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::reduce;
  checks(kWhat).rank(root, "dst");
  checks(kWhat).tensor(tensor, rank() == root);
  Fingerprint f = Fingerprint::of({tensor}, op, root);
  const Reduction r = reduction(op, tensor.dtype());
  Staged in = Staged::of(tensor, true);
  return start(std::move(f), kWhat, o, {tensor}, [=, n = size(), me = rank(), engine = engine_](Call& call) {
    Tensor t = in.host;
    if (me != root && t.is_same(in.user)) t = clone(t);  // the engine and the factor write into it
    const size_t count = size_t(t.numel());
    if (op.kind == ReduceOp::premul_sum) multiply(t.data_ptr(), count, t.dtype(), op.factor);
    if (n > 1 && small(size_t(bytes_of(t)), n)) {
      auto got = call.exchange([&](int to) { return to == root ? view_of(t) : std::string_view(); });
      if (me == root) combine_in_order(t, got, me, r);
    } else if (n > 1) {
      call.bulk([&] { engine->reduce(t.data_ptr(), count, r, root, call.tag()); });
    }
    if (me != root) return;
    if (op.kind == ReduceOp::avg) divide(t.data_ptr(), count, t.dtype(), n);
    in.give_back();
  });
}

/// Gathers into `output` (one block), and from there into the list if one is given.
WorkPtr HostGroup::gather_to_all(Collective what, Tensor output, std::vector<Staged> outputs, const Staged& in,
                                 const Tensor& input, const CallOptions& o) {
  Fingerprint f = Fingerprint::of({input});
  std::vector<Tensor> results{output};
  if (!outputs.empty()) {
    results.clear();
    for (const Staged& s : outputs) results.push_back(s.user);
    output = {};
  }
  Staged out;
  if (output.defined()) out = Staged::of(output, false);
  return start(std::move(f), what, o, std::move(results), [=, n = size(), me = rank(), engine = engine_](Call& call) {
    const Tensor& t = in.host;
    const size_t bytes = size_t(bytes_of(t));
    const bool eager = small(bytes, n);
    Tensor block = out.host;
    if (!block.defined() && !eager) block = scratch(t.numel() * n, t.dtype());
    auto place = [&](size_t r) {
      return block.defined() && outputs.empty() ? static_cast<char*>(block.data_ptr()) + r * bytes
                                                : static_cast<char*>(outputs[r].host.data_ptr());
    };
    if (eager || n == 1) {
      auto got = call.exchange([&](int) { return view_of(t); });
      for (size_t r = 0; r < size_t(n); ++r) {
        std::memmove(place(r), int(r) == me ? t.data_ptr() : got[r].data(), bytes);
      }
    } else {
      call.bulk([&] { engine->all_gather(t.data_ptr(), block.data_ptr(), bytes, call.tag()); });
      for (size_t r = 0; r < outputs.size(); ++r) {
        std::memcpy(place(r), static_cast<char*>(block.data_ptr()) + r * bytes, bytes);
      }
    }
    for (const Staged& s : outputs) s.give_back();
    if (outputs.empty()) out.give_back();
  });
}

WorkPtr HostGroup::all_gather(std::vector<Tensor> outputs, Tensor input, const CallOptions& o) {
  checks(Collective::all_gather).tensor(input, false);
  checks(Collective::all_gather).list(outputs, input, true);
  return gather_to_all(Collective::all_gather, {}, staged(outputs, false), Staged::of(input, true), input, o);
}

WorkPtr HostGroup::all_gather_into(Tensor output, Tensor input, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_gather_into;
  checks(kWhat).gathered(output, input);
  return gather_to_all(kWhat, output, {}, Staged::of(input, true), input, o);
}

WorkPtr HostGroup::gather(std::vector<Tensor> outputs, Tensor input, int root, const CallOptions& o) {
  constexpr Collective kWhat = Collective::gather;
  checks(kWhat).rank(root, "dst");
  checks(kWhat).tensor(input, false);
  checks(kWhat).list_of_root(outputs, input, true, root, "destination", "gather_list");
  Fingerprint f = Fingerprint::of({input}, root);
  std::vector<Staged> outs = staged(outputs, false);
  Staged in = Staged::of(input, true);
  return start(std::move(f), kWhat, o, std::move(outputs), [=, n = size(), me = rank(), engine = engine_](Call& call) {
    const Tensor& t = in.host;
    const size_t bytes = size_t(bytes_of(t));
    auto fill = [&](size_t r, const void* from) {
      std::memcpy(outs[r].host.data_ptr(), from, bytes);
      outs[r].give_back();
    };
    if (small(bytes, n) || n == 1) {
      auto got = call.exchange([&](int to) { return to == root ? view_of(t) : std::string_view(); });
      for (size_t r = 0; r < outs.size(); ++r) fill(r, int(r) == me ? t.data_ptr() : got[r].data());
      return;
    }
    Tensor block = scratch(me == root ? t.numel() * n : 0, t.dtype());
    call.bulk([&] { engine->gather(t.data_ptr(), block.data_ptr(), bytes, root, call.tag()); });
    for (size_t r = 0; r < outs.size(); ++r) fill(r, static_cast<char*>(block.data_ptr()) + r * bytes);
  });
}

WorkPtr HostGroup::scatter(Tensor output, std::vector<Tensor> inputs, int root, const CallOptions& o) {
  constexpr Collective kWhat = Collective::scatter;
  checks(kWhat).rank(root, "src");
  checks(kWhat).tensor(output, true);
  checks(kWhat).list_of_root(inputs, output, false, root, "source", "scatter_list");
  Fingerprint f = Fingerprint::of({output}, root);
  std::vector<Staged> ins = staged(inputs, true);
  Staged out = Staged::of(output, false);
  return start(std::move(f), kWhat, o, {output}, [=, n = size(), me = rank(), engine = engine_](Call& call) {
    const size_t bytes = size_t(bytes_of(out.host));
    if (small(bytes, n) || n == 1) {
      auto got = call.exchange([&](int to) { return me == root ? view_of(ins[size_t(to)].host) : ""; });
      const void* mine = me == root ? ins[size_t(me)].host.data_ptr() : got[size_t(root)].data();
      std::memmove(out.host.data_ptr(), mine, bytes);
    } else {
      Tensor block = scratch(me == root ? out.host.numel() * n : 0, out.host.dtype());
      for (size_t r = 0; r < ins.size(); ++r) {
        std::memcpy(static_cast<char*>(block.data_ptr()) + r * bytes, ins[r].host.data_ptr(), bytes);
      }
      call.bulk([&] { engine->scatter(block.data_ptr(), out.host.data_ptr(), bytes, root, call.tag()); });
    }
    out.give_back();
  });
}

/// Sends part i of `flat` to rank i and combines what arrives, in rank order: each byte is sent once.
WorkPtr HostGroup::reduce_parts(Collective what, const Staged& out, Tensor flat, ReduceOp op, const Tensor& output,
                                const CallOptions& o) {
  Fingerprint f = Fingerprint::of({output}, op);
  const Reduction r = reduction(op, output.dtype());
  return start(std::move(f), what, o, {output}, [=, n = size(), me = rank(), engine = engine_](Call& call) {
    const size_t bytes = size_t(bytes_of(out.host)), count = size_t(out.host.numel());
    Tensor mine = flat;
    if (op.kind == ReduceOp::premul_sum) {
      mine = clone(flat);
      multiply(mine.data_ptr(), size_t(mine.numel()), mine.dtype(), op.factor);
    }
    char* base = static_cast<char*>(mine.data_ptr());
    Tensor block;
    std::vector<std::string> got(static_cast<size_t>(n));
    if (small(bytes, n) || n == 1) {
      got = call.exchange([&](int to) { return std::string_view(base + size_t(to) * bytes, bytes); });
    } else {
      block = scratch(int64_t(count) * n, output.dtype());
      std::vector<Part> to_send, to_receive;
      for (size_t i = 0; i < size_t(n); ++i) {
        to_send.push_back({base + i * bytes, bytes});
        to_receive.push_back({static_cast<char*>(block.data_ptr()) + i * bytes, bytes});
      }
      const std::vector<uint64_t> slots(static_cast<size_t>(n), call.tag());
      call.bulk([&] { engine->exchange(to_send, to_receive, slots); });
    }
    auto from = [&](size_t i) -> const void* {
      if (int(i) == me) return base + i * bytes;
      return block.defined() ? static_cast<char*>(block.data_ptr()) + i * bytes : got[i].data();
    };
    std::memcpy(out.host.data_ptr(), from(0), bytes);
    for (size_t i = 1; i < size_t(n); ++i) r.combine(out.host.data_ptr(), out.host.data_ptr(), from(i), count);
    if (op.kind == ReduceOp::avg) divide(out.host.data_ptr(), count, output.dtype(), n);
    out.give_back();
  });
}

WorkPtr HostGroup::reduce_scatter(Tensor output, std::vector<Tensor> inputs, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::reduce_scatter;
  checks(kWhat).tensor(output, true);
  checks(kWhat).list(inputs, output, false);
  Tensor flat = scratch(output.numel() * size(), output.dtype());
  char* at = static_cast<char*>(flat.data_ptr());
  for (const Tensor& t : inputs) {
    const Tensor host = Staged::of(t, true).host;
    std::memcpy(at, host.data_ptr(), size_t(bytes_of(host)));
    at += bytes_of(host);
  }
  return reduce_parts(kWhat, Staged::of(output, false), flat, op, output, o);
}

WorkPtr HostGroup::reduce_scatter_tensor(Tensor output, Tensor input, ReduceOp op, const CallOptions& o) {
  constexpr Collective kWhat = Collective::reduce_scatter_tensor;
  checks(kWhat).scattered(output, input);
  Staged out = Staged::of(output, false);
  Tensor flat = Staged::of(input, true).host;
  if (flat.impl()->storage().get() == out.host.impl()->storage().get()) flat = clone(flat);  // a part of itself
  return reduce_parts(kWhat, out, flat, op, output, o);
}

/// Exchanges parts whose sizes only each pair knows: the sizes are sent with the fingerprint and compared.
WorkPtr HostGroup::exchange_parts(Fingerprint f, Collective what, std::vector<Part> to_send,
                                  std::vector<Part> to_receive, std::vector<Tensor> outputs,
                                  std::function<void()> afterwards, const CallOptions& o) {
  checks(what).to_itself(to_send[size_t(rank())].bytes, to_receive[size_t(rank())].bytes);
  return start(std::move(f), what, o, std::move(outputs), [=, n = size(), me = rank(), engine = engine_](Call& call) {
    const size_t self = size_t(me);
    std::vector<std::string> out(static_cast<size_t>(n));
    for (size_t r = 0; r < size_t(n); ++r) {
      const Part& p = to_send[r];
      out[r] = Call::sizes(p.bytes, to_receive[r].bytes);
      if (p.bytes && p.bytes <= kEagerBytes) out[r].append(static_cast<char*>(p.data), p.bytes);
    }
    auto got = call.exchange([&](int r) { return std::string_view(out[size_t(r)]); });
    std::vector<Part> large_out(to_send.size()), large_in(to_receive.size());
    std::vector<uint64_t> slots(static_cast<size_t>(n), call.tag());
    bool any = false;
    for (size_t r = 0; r < size_t(n); ++r) {
      if (r == self) continue;
      const size_t sent = to_send[r].bytes, expected = to_receive[r].bytes;
      std::string_view came = got[r];
      call.compare_sizes(int(r), sent, expected, came);
      if (expected && expected <= kEagerBytes) std::memcpy(to_receive[r].data, came.data(), expected);
      if (expected > kEagerBytes) large_in[r] = to_receive[r], any = true;
      if (sent > kEagerBytes) large_out[r] = to_send[r], any = true;
    }
    if (to_send[self].bytes) std::memmove(to_receive[self].data, to_send[self].data, to_send[self].bytes);
    if (any) call.run_engine([&] { engine->exchange(large_out, large_in, slots); });
    if (afterwards) afterwards();
  });
}

WorkPtr HostGroup::all_to_all(std::vector<Tensor> outputs, std::vector<Tensor> inputs, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_to_all;
  checks(kWhat).lists(outputs, inputs);
  std::vector<Staged> ins = staged(inputs, true), outs = staged(outputs, false);
  std::vector<Part> to_send, to_receive;
  for (const Staged& s : ins) to_send.push_back({s.host.data_ptr(), size_t(bytes_of(s.host))});
  for (const Staged& s : outs) to_receive.push_back({s.host.data_ptr(), size_t(bytes_of(s.host))});
  Fingerprint f;
  const int64_t none[] = {0};
  f.add(IntSpan(none, 0), inputs[0].dtype());  // each pair has its own sizes
  auto afterwards = [ins, outs] {  // the inputs are kept until then
    for (const Staged& s : outs) s.give_back();
  };
  return exchange_parts(std::move(f), kWhat, to_send, to_receive, outputs, afterwards, o);
}

/// Returns the addresses of each rank's rows.
std::vector<Part> parts_at(const Tensor& t, const std::vector<size_t>& bytes) {
  std::vector<Part> parts;
  char* at = static_cast<char*>(t.data_ptr());
  for (size_t n : bytes) {
    parts.push_back({at, n});
    at += n;
  }
  return parts;
}

WorkPtr HostGroup::all_to_all_single(Tensor output, Tensor input, std::vector<int64_t> output_splits,
                                     std::vector<int64_t> input_splits, const CallOptions& o) {
  constexpr Collective kWhat = Collective::all_to_all_single;
  checks(kWhat).tensor(input, false);
  checks(kWhat).tensor(output, true);
  checks(kWhat).same_type(output, input);
  Staged in = Staged::of(input, true), out = Staged::of(output, false);
  auto to_send = parts_at(in.host, checks(kWhat).row_bytes(input, std::move(input_splits), "input"));
  auto to_receive = parts_at(out.host, checks(kWhat).row_bytes(output, std::move(output_splits), "output"));
  Fingerprint f;
  f.add(input.sizes().subspan(1), input.dtype());  // rows are alike; each pair has its own number of them
  return exchange_parts(std::move(f), kWhat, to_send, to_receive, {output}, [in, out] { out.give_back(); }, o);
}

}  // namespace

ProcessGroupPtr new_host_group(const std::string& backend, HostEngineFactory engine, StorePtr store, int rank, int size,
                               const GroupOptions& options) {
  PrefixStore keys(options.name, std::move(store));
  auto group = std::make_shared<HostGroup>(backend, engine, keys, rank, size, options);
  if (!options.ranks.empty()) group->set_ranks(options.ranks);
  return group;
}

}  // namespace vesta
