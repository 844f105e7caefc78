#include <vesta/multiprocessing/process_group_core.h>

#include <unistd.h>

#include <cstdlib>

#include <vesta/core/base/warning.h>
#include <vesta/core/dispatch/profiler.h>

namespace vesta {
namespace {

constexpr auto kAliveEvery = std::chrono::seconds(1);
constexpr double kLateSeconds = 5;              // a rank this late is reported to those who wait for it
constexpr auto kSilent = std::chrono::seconds(3);  // without a heartbeat for so long, a rank is stopped or cut off
constexpr auto kStartPatience = std::chrono::seconds(30);  // of a leaving rank, for ranks that still connect
constexpr auto kPatience = Milliseconds(1000);  // for the reason when the engine only says "connection closed"

}  // namespace

// ---- Call: one collective ----

void Call::wait_for(const std::vector<int>& ranks) {
  Mesh& mesh = core_.mesh;
  std::string gone;
  const bool in_time = mesh.wait(deadline_, [&] {
    if (core_.failed() || mesh.is_aborted()) return true;
    bool complete = true;
    for (int r : ranks) {
      if (!mesh.peer(r).collectives.empty()) continue;
      complete = false;
      if (gone.empty()) gone = mesh.gone(r, sequence_);
    }
    return complete || !gone.empty();
  });
  if (in_time && gone.empty() && !core_.failed() && !mesh.is_aborted()) return;
  const std::string title = core_.title(print_, sequence_);
  core_.check_failed(title);
  if (const std::string told = mesh.aborted(); !told.empty()) {
    core_.fail(told, false);
    core_.check_failed(title);
  }
  if (!gone.empty()) {
    const std::string at = print_.site.empty() ? "" : text(" Called at ", print_.site, ".");
    distributed_fail(DistributedCause::backend, core_.fail(text(title, ": ", gone, ".", at), true));
  }
  if (!in_time) {
    const auto timeout = core_.engine_timeout_;
    distributed_fail(DistributedCause::backend, core_.fail(core_.timed_out(title, sequence_, timeout), true));
  }
}

std::string Call::take(int rank) {
  MeshMessage m = core_.mesh.with(rank, [](Peer& p) {
    MeshMessage first = std::move(p.collectives.front());
    p.collectives.pop_front();
    return first;
  });
  VESTA_ASSERT(m.number == sequence_);
  return std::move(m.body);
}

std::vector<std::string> Call::exchange(const std::function<std::string_view(int)>& to) {
  Mesh& mesh = core_.mesh;
  std::vector<std::string> got(size_t(mesh.size()));
  if (mesh.size() == 1) return got;
  const std::string head = core_.unchecked ? std::string() : print_.encode();
  std::vector<int> others;
  for (int i = 1; i < mesh.size(); ++i) {  // so that not all send to rank 0 first
    const int r = (mesh.rank() + i) % mesh.size();
    others.push_back(r);
    mesh.send(r, Topic::collective, sequence_, head, to(r));
  }
  wait_for(others);
  for (int r : others) {
    std::string body = take(r);
    std::string_view rest = body;
    if (!core_.unchecked && !Fingerprint::same_bytes(head, body, rest)) {
      core_.compare(print_, sequence_, r, body, rest);
    }
    got[size_t(r)] = rest;
  }
  return got;
}

std::string Call::sizes(uint64_t sent, uint64_t expected) { return wire::Writer().put(sent).put(expected).take(); }

void Call::compare_sizes(int rank, uint64_t sent, uint64_t expected, std::string_view& theirs) {
  wire::Reader reader(theirs);
  const auto they_send = reader.get<uint64_t>(), they_expect = reader.get<uint64_t>();
  theirs = reader.rest();
  if (they_send == expected && they_expect == sent) return;
  const Mesh& mesh = core_.mesh;
  distributed_fail(DistributedCause::backend,
                   core_.fail(text(core_.title(print_, sequence_), ": sizes do not agree. ", mesh.who(mesh.rank()),
                                   " sends ", sent, " bytes and expects ", expected, ", ", mesh.who(rank), " sends ",
                                   they_send, " bytes and expects ", they_expect, ". Called at ", print_.site, "."),
                              true));
}

void Call::run_engine(const std::function<void()>& work) {
  {
    std::lock_guard lock(core_.mutex_);
    core_.in_engine_ = &print_;
    core_.engine_sequence_ = sequence_;
    core_.engine_deadline_ = deadline_;
  }
  struct Done {
    GroupCore& core;
    ~Done() {
      std::lock_guard lock(core.mutex_);
      core.in_engine_ = nullptr;
    }
  } done{core_};
  try {
    work();
  } catch (const std::exception& e) {
    core_.give_reason(core_.title(print_, sequence_), e.what(), print_.site);
  }
}

void Call::bulk(const std::function<void()>& work) {
  Mesh& mesh = core_.mesh;
  const int next = (mesh.rank() + 1) % mesh.size(), before = (mesh.rank() + mesh.size() - 1) % mesh.size();
  if (core_.unchecked) return run_engine(work);
  mesh.send(next, Topic::collective, sequence_, print_.encode());
  run_engine(work);
  wait_for({before});
  std::string body = take(before);
  std::string_view rest;
  core_.compare(print_, sequence_, before, body, rest);
}

// ---- GroupCore ----

GroupCore::GroupCore(std::string, std::string group, Store& store, int rank, int size, Milliseconds timeout)
    : mesh(store, rank, size, group, timeout),
      unchecked(std::getenv("VESTA_UNCHECKED_COLLECTIVES") != nullptr),
      name(std::move(group)),
      last_alive_(Clock::now()),
      pid_(getpid()) {}

GroupCore::~GroupCore() {
  if (thread_.joinable()) thread_.detach();  // after fork, or on the thread itself; otherwise stop() has joined it
}

void GroupCore::start(const std::function<std::unique_ptr<Engine>(const Meeting&)>& factory, Milliseconds timeout) {
  Meeting m;
  m.rank = mesh.rank();
  m.size = mesh.size();
  m.address = mesh.address();
  m.timeout = timeout;
  m.publish = [this](const std::string& bytes) { mesh.send_to_all(Topic::address, 0, bytes); };
  m.read = [this, timeout](int rank) {
    std::string gone;
    const bool in_time = mesh.wait(deadline_in(timeout), [&] {
      if (!mesh.peer(rank).addresses.empty()) return true;
      gone = mesh.gone(rank, 1);
      return !gone.empty();
    });
    const std::string told = mesh.aborted();
    if (!in_time || !gone.empty()) {
      distributed_fail(DistributedCause::network, "process group '", name, "': ",
                       !told.empty()  ? told
                       : gone.empty() ? mesh.who(rank) + " did not answer in time."
                                      : gone + ".");
    }
    return mesh.with(rank, [](Peer& p) {
      std::string body = std::move(p.addresses.front().body);
      p.addresses.pop_front();
      return body;
    });
  };
  if (mesh.size() > 1) engine_ = factory(m);
  mesh.send_to_all(Topic::ready, 0, {});
  watch(shared_from_this(), mesh);
  thread_ = std::thread([self = shared_from_this()] { self->loop(); });
}

WorkPtr GroupCore::submit(Fingerprint print, Milliseconds timeout, std::vector<Tensor> outputs,
                          std::function<void(Call&)> run) {
  auto work = std::make_shared<Work>(vesta::name(print.what), timeout);
  work->set_outputs(std::move(outputs));
  submit(std::move(print), work, std::move(run));
  return work;
}

void GroupCore::submit(Fingerprint print, const WorkPtr& work, std::function<void(Call&)> run) {
  print.site = CallSite::current();
  auto call = std::make_shared<const Fingerprint>(std::move(print));
  std::lock_guard lock(mutex_);
  VESTA_CHECK(!forked(), runtime, vesta::name(call->what), ": group '", name,
              "' belongs to the parent of this forked process. Make a group in the child.");
  VESTA_CHECK(!stopping_, runtime, vesta::name(call->what), ": group '", name, "' was destroyed.");
  const uint64_t sequence = ++given_;
  work->set_sequence_number(sequence);
  last_call_ = call;
  calls();
  work->set_watcher([weak = weak_from_this(), sequence, call, told = false](double s) mutable {
    auto core = weak.lock();
    if (core) core->waits_for(sequence, core->call_of(*call, sequence));
    if (told || s < kLateSeconds || !core) return;
    const std::string who = core->report(sequence);
    if (!who.empty()) warn(text(core->title(*call, sequence), " has waited for ", int64_t(s), " s. ", who));
    told = !who.empty();
  });
  queue_.push_back({std::move(call), sequence, work, std::move(run)});
  changed_.notify_all();
}

void GroupCore::loop() {
  for (;;) {
    Task t;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !queue_.empty() || stopping_; });
      if (queue_.empty()) return;
      t = std::move(queue_.front());
      queue_.pop_front();
    }
    std::exception_ptr error = run_task(t);
    t.run = nullptr;  // releases its tensors before anybody learns that it is done
    done_ = t.sequence;
    t.work->finish(error);
    t.work.reset();
    changed_.notify_all();
  }
}

