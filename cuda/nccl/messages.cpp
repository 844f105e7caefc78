#include <vesta/cuda/nccl/messages.h>

#include <list>
#include <map>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/select.h>
#include <vesta/cuda/nccl/message_order.h>

namespace vesta::cuda::nccl {
namespace {

constexpr auto kIdle = Milliseconds(200);  // how often an idle thread checks for lost ranks
constexpr auto kBusy = Milliseconds(1);    // how often one checks for the end of what is under way

struct Head {
  uint64_t number, called;  // the message's, and how many collectives the sender had called
  int tag;
  Fingerprint print;
};

std::exception_ptr error_of(const std::string& message) {
  return std::make_exception_ptr(DistributedError(DistributedCause::backend, message));
}

/// A send, or a receive.
struct Message {
  bool sends;
  int peer, tag;       // a receive from any rank has -1 until it is matched
  Tensor user, memory; // the user's tensor, and the memory that NCCL works on
  Event start;
  cuda::Stream called_on;
  Fingerprint print;
  Clock::time_point deadline;
  std::shared_ptr<NcclWork> work;
  uint64_t called = 0;    // how many collectives this rank had called
  uint64_t number = 0;    // the sender's; a receive has it once it is matched
  uint64_t position = 0;  // once it is matched (message_order.h)
  bool matched = false;
  bool calling = false;  // NCCL's call was made, and is still in progress
};

/// One direction between this rank and another: its communicator, and the messages that have no turn yet, in order.
struct Direction {
  std::shared_ptr<Communicator> comm;
  bool has_id = false, connected = false;
  std::list<Message> waiting;
};

}  // namespace

struct Messages::State : std::enable_shared_from_this<State> {
  State(std::shared_ptr<GroupCore> c, std::shared_ptr<GroupState> g, StorePtr s)
      : core(std::move(c)),
        group(std::move(g)),
        store(std::move(s)),
        order(core->mesh),
        sent(size_t(core->mesh.size())),
        heads(size_t(core->mesh.size())) {}

  void run();
  void start_thread();
  bool step();
  void take_in(int from, const MeshMessage& m);
  void match();
  void find_turns();
  bool clear(uint64_t collective);
  void advance();
  bool connect(int peer, bool sends, Direction& d, int device);
  void queue(Direction& d, Message& m);
  void look_at_ends();
  std::string why_not(const Message& m, bool matched);
  void end_all(const std::string& why);
  void drop(std::list<Message>& from, std::list<Message>::iterator& at, std::exception_ptr error);
  std::string where(const Message& m) const { return text(m.print.describe(), " in group '", core->name, "'"); }
  Message message(Collective what, const Tensor& t, int peer, int tag, Milliseconds timeout);

