#include <vesta/multiprocessing/process_group_messages.h>

namespace vesta {
namespace {

constexpr auto kLook = std::chrono::milliseconds(200);  // how often deadlines and lost ranks are checked
constexpr size_t kEagerMessage = 32 << 10;  // a larger one waits for its receiver, in the sender's memory
constexpr uint64_t kSlot = uint64_t(0xA1) << 56;  // of the engine, separate from those of collectives

/// The head of a received message.
struct Head {
  uint64_t number;
  int tag;
  bool eager;
  Fingerprint print;
  std::string values;
};

struct Receive {
  Tensor host, user;
  int from, tag;
  Fingerprint print;
  Clock::time_point deadline;
  WorkPtr work;
  std::function<void()> arrived;
};

struct Sending {
  int to;
  uint64_t number;
  Tensor host;
  std::unique_ptr<HostEngine::Transfer> transfer;
  Fingerprint print;
  Clock::time_point deadline;
  WorkPtr work;
};

std::exception_ptr error_of(const std::string& message) {
  return std::make_exception_ptr(DistributedError(DistributedCause::backend, message));
}

}  // namespace

struct Messages::State : std::enable_shared_from_this<State> {
  State(std::shared_ptr<GroupCore> c, HostEngine* e)
      : core(std::move(c)), engine(e), sent(size_t(core->mesh.size())), heads(size_t(core->mesh.size())) {}

  void start();
  void run();
  void take_in(int from, MeshMessage m);
  void match();
  void deliver(Receive r, int from, Head head);
  void look_at_ends();
  void end(WorkPtr work, std::exception_ptr error) { ended.emplace_back(std::move(work), std::move(error)); }
  std::string where(const Fingerprint& f) const { return text(f.describe(), " in group '", core->name, "'"); }
  std::string late(const Fingerprint& f, int with);
  std::string why_over(const Fingerprint& f, int with, Clock::time_point deadline, Milliseconds timeout);