/// Returns the name of a call in profiles, with what the caller says of it, such as the number of a bucket.
std::string profiled_name(const Fingerprint& print) {
  if (!profiler::running()) return {};
  const bool told = print.site.starts_with("DistributedDataParallel");
  return text("c10d::", vesta::name(print.what), told ? ", " : "",
              told ? print.site.substr(0, print.site.find(" (")) : "");
}

std::exception_ptr GroupCore::run_task(Task& t) {
  try {
    if (failed_) check_failed(title(*t.print, t.sequence));
    engine_timeout_ = t.work->timeout();
    Call call(*this, *t.print, t.sequence, deadline_in(t.work->timeout()));
    const profiler::Part part(profiler::Kind::part, profiled_name(*t.print));
    t.run(call);
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

void GroupCore::stop() {
  if (forked()) return;  // the child owns nothing here; the thread's own reference keeps the rest alive
  {
    std::unique_lock lock(mutex_);
    if (stopping_) return;
    try {  // every operation has its deadline, so the queue moves
      wait_until(changed_, lock, deadline_in(kForever), [&] { return done_ == given_ || failed_; });
      stopping_ = true;
    } catch (...) {  // Ctrl-C ends the wait, and with it the operations
      if (lock.owns_lock()) lock.unlock();
      fail(text("group '", name, "': ", mesh.who(mesh.rank()), " was interrupted while it left."), true);
      end_thread();
      throw;
    }
  }
  if (!failed_) {
    mesh.await_ready(kStartPatience);
    mesh.leave(given_, std::chrono::seconds(5));
  }
  end_thread();
}

void GroupCore::end_thread() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  unwatch(this);
  if (thread_.joinable() && thread_.get_id() != std::this_thread::get_id()) thread_.join();
  if (engine_) engine_->abort();
}

std::string GroupCore::call_of(const Fingerprint& f, uint64_t sequence) const {
  return text(title(f, sequence), f.site.empty() ? "" : ", called at ", f.site, ",");
}

std::string GroupCore::title(const Fingerprint& f, uint64_t sequence) const {
  return text(vesta::name(f.what), " #", sequence, " of group '", name, "'");
}

std::string GroupCore::fail(const std::string& reason, bool tell_others) {
  {
    std::lock_guard lock(mutex_);
    if (failed_) return failure_;
    failure_ = reason;
    failed_ = true;
  }
  if (tell_others) mesh.abort(reason);
  if (engine_) engine_->abort();
  mesh.wake();
  changed_.notify_all();
  return reason;
}

void GroupCore::check_failed(const std::string& what) {
  if (!failed_) return;
  std::string reason;
  {
    std::lock_guard lock(mutex_);
    reason = failure_;
  }
  if (reason.starts_with(what)) distributed_fail(DistributedCause::backend, reason);
  distributed_fail(DistributedCause::backend, what, " cannot run, the group has failed. ", reason);
}

void GroupCore::give_reason(const std::string& title, const std::string& fallback, const std::string& site) {
  // The engine says "connection closed"; the mesh knows which rank it was and why, now or in a moment.
  std::string gone;
  mesh.wait(deadline_in(kPatience), [&] {
    for (int r = 0; r < mesh.size() && gone.empty(); ++r) {
      if (r != mesh.rank()) gone = mesh.gone(r, engine_sequence_);
    }
    return failed() || !gone.empty();
  });
  check_failed(title);
  const std::string told = mesh.aborted();
  if (!told.empty()) {
    fail(told, false);
    check_failed(title);
  }
  const std::string at = site.empty() ? "" : text(" Called at ", site, ".");
  distributed_fail(DistributedCause::backend, fail(text(title, ": ", gone.empty() ? fallback : gone + ".", at), true));
}

std::string GroupCore::reason_for(const std::string& what, const std::string& fallback) {
  try {
    give_reason(what, fallback);
  } catch (const DistributedError& e) {
    return e.message();
  }
}

bool GroupCore::forked() const { return getpid() != pid_; }

std::string GroupCore::message(const Fingerprint& mine, uint64_t sequence, int rank, const Fingerprint& theirs) {
  return text("operation #", sequence, " of group '", name, "': the ranks do not call the same thing.\n  ",
              mesh.who(mesh.rank()), " calls ", mine.describe(), "\n  ", mesh.who(rank), " calls ", theirs.describe(),
              "\nAll ranks must make the same calls in the same order, with the same shapes and dtypes.");
}

void GroupCore::compare(const Fingerprint& mine, uint64_t sequence, int rank, std::string_view bytes,
                        std::string_view& rest) {
  const Fingerprint theirs = Fingerprint::decode(bytes, rest);
  if (mine.same(theirs)) return;
  distributed_fail(DistributedCause::backend, fail(message(mine, sequence, rank, theirs), true));
}

std::string GroupCore::report(uint64_t sequence) {
  std::string r;
  std::lock_guard lock(mesh.mutex());
  for (int i = 0; i < mesh.size(); ++i) {
    if (i == mesh.rank()) continue;
    Peer& p = mesh.peer(i);
    if (const std::string gone = mesh.gone(i, sequence); !gone.empty()) {
      r += text(r.empty() ? "" : " ", gone, ".");
      continue;
    }
    if (p.state == Peer::left) continue;  // after it had done its part
    const auto quiet = Clock::now() - p.heard;
    const bool late = p.calls<sequence, silent = quiet> kSilent;
    if (!late && !silent) continue;
    r += text(r.empty() ? "" : " ", mesh.who(i));
    if (late) {
      r += text(" has not come; its last call is ",
                p.calls ? text("#", p.calls, p.last_call.empty() ? "" : " ", p.last_call) : "none");
    }
    if (silent) {
      const int64_t tenths = std::chrono::duration_cast<Milliseconds>(quiet).count() / 100;
      r += text(late ? "," : "", " gives no sign of life since ", double(tenths) / 10, " s: stopped or cut off");
    }
    r += ".";
  }
  return r;
}

std::string GroupCore::timed_out(const std::string& call, uint64_t sequence, Milliseconds timeout) {
  const std::string who = report(sequence);
  return text(call, " timed out after ", timeout.count(), " ms. ",
              who.empty() ? "All ranks have come, but the values did not arrive in time." : who);
}

// ---- What the monitor does ----

void GroupCore::look() {
  mesh.read_now();
  if (failed_) return mesh.answer_goodbyes(UINT64_MAX);  // nobody waits for anything any more
  if (const std::string told = mesh.aborted(); !told.empty()) {
    fail(told, false);
    return;
  }
  mesh.answer_goodbyes(done_);
  const auto now = Clock::now();
  if (now - last_alive_ >= kAliveEvery) {
    last_alive_ = now;
    give_sign();
    look_at_stands();
  }
  look_at_running();
}

void GroupCore::give_sign() {
  std::string last;
  {
    std::lock_guard lock(mutex_);
    if (last_call_) last = last_call_->describe();
  }
  wire::Writer w;
  w.put(std::string_view(last));
  if (self_) w.raw(self_->stand().encode());
  mesh.send_to_all(Topic::alive, given_, w.take());
}

// ---- Standstill: Note [Told apart from slow ranks] ----

void GroupCore::join_world(std::vector<int> ranks) {
  world_ = std::move(ranks);
  self_ = SelfStand::of(world_rank(mesh.rank()));
  self_->join(name, weak_from_this());
}

std::string GroupCore::world_rank(int rank) const {
  const Peer& p = const_cast<Mesh&>(mesh).peer(rank);  // only reads
  return text("rank ", world_[size_t(rank)], " (host ", p.host, ", pid ", p.pid, ")");
}

Wait GroupCore::wait_of(const std::string& call, const std::function<bool(int, const Peer&)>& is_absent) {
  Wait wait;
  wait.call = call;
  wait.group = name;
  std::lock_guard lock(mesh.mutex());
  for (int r = 0; r < mesh.size(); ++r) {
    const Peer& p = mesh.peer(r);
    if (r == mesh.rank() || p.state != Peer::here || !is_absent(r, p)) continue;
    const bool known = p.stand.size() >= sizeof(uint64_t);
    const uint64_t epoch = known ? wire::Reader(p.stand).get<uint64_t>() : 0;  // 0: it has reported nothing yet
    wait.absent.push_back({world_rank(r), epoch});
  }
  return wait;
}

void GroupCore::waits_for(uint64_t sequence, const std::string& call) {
  if (!self_) return;
  self_->waits([weak = weak_from_this(), sequence, call] {
    auto core = weak.lock();
    return core ? core->wait_of(call, [&](int, const Peer& p) { return p.calls < sequence; }) : Wait();
  });
}

void GroupCore::waits_for_message(int from, const std::string& call) {
  if (!self_) return;
  self_->waits([weak = weak_from_this(), from, call] {
    auto core = weak.lock();
    if (!core) return Wait();
    Wait wait = core->wait_of(call, [&](int r, const Peer&) { return from < 0 || from == r; });
    wait.any = from < 0;
    return wait;
  });
}

void GroupCore::look_at_stands() {
  if (!self_) return;
  for (int r = 0; r < mesh.size(); ++r) {
    if (r == mesh.rank()) continue;
    const std::string bytes = mesh.with(
        r, [](Peer& p) { return p.state == Peer::here && Clock::now() - p.heard < kSilent ? p.stand : std::string(); });
    if (bytes.empty()) continue;
    try {
      self_->learn(world_rank(r), Stand::decode(bytes));
    } catch (const DistributedError&) {  // garbage; nobody catches it on the monitor's thread
    }
  }
  const auto found = self_->standstill();
  if (!found) return;
  for (const auto& group : found->second) group->fail(text("group '", group->name, "': ", found->first), true);
}

void GroupCore::look_at_running() {
  Fingerprint mine;
  uint64_t sequence = 0;
  bool late = false;
  {
    std::lock_guard lock(mutex_);
    if (!in_engine_) return;
    mine = *in_engine_;
    sequence = engine_sequence_;
    late = Clock::now() >= engine_deadline_;
  }
  const int before = (mesh.rank() + mesh.size() - 1) % mesh.size();
  std::string header, gone;
  {
    std::lock_guard lock(mesh.mutex());
    Peer& p = mesh.peer(before);
    if (!p.collectives.empty() && p.collectives.front().number == sequence) header = p.collectives.front().body;
    for (int r = 0; r < mesh.size() && gone.empty(); ++r) {
      if (r != mesh.rank()) gone = mesh.gone(r, sequence);
    }
  }
  const std::string call = title(mine, sequence);
  std::string_view rest;
  if (!header.empty()) {
    const Fingerprint theirs = Fingerprint::decode(header, rest);
    if (!mine.same(theirs)) {
      fail(message(mine, sequence, before, theirs), true);
      return;
    }
  }
  if (!gone.empty()) {
    fail(text(call, ": ", gone, ".", mine.site.empty() ? "" : text(" Called at ", mine.site, ".")), true);
  } else if (late) {
    fail(timed_out(call, sequence, engine_timeout_), true);
  }
}

}  // namespace vesta