  std::shared_ptr<GroupCore> core;
  std::shared_ptr<GroupState> group;
  StorePtr store;
  std::mutex mutex;  // guards everything below
  MessageOrder order;
  std::vector<uint64_t> sent;
  std::vector<std::deque<Head>> heads;
  std::list<Message> receives;                        // that no head has matched
  std::map<std::pair<int, bool>, Direction> directions;  // by peer, and whether this rank sends
  std::list<Message> next;                            // have their turn; queued one after the other
  std::list<Message> flying;                          // queued on the device
  std::vector<std::pair<std::shared_ptr<NcclWork>, std::exception_ptr>> ended;  // finished outside the lock
  std::atomic<bool> attention{false};
  bool stopping = false;
  std::thread thread;
};

Messages::Messages(std::shared_ptr<GroupCore> core, std::shared_ptr<GroupState> group, StorePtr store)
    : state_(std::make_shared<State>(std::move(core), std::move(group), std::move(store))) {
  if (state_->core->mesh.size() > 1) state_->start_thread();  // others may ask before this rank has messages
}
Messages::~Messages() { stop(); }

void Messages::State::start_thread() {
  attention = true;
  if (!thread.joinable()) thread = std::thread([self = shared_from_this()] { self->run(); });
}

Message Messages::State::message(Collective what, const Tensor& t, int peer, int tag, Milliseconds timeout) {
  VESTA_CHECK(peer != core->mesh.rank(), value, name(what), ": expected another rank, got this one, ", peer,
              what == Collective::send ? " (dst)." : " (src).");
  Message m;
  m.sends = what == Collective::send;
  m.peer = peer;
  m.tag = tag;
  m.user = t.detach();
  m.called_on = current_stream(index_of(t.device()));
  m.print.what = what;
  m.print.root = m.sends ? -1 : peer;
  m.print.add(t.sizes(), t.dtype());
  m.print.site = CallSite::current();
  m.deadline = deadline_in(timeout);
  m.work = std::make_shared<NcclWork>(name(what), timeout, group);
  core->check_failed(where(m));
  return m;
}

WorkPtr Messages::send(const Tensor& t, int to, int tag, Milliseconds timeout) {
  State& s = *state_;
  Message m = s.message(Collective::send, t, to, tag, timeout);
  m.memory = contiguous_values(m.user);
  m.start.record(m.called_on);
  m.work->keep({t, m.memory});
  WorkPtr work = m.work;
  std::string gone = s.core->mesh.with(to, [&](Peer&) { return s.core->mesh.gone(to, UINT64_MAX); });
  if (const std::string told = s.core->mesh.aborted(); !told.empty()) {
    s.core->fail(told, false);
    s.core->check_failed(s.where(m));
  }
  if (!gone.empty()) distributed_fail(DistributedCause::backend, s.where(m), ": ", gone, ".");
  {
    std::lock_guard lock(s.mutex);
    VESTA_CHECK(!s.stopping, runtime, "send: group '", s.core->name, "' was destroyed.");
    m.called = s.order.called();
    m.number = ++s.sent[size_t(to)];
    wire::Writer head;
    put(head, MessageKind::head).put(m.called).put(int32_t(tag)).put(std::string_view(m.print.encode()));
    s.core->mesh.send(to, Topic::message, m.number, head.take());
    s.directions[{to, true}].waiting.push_back(std::move(m));
    s.start_thread();
  }
  s.core->mesh.wake();
  return work;
}

WorkPtr Messages::receive(const Tensor& t, int from, int tag, Milliseconds timeout) {
  State& s = *state_;
  Message m = s.message(Collective::recv, t, from, tag, timeout);
  if (m.user.is_contiguous()) m.memory = m.user;
  m.start.record(m.called_on);
  m.work->keep({t});
  m.work->set_outputs({t});
  WorkPtr work = m.work;
  {
    std::lock_guard lock(s.mutex);
    VESTA_CHECK(!s.stopping, runtime, "recv: group '", s.core->name, "' was destroyed.");
    m.called = s.order.called();
    s.receives.push_back(std::move(m));
    s.start_thread();
  }
  s.core->mesh.wake();
  return work;
}

uint64_t Messages::call_collectives(uint64_t count) {
  std::lock_guard lock(state_->mutex);
  return state_->order.call(count);
}

bool Messages::clear(uint64_t collective) {
  std::lock_guard lock(state_->mutex);
  return state_->clear(collective);
}

void Messages::collectives_queued(uint64_t last) {
  std::lock_guard lock(state_->mutex);
  state_->order.queued(last);
  if (state_->next.empty()) return;
  state_->attention = true;
  state_->core->mesh.wake();
}

void Messages::stop() {
  std::thread ending;
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->attention = true;
    ending.swap(state_->thread);
  }
  if (!ending.joinable()) return;
  if (state_->core->forked()) return ending.detach();
  state_->core->mesh.wake();
  ending.join();
}