  std::shared_ptr<GroupCore> core;
  HostEngine* const engine;  // the core's
  std::mutex mutex;  // guards everything below
  std::vector<uint64_t> sent;
  std::vector<std::deque<Head>> heads;
  std::list<Receive> receives;
  std::list<Sending> sendings;
  std::vector<std::pair<WorkPtr, std::exception_ptr>> ended;  // finished outside the lock
  std::vector<std::pair<Receive, std::pair<int, Head>>> matched;
  std::atomic<bool> attention{false};
  bool stopping = false;
  std::thread thread;
};

Messages::Messages(std::shared_ptr<GroupCore> core, HostEngine* engine)
    : state_(std::make_shared<State>(std::move(core), engine)) {}
Messages::~Messages() { stop(); }

void Messages::State::start() {
  attention = true;
  if (!thread.joinable() && !stopping) thread = std::thread([self = shared_from_this()] { self->run(); });
}

WorkPtr Messages::send(Tensor host, int to, int tag, Milliseconds timeout) {
  State& s = *state_;
  Mesh& mesh = s.core->mesh;
  VESTA_CHECK(to != mesh.rank(), value, "send: expected another rank, got this one, ", to, " (dst).");
  Fingerprint f;
  f.what = Collective::send;
  f.add(host.sizes(), host.dtype());
  f.site = CallSite::current();
  auto work = std::make_shared<Work>("send", timeout);
  s.core->check_failed(s.where(f));
  const size_t bytes = size_t(host.numel() * host.element_size());
  const bool eager = bytes <= kEagerMessage;
  s.core->calls();
  std::string head = wire::Writer().put(int32_t(tag)).put(uint8_t(eager)).put(std::string_view(f.encode())).take();
  std::unique_lock lock(s.mutex);
  VESTA_CHECK(!s.stopping, runtime, "send: group '", s.core->name, "' was destroyed.");
  const uint64_t number = ++s.sent[size_t(to)];
  if (eager) {
    const std::string gone = mesh.with(to, [&](Peer&) { return mesh.gone(to, UINT64_MAX); });
    if (!gone.empty()) distributed_fail(DistributedCause::backend, s.where(f), ": ", gone, ".");
    mesh.send(to, Topic::message, number, head, {static_cast<const char*>(host.data_ptr()), bytes});
    lock.unlock();
    work->finish();
    return work;
  }
  work->set_outputs({host});
  mesh.send(to, Topic::message, number, head);
  auto transfer = s.engine->send(host.data_ptr(), bytes, to, kSlot | number);
  s.sendings.push_back({to, number, host, std::move(transfer), std::move(f), deadline_in(timeout), work});
  s.start();
  lock.unlock();
  mesh.wake();
  return work;
}

WorkPtr Messages::receive(Tensor host, int from, int tag, Milliseconds timeout, bool waits_for_ever, Tensor user,
                          std::function<void()> arrived) {
  State& s = *state_;
  VESTA_CHECK(from != s.core->mesh.rank(), value, "recv: expected another rank, got this one, ", from, " (src).");
  Fingerprint f;
  f.what = Collective::recv;
  f.root = from;
  f.add(host.sizes(), host.dtype());
  f.site = CallSite::current();
  auto work = std::make_shared<Work>("recv", timeout);
  work->set_outputs({user});
  s.core->check_failed(s.where(f));
  s.core->calls();
  if (waits_for_ever) {
    work->set_watcher([weak = std::weak_ptr(s.core), from, call = s.where(f)](double) {
      if (auto core = weak.lock()) core->waits_for_message(from, call);
    });
  }
  {
    std::lock_guard lock(s.mutex);
    VESTA_CHECK(!s.stopping, runtime, "recv: group '", s.core->name, "' was destroyed.");
    s.receives.push_back(
        {std::move(host), std::move(user), from, tag, std::move(f), deadline_in(timeout), work, std::move(arrived)});
    s.start();
  }
  s.core->mesh.wake();
  return work;
}

void Messages::stop() {
  if (state_->core->forked()) {  // no thread came along, and a lock may be held forever
    new std::shared_ptr<State>(state_);
    return;
  }
  std::thread ending;
  {
    std::lock_guard lock(state_->mutex);
    state_->stopping = true;
    state_->attention = true;
    ending.swap(state_->thread);
  }
  if (!ending.joinable()) return;
  state_->core->mesh.wake();
  if (ending.get_id() == std::this_thread::get_id()) ending.detach();
  else ending.join();
}

void Messages::State::take_in(int from, MeshMessage m) {
  if (m.topic == Topic::received) {
    for (auto at = sendings.begin(); at != sendings.end(); ++at) {
      if (at->to != from || at->number != m.number) continue;
      std::exception_ptr error;
      if (!m.body.empty()) error = error_of(m.body);
      else at->transfer->wait();
      end(at->work, error);
      sendings.erase(at);
      return;
    }
    return;
  }
  wire::Reader r(m.body);
  Head h;
  h.number = m.number;
  h.tag = r.get<int32_t>();
  h.eager = r.get<uint8_t>();
  std::string_view ignored;
  h.print = Fingerprint::decode(r.text(), ignored);
  h.values = r.rest();
  heads[size_t(from)].push_back(std::move(h));
}

void Messages::State::match() {
  for (auto at = receives.begin(); at != receives.end();) {
    int source = -1;
    std::deque<Head>::iterator found;
    for (int r = 0; r < core->mesh.size() && source < 0; ++r) {
      if (at->from != -1 && at->from != r) continue;
      auto& queue = heads[size_t(r)];
      auto h = std::find_if(queue.begin(), queue.end(), [&](const Head& head) { return head.tag == at->tag; });
      if (h != queue.end()) source = r, found = h;
    }
    if (source < 0) {
      ++at;
      continue;
    }
    matched.emplace_back(std::move(*at), std::make_pair(source, std::move(*found)));
    heads[size_t(source)].erase(found);
    at = receives.erase(at);
  }
}

void Messages::State::deliver(Receive r, int from, Head head) {
  Mesh& mesh = core->mesh;
  std::string wrong;
  const size_t bytes = size_t(r.host.numel() * r.host.element_size());
  if (r.print.shapes != head.print.shapes && (r.print.dtype != head.print.dtype || r.print.numel != head.print.numel)) {
    wrong = text("message from rank ", from, " to rank ", mesh.rank(), " (tag ", r.tag, ") of group '", core->name,
                 "': what is sent is not what is expected.\n  ", mesh.who(from), " calls ", head.print.describe(),
                 "\n  ", mesh.who(mesh.rank()), " calls ", r.print.describe());
    if (!head.eager) wrong = core->fail(wrong, true);  // the engine holds its end
  }
  std::exception_ptr error;
  try {
    if (!wrong.empty()) {
      error = error_of(wrong);
    } else if (head.eager) {
      std::memcpy(r.host.data_ptr(), head.values.data(), bytes);
    } else {
      engine->receive(r.host.data_ptr(), bytes, from, kSlot | head.number)->wait();
    }
    if (!error) r.arrived();
  } catch (const std::exception& e) {
    error = error_of(core->reason_for(where(r.print), e.what()));
  }
  if (!head.eager) mesh.send(from, Topic::received, head.number, wrong);
  r.work->set_source_rank(from);
  WorkPtr work = std::move(r.work);
  r = Receive();  // releases the tensor
  work->finish(error);
}

/// Returns what is known about a message that did not come in time, or was not received.
std::string Messages::State::late(const Fingerprint& f, int with) {
  const bool receives = f.what == Collective::recv;
  std::string r = with < 0 ? "no rank has sent such a message."
                           : text(core->mesh.who(with), " has not ", receives ? "sent" : "received", " it.");
  for (int from = 0; receives && from < core->mesh.size(); ++from) {
    if (with != -1 && with != from) continue;
    for (const Head& h : heads[size_t(from)]) {
      r += text(" A message of tag ", h.tag, " from rank ", from, " waits to be received.");
    }
  }
  return r;
}

/// Returns why a message cannot come any more: the group has failed, a rank is gone, or time is over. Empty if it can.
std::string Messages::State::why_over(const Fingerprint& f, int with, Clock::time_point deadline,
                                      Milliseconds timeout) {
  if (core->failed()) return core->reason_for(where(f), "");
  if (stopping) return where(f) + ": the group was destroyed before the message arrived.";
  if (const std::string who = core->mesh.unreachable(with); !who.empty()) return where(f) + ": " + who + ".";
  if (Clock::now() < deadline) return {};
  return text(where(f), " timed out after ", timeout.count(), " ms: ", late(f, with));
}

/// Ends messages that cannot come any more.
void Messages::State::look_at_ends() {
  const bool failed = core->failed() || stopping;
  for (auto at = receives.begin(); at != receives.end();) {
    const std::string why = why_over(at->print, at->from, at->deadline, at->work->timeout());
    if (why.empty()) {
      ++at;
      continue;
    }
    end(at->work, error_of(why));
    at = receives.erase(at);
  }
  for (auto at = sendings.begin(); at != sendings.end();) {
    const std::string why = why_over(at->print, at->to, at->deadline, at->work->timeout());
    if (why.empty()) {
      ++at;
      continue;
    }
    if (!failed) core->fail(why, true);  // the engine holds its end
    end(at->work, error_of(why));
    at = sendings.erase(at);
  }
}

void Messages::State::run() {
  Mesh& mesh = core->mesh;
  for (;;) {
    mesh.wait(Clock::now() + kLook, [&] {
      for (int r = 0; r < mesh.size(); ++r) {
        if (!mesh.peer(r).messages.empty()) return true;
      }
      return attention.exchange(false);
    });
    std::vector<std::pair<int, MeshMessage>> came;
    for (int r = 0; r < mesh.size(); ++r) {
      mesh.with(r, [&](Peer& p) {
        for (MeshMessage& m : p.messages) came.emplace_back(r, std::move(m));
        p.messages.clear();
      });
    }
    bool done = false;
    {
      std::lock_guard lock(mutex);
      for (auto& [from, m] : came) take_in(from, std::move(m));
      match();
      look_at_ends();
      done = stopping && receives.empty() && sendings.empty();
    }
    auto pairs = std::exchange(matched, {});
    for (auto& [receive, from] : pairs) deliver(std::move(receive), from.first, std::move(from.second));
    auto works = std::exchange(ended, {});
    for (auto& [work, error] : works) work->finish(error);
    if (done) return;
  }
}

}  // namespace vesta
