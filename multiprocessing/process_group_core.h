// GroupCore: the thread of a group, which runs its collectives in order, and the group's end, whichever thread finds
// it. Internal.
//
// A tour. HostGroup (process_group_host.cpp) makes a Task from each call: a fingerprint, a Work, and a function that
// runs on the group's thread with a Call. The function either exchanges small values itself (Call::exchange) or calls
// the engine (Call::bulk); both check the fingerprints. A failure is one message per group, set by whichever finds it
// first: this thread (a difference, a deadline), the monitor (a difference or a deadline while the engine works, a
// connection that ended), another rank (Mesh::abort). It ends the engine's call and wakes those who wait, and every
// later operation raises it.
#pragma once
#include <deque>
#include <thread>

#include <vesta/multiprocessing/engine.h>
#include <vesta/multiprocessing/fingerprint.h>
#include <vesta/multiprocessing/mesh.h>
#include <vesta/multiprocessing/monitor.h>
#include <vesta/multiprocessing/standstill.h>

namespace vesta {

/// The largest message (to one rank) that our own sockets carry together with the fingerprint, and the most that a
/// rank sends this way in one collective; above that, the engine needs fewer bytes. Tuned with
/// benchmarks/distributed.py: on two ranks Gloo overtakes between 256 and 512 KiB, on four above that.
inline constexpr size_t kEagerBytes = 256 << 10, kEagerTotal = 512 << 10;
/// The largest group in which small values go from each rank to each; the engine has trees and rings for larger
/// groups.
inline constexpr int kEagerRanks = 16;

class GroupCore;

/// A running collective: the argument of its function.
class VESTA_API Call {
 public:
  Call(GroupCore& core, const Fingerprint& print, uint64_t sequence, Clock::time_point deadline)
      : core_(core), print_(print), sequence_(sequence), deadline_(deadline) {}
  /// Sends each rank the bytes that `to(rank)` gives, with the fingerprint, and returns what each rank sent (its own
  /// element stays empty). Returns when all ranks have called the same thing.
  std::vector<std::string> exchange(const std::function<std::string_view(int rank)>& to);
  /// Runs `work`, which calls the engine; the fingerprint goes round the ring meanwhile.
  void bulk(const std::function<void()>& work);
  /// Runs `work`, which calls the engine, if the fingerprints were exchanged already.
  void run_engine(const std::function<void()>& work);
  /// Encodes the numbers of bytes that this rank sends to another and expects from it, for `compare_sizes` there.
  static std::string sizes(uint64_t sent, uint64_t expected);
  /// Fails the group unless the sizes that `rank` wrote at the beginning of `theirs` fit; leaves the rest there.
  void compare_sizes(int rank, uint64_t sent, uint64_t expected, std::string_view& theirs);
  /// Returns the engine's tag of this operation, or of the n-th part of it.
  uint32_t tag(uint32_t part = 0) const { return print_.tag(sequence_) + part * 0x9e3779b9u; }
  uint64_t sequence() const { return sequence_; }
  const Fingerprint& print() const { return print_; }

 private:
  void wait_for(const std::vector<int>& ranks);
  std::string take(int rank);

  GroupCore& core_;
  const Fingerprint& print_;
  uint64_t sequence_;
  Clock::time_point deadline_;
};

class VESTA_API GroupCore : public Watched, public std::enable_shared_from_this<GroupCore> {
 public:
  GroupCore(std::string backend, std::string name, Store& store, int rank, int size, Milliseconds timeout);
  ~GroupCore() override;

  /// Connects the engine (none in a group of one rank) and starts the thread and the monitor.
  void start(const std::function<std::unique_ptr<Engine>(const Meeting&)>& engine, Milliseconds timeout);
  /// Makes the group take part in finding a standstill: `ranks` are the members' numbers in the world.
  void join_world(std::vector<int> ranks);
  /// Records that the calling thread calls an operation.
  void calls() {
    if (self_) self_->calls();
  }
  /// Records that the calling thread waits for an operation #`sequence`, or for a message from `from` (-1: any).
  void waits_for(uint64_t sequence, const std::string& call);
  void waits_for_message(int from, const std::string& call);
  /// Puts a collective into the queue.
  WorkPtr submit(Fingerprint print, Milliseconds timeout, std::vector<Tensor> outputs, std::function<void(Call&)> run);
  /// Does the same with a given Work.
  void submit(Fingerprint print, const WorkPtr& work, std::function<void(Call&)> run);
  /// Waits for the queue (while it moves), says goodbye and ends the thread.
  void stop();

  /// Ends the group; the first reason counts. Returns that reason.
  std::string fail(const std::string& reason, bool tell_others);
  /// Throws if the group has failed; `what` could not run.
  void check_failed(const std::string& what);
  bool failed() const { return failed_; }
  /// Returns why something could not be done: the group's failure, else what is known about lost ranks, else
  /// `fallback`.
  std::string reason_for(const std::string& what, const std::string& fallback);
  /// Returns whether this is a child forked from the process that made the group.
  bool forked() const;
  /// Compares a received fingerprint with this rank's; fails the group and throws if they differ.
  void compare(const Fingerprint& mine, uint64_t sequence, int rank, std::string_view bytes, std::string_view& rest);
  /// Returns which ranks have not reached an operation, and what is known about each.
  std::string report(uint64_t sequence);
  /// Returns the message of an operation that timed out.
  std::string timed_out(const std::string& call, uint64_t sequence, Milliseconds timeout);
  /// Returns an operation's title for messages: `all_reduce #17 of group 'default'`.
  std::string title(const Fingerprint& f, uint64_t sequence) const;
  /// Returns the title with the call site.
  std::string call_of(const Fingerprint& f, uint64_t sequence) const;

  Mesh mesh;
  const bool unchecked;  // compares nothing, to measure the cost of comparing
  const std::string name;
  uint64_t given() const { return given_; }
  /// Returns whether operations are under way.
  bool busy() const { return done_ != given_; }

  void look() override;

 private:
  friend class Call;
  struct Task {
    std::shared_ptr<const Fingerprint> print;
    uint64_t sequence;
    WorkPtr work;
    std::function<void(Call&)> run;
  };
  void loop();
  void end_thread();
  std::exception_ptr run_task(Task& t);
  [[noreturn]] void give_reason(const std::string& title, const std::string& fallback, const std::string& site = {});
  void look_at_running();
  void look_at_stands();
  void give_sign();
  Wait wait_of(const std::string& call, const std::function<bool(int rank, const Peer& p)>& is_absent);
  std::string world_rank(int rank) const;
  std::string message(const Fingerprint& mine, uint64_t sequence, int rank, const Fingerprint& theirs);

  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;  // guards everything below
  std::condition_variable changed_;
  std::deque<Task> queue_;
  bool stopping_ = false;
  std::atomic<bool> failed_{false};
  std::string failure_;
  std::atomic<uint64_t> given_{0}, done_{0};
  std::shared_ptr<const Fingerprint> last_call_;
  // The collective that the engine works on, for the monitor.
  const Fingerprint* in_engine_ = nullptr;
  uint64_t engine_sequence_ = 0;
  Clock::time_point engine_deadline_;
  Milliseconds engine_timeout_{0};
  Clock::time_point last_alive_;
  std::vector<int> world_;  // the members' numbers; empty: this group takes no part
  std::shared_ptr<SelfStand> self_;
  int pid_;
  std::thread thread_;
};

}  // namespace vesta