void Messages::State::take_in(int from, const MeshMessage& m) {
  wire::Reader r(m.body);
  const MessageKind kind = MessageKind(r.get<uint8_t>());
  if (kind == MessageKind::head) {
    const auto called = r.get<uint64_t>();
    const int tag = r.get<int32_t>();
    std::string_view ignored;
    heads[size_t(from)].push_back({m.number, called, tag, Fingerprint::decode(r.text(), ignored)});
  } else if (kind == MessageKind::matched) {
    for (Message& sent_one : directions[{from, true}].waiting) {  // none if its turn has come before this
      if (sent_one.number == m.number) sent_one.matched = true, sent_one.position = r.get<uint64_t>();
    }
  } else {
    order.take_in(from, kind, m.number, r);
  }
}

/// Gives each head, in order, the first receive that it fits. A head that fits none holds up those after it: NCCL
/// would give their values to the wrong receive.
void Messages::State::match() {
  for (int r = 0; r < core->mesh.size(); ++r) {
    auto& queue = heads[size_t(r)];
    while (!queue.empty()) {
      const Head& head = queue.front();
      const auto at = std::find_if(receives.begin(), receives.end(), [&](const Message& m) {
        return (m.peer == -1 || m.peer == r) && m.tag == head.tag;
      });
      if (at == receives.end()) break;
      if (at->print.dtype != head.print.dtype || at->print.numel != head.print.numel) {
        core->fail(
            text("message from rank ", r, " to rank ", core->mesh.rank(), " (tag ", head.tag, ") of group '",
                 core->name, "': what is sent is not what is expected.\n  ", core->mesh.who(r), " calls ",
                 head.print.describe(), "\n  ", core->mesh.who(core->mesh.rank()), " calls ", at->print.describe()),
            true);
        return;
      }
      at->peer = r;
      at->work->set_source_rank(r);
      at->matched = true;
      at->number = head.number;
      at->position = std::max({at->called, head.called, order.floor(r)});
      order.announce({r, core->mesh.rank(), at->number, at->position});
      auto& waiting = directions[{r, false}].waiting;
      waiting.splice(waiting.end(), receives, at);
      queue.pop_front();
    }
  }
}

bool Messages::State::connect(int peer, bool sends, Direction& d, int device) {
  if (d.connected) return true;
  const int me = core->mesh.rank();
  const std::string key = text("nccl/", sends ? me : peer, "-", sends ? peer : me);
  if (!d.comm) d.comm = group->communicators.add(device, sends ? 0 : 1, 2);
  if (!d.has_id) {
    UniqueId id;
    if (sends) {
      check(functions().unique_id(&id), "ncclGetUniqueId");
      store->set(key, std::string(id.internal, sizeof id.internal));
    } else {
      if (!store->check({key})) return false;
      const std::string bytes = store->get(key);
      std::memcpy(id.internal, bytes.data(), std::min(bytes.size(), sizeof id.internal));
    }
    d.comm->connect(id);
    d.has_id = true;
  }
  d.connected = d.comm->settled();
  if (d.connected && !sends) store->delete_key(key);
  return d.connected;
}

void Messages::State::queue(Direction& d, Message& m) {
  VESTA_CHECK(d.comm->device() == m.called_on.device(), value, name(m.print.what),
              ": expected a tensor on cuda:", d.comm->device(),
              ", as in the first message between these ranks, got one on cuda:", m.called_on.device(), " (tensor).");
  StreamGuard guard(d.comm->stream());
  m.start.block(d.comm->stream());
  if (!m.memory.defined()) m.memory = empty_tensor(m.user.sizes(), m.user.dtype(), m.user.device());
  const size_t bytes = size_t(m.memory.numel() * m.memory.element_size());
  d.comm->queue([&](Comm c) {
    const Functions& f = functions();
    if (m.sends) check(f.send(m.memory.data_ptr(), bytes, uint8, 1, c, d.comm->handle()), "ncclSend", c);
    else check(f.recv(m.memory.data_ptr(), bytes, uint8, 0, c, d.comm->handle()), "ncclRecv", c);
  });
  m.calling = true;
}

