// Standstill: ranks that wait for each other in different groups, and would do so until they time out. Internal.
//
// Note [Told apart from slow ranks]
// A rank that computes, or reads its data, is waited for. It is different if every thread of a rank that ever called a
// collective is itself waiting: such a rank calls nothing more until one of its waits ends. So each rank tells the
// others, with its heartbeats, whether that is so: its *stand*, with the waits of its threads and an *epoch* that
// changes whenever one of its threads calls something or begins or ends a wait. A wait names the ranks that have not
// come, each with its epoch at that time; the epoch is sent on the connection of the group concerned, after everything
// the rank sent there before. Ranks whose stands are old enough, and all of whose threads wait for ranks among them in
// the very epoch that those are still in, can never continue. One rank knows enough to see this; it fails the groups
// concerned, which tells their members. Not seen: a thread that never called anything and is about to. A wait with its
// own timeout is not counted, since its program may continue afterwards, nor is one for which data are moving.
// Weighed: a detector on rank 0 (its death, a hot spot), probes that run along the waits (several rounds of messages
// through ranks whose groups differ), and the warning after 5 s alone, after which 30 minutes of silence remain.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <vesta/multiprocessing/deadline.h>

namespace vesta {

/// A rank that has not come, and its epoch at that time.
struct Absent {
  std::string who;
  uint64_t epoch = 0;
};

/// The wait of one thread: the call, its group, and the absent ranks. `any`: one of them is enough.
struct Wait {
  std::string call, group;
  std::vector<Absent> absent;
  bool any = false;
};

/// A rank's report about itself; without waits it is running.
struct Stand {
  uint64_t epoch = 0;
  double seconds = 0;  // since the last of its threads began to wait
  std::vector<Wait> waits;
  std::string encode() const;
  static Stand decode(std::string_view bytes);
};

class GroupCore;

/// A rank of this process: its threads, its groups, and the stands that others have reported.
class SelfStand : public std::enable_shared_from_this<SelfStand> {
 public:
  /// Returns the object of an identity, created on first use.
  static std::shared_ptr<SelfStand> of(const std::string& who);

  explicit SelfStand(std::string who) : who_(std::move(who)) {}
  /// Records that this thread calls an operation.
  void calls();
  /// Records that this thread waits; `wait` returns for whom, whenever it is called. Call this once per wait.
  void waits(std::function<Wait()> wait);
  /// Returns the epoch; read it before anything that is sent with it.
  uint64_t epoch();
  Stand stand();
  void learn(const std::string& who, Stand stand);
  /// Registers a group.
  void join(const std::string& name, std::weak_ptr<GroupCore> group);
  /// Returns the message about a standstill of which this rank is a part, and its groups that are concerned.
  std::optional<std::pair<std::string, std::vector<std::shared_ptr<GroupCore>>>> standstill();

 private:
  friend class WaitScope;
  struct Thread {
    std::function<Wait()> wait;  // empty: it does not wait
    Clock::time_point since;
  };
  struct Known {
    Stand stand;
    Clock::time_point heard;
  };
  void goes_on(std::thread::id id, bool ended);
  std::map<std::string, Stand> stuck();

  const std::string who_;
  std::mutex mutex_;  // guards everything below
  uint64_t epoch_ = 1;
  std::map<std::thread::id, Thread> threads_;  // those that have called something
  std::map<std::string, Known> known_;
  std::vector<std::pair<std::string, std::weak_ptr<GroupCore>>> groups_;
  std::map<std::string, uint64_t> seen_;  // the last standstill seen, by epochs, and since when
  Clock::time_point seen_since_;
};

/// A scope that marks a wait of the calling thread; at its end the thread continues. Only a wait without its own
/// timeout counts.
class WaitScope {
 public:
  explicit WaitScope(bool for_ever);
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;

 private:
  friend class SelfStand;
  bool for_ever_;
  std::shared_ptr<SelfStand> told_;
  WaitScope* outer_;
};

}  // namespace vesta