/// Moves messages whose turn is known to `next`, in the order of their turns.
void Messages::State::find_turns() {
  const int me = core->mesh.rank();
  for (Turn t; order.next(t);) {
    auto& waiting = directions[{t.source == me ? t.target : t.source, t.source == me}].waiting;
    const auto at =
        std::find_if(waiting.begin(), waiting.end(), [&](const Message& m) { return m.number == t.number; });
    if (at == waiting.end()) continue;  // it had its turn from a sequencer that has left
    at->matched = true;
    at->position = t.position;
    next.splice(next.end(), waiting, at);
  }
  if (!order.sequencer_changed()) return;
  for (auto& [key, d] : directions) {
    if (key.second) continue;
    for (const Message& m : d.waiting) order.announce({key.first, me, m.number, m.position});
  }
}

/// Returns whether a collective may be queued: all messages before it are, and no more can come before it.
bool Messages::State::clear(uint64_t collective) {
  bool clear = true;
  auto open = [&](const Message& m) {  // asks all others, also after the first that has not answered
    if (m.matched) return m.position < collective;
    bool asking = false;
    for (int r = 0; r < core->mesh.size() && m.called < collective; ++r) {
      if (m.peer == -1 || m.peer == r) asking = !order.settled(r, collective) || asking;
    }
    return asking;
  };
  for (const std::list<Message>* list : {&receives, &next}) {
    for (const Message& m : *list) clear = !open(m) && clear;
  }
  for (auto& [key, d] : directions) {
    for (const Message& m : d.waiting) clear = !open(m) && clear;
  }
  return clear;
}

/// Queues messages whose turn it is, each after the one before is queued.
void Messages::State::advance() {
  for (auto& [key, d] : directions) {  // connecting waits for no turn
    if (!d.waiting.empty()) connect(key.first, key.second, d, d.waiting.front().called_on.device());
  }
  for (;;) {
    const auto at = std::find_if(next.begin(), next.end(), [&](const Message& m) { return order.reached(m.position); });
    if (at == next.end()) return;
    Message& m = *at;
    Direction& d = directions[{m.peer, m.sends}];
    if (!connect(m.peer, m.sends, d, m.called_on.device())) return;
    if (!m.calling) queue(d, m);
    if (!d.comm->settled()) return;
    if (!m.user.is_same(m.memory) && !m.sends) {
      StreamGuard guard(d.comm->stream());
      copy_(m.user, m.memory);
    }
    m.user = m.memory = Tensor();  // the Work holds the user's, until `wait`, which may return now
    Event end;
    end.record(d.comm->stream());
    m.work->queued(std::move(end), m.called_on, d.comm);
    flying.splice(flying.end(), next, at);
  }
}

/// Returns why a message cannot succeed any more; empty while it can.
std::string Messages::State::why_not(const Message& m, bool matched) {
  Mesh& mesh = core->mesh;
  if (const std::string gone = mesh.unreachable(m.peer, matched); !gone.empty()) {
    // A rank that failed the group counts as gone too: the next step has the reason.
    return mesh.aborted().empty() ? where(m) + ": " + gone + "." : std::string();
  }
  if (Clock::now() < m.deadline) return {};
  std::string behind;
  for (size_t r = 0; r < heads.size() && !m.sends && !matched; ++r) {
    if ((m.peer != -1 && m.peer != int(r)) || heads[r].empty() || heads[r].front().tag == m.tag) continue;
    behind =
        text(" A message with tag ", heads[r].front().tag, " of ", mesh.who(int(r)), " was sent first; receive it.");
  }
  return text(where(m), " timed out after ", m.work->timeout().count(),
              " ms: ", m.peer < 0 ? "no rank" : mesh.who(m.peer), " has made the call that belongs to it.", behind);
}

void Messages::State::drop(std::list<Message>& from, std::list<Message>::iterator& at, std::exception_ptr error) {
  ended.emplace_back(at->work, std::move(error));
  at = from.erase(at);
}

void Messages::State::look_at_ends() {
  for (auto at = receives.begin(); at != receives.end();) {
    std::string why = why_not(*at, false);
    if (why.empty() && stopping) why = where(*at) + ": the group was destroyed before the message arrived.";
    if (why.empty()) ++at;
    else drop(receives, at, error_of(why));  // nothing was queued: the group stays alive
  }
  auto broken = [&](const Message& m, bool matched) {
    const std::string why = why_not(m, matched);
    if (!why.empty()) core->fail(why, true);  // NCCL holds its end
    return !why.empty();
  };
  for (auto& [key, d] : directions) {
    for (const Message& m : d.waiting) {
      if (broken(m, m.matched)) return;
    }
  }
  for (const Message& m : next) {
    if (broken(m, true)) return;
  }
  for (auto at = flying.begin(); at != flying.end();) {
    if (at->work->ended_on_device()) {
      drop(flying, at, nullptr);
      continue;
    }
    if (broken(*at, true)) return;
    auto& d = directions[{at->peer, at->sends}];
    if (const std::string error = d.comm->async_error(); !error.empty()) {
      core->fail(where(*at) + ": " + error + ".", true);
      return;
    }
    ++at;
  }
}

void Messages::State::end_all(const std::string& why) {
  auto error_for = [&](const Message& m) {
    const std::string here = where(m);
    return error_of(why.starts_with(here) ? why : here + ": " + why);
  };
  for (std::list<Message>* list : {&receives, &next, &flying}) {
    for (auto at = list->begin(); at != list->end();) drop(*list, at, error_for(*at));
  }
  for (auto& [key, d] : directions) {
    for (auto at = d.waiting.begin(); at != d.waiting.end();) drop(d.waiting, at, error_for(*at));
  }
}

/// Advances everything; returns whether anything is under way. Called under the lock.
bool Messages::State::step() {
  try {
    // A rank that has failed the group counts as gone from then on: its reason comes first.
    if (const std::string told = core->mesh.aborted(); !told.empty()) core->fail(told, false);
    if (!core->failed()) match();
    order.go_on();
    find_turns();
    if (!core->failed()) advance();
    if (!core->failed()) look_at_ends();
    core->check_failed(text("the messages of group '", core->name, "'"));
  } catch (const std::exception& e) {
    end_all(core->failed() ? e.what() : core->fail(text("messages of group '", core->name, "': ", e.what()), true));
  }
  bool busy = !flying.empty() || !next.empty();
  for (auto& [key, d] : directions) busy = busy || !d.waiting.empty();
  return busy;
}

void Messages::State::run() {
  Mesh& mesh = core->mesh;
  for (bool busy = false;;) {
    mesh.wait(Clock::now() + (busy ? kBusy : kIdle), [&] {
      for (int r = 0; r < mesh.size(); ++r) {
        if (!mesh.peer(r).messages.empty()) return true;
      }
      return attention.exchange(false);
    });
    std::vector<std::pair<int, MeshMessage>> came;
    std::vector<int> gone;
    for (int r = 0; r < mesh.size(); ++r) {
      mesh.with(r, [&](Peer& p) {
        for (MeshMessage& m : p.messages) came.emplace_back(r, std::move(m));
        p.messages.clear();
        if (p.state != Peer::here) gone.push_back(r);  // it says no more
      });
    }
    bool done = false;
    decltype(ended) works;
    {
      std::lock_guard lock(mutex);
      for (auto& [from, m] : came) take_in(from, m);
      for (int r : gone) order.left(r);
      busy = step();
      done = stopping && !busy && receives.empty();
      works.swap(ended);
    }
    for (auto& [work, error] : works) {
      work->finish(error);
    }
    works.clear();
    if (done) return;
  }
}

}  // namespace vesta::cuda::nccl
