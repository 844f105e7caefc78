// Mesh: a connection of our own between each two ranks of a group, for what must arrive whatever the engine does:
// fingerprints, small values, heartbeats, goodbyes and reasons of failure. Internal to multiprocessing.
//
// There is no reader thread: a thread that waits for a message reads for all (one at a time; the others sleep until it
// has read), so that a small collective costs one write and one read. The monitor's thread (monitor.h) reads if no
// thread waits, and is woken when a connection ends.
#pragma once
#include <atomic>
#include <deque>
#include <functional>
#include <span>

#include <vesta/multiprocessing/store.h>
#include <vesta/multiprocessing/wire.h>

namespace vesta {

/// The purpose of a message.
enum class Topic : uint16_t { collective, message, received, alive, abort, bye, bye_seen, address, ready };

/// A received message: its topic, its number, and its bytes.
struct MeshMessage {
  Topic topic;
  uint64_t number;
  std::string body;
};

/// The state of a peer.
struct Peer {
  enum State : uint8_t { here, left, lost };
  std::string host;
  int pid = 0;
  bool same_machine = false;  // and the same space of process ids: /proc shows it
  State state = here;
  std::string end;  // how it was lost: "killed by signal 9 (SIGKILL)"
  uint64_t left_after = 0;  // the last operation it gave before it left
  bool gave_up = false;  // left because the group has failed, and sent the reason
  bool silent = false;  // its side of the connection has ended
  bool saw_bye = false;  // it knows that we left, or we have answered its goodbye
  bool ready = false;  // it has all its connections, the engine's too
  uint64_t calls = 0;  // the last operation it has begun, as far as known
  std::string last_call;
  std::string stand;  // its last report about itself, sent with a heartbeat (standstill.h)
  Clock::time_point heard;  // when something was last received from it
  std::deque<MeshMessage> collectives, messages, addresses;
  // The connection.
  wire::Fd fd;
  std::string out;  // what the socket had no room for
  size_t out_sent = 0;
  std::string in;  // of the reading thread alone
};

class VESTA_API Mesh {
 public:
  /// Meets the other ranks through the store; DistributedError names those that do not come in time.
  Mesh(Store& store, int rank, int size, const std::string& group, Milliseconds timeout);
  ~Mesh();

  int rank() const { return rank_; }
  int size() const { return int(peers_.size()); }
  const std::string& address() const { return address_; }

  /// Sends a message; never blocks. Does nothing if the peer is gone.
  void send(int to, Topic topic, uint64_t number, std::string_view head, std::string_view tail = {});
  void send_to_all(Topic topic, uint64_t number, std::string_view body);

  /// Calls `ready` under the lock, after each message, until it is true or the deadline is reached; returns whether it
  /// is true. Reads if no other thread does.
  bool wait(Clock::time_point deadline, const std::function<bool()>& ready);
  /// Reads what is there; does nothing if another thread reads.
  void read_now();
  /// Wakes every waiting thread to check its condition.
  void wake();
  /// Runs `f(peer)` under the lock.
  template <class F>
  auto with(int rank, F&& f) {
    std::lock_guard lock(mutex_);
    return f(peers_[size_t(rank)]);
  }
  /// Returns a peer; for conditions of `wait`, which hold the lock.
  Peer& peer(int rank) { return peers_[size_t(rank)]; }
  std::mutex& mutex() { return mutex_; }

  /// Tells all others that the group has failed, and sends nothing more.
  void abort(const std::string& reason);
  /// Returns the reason for the abort that another rank gave, or this one.
  std::string aborted();
  bool is_aborted() const { return is_aborted_; }
  /// Waits until all other ranks have their connections (or are gone): an earlier goodbye would end connections that
  /// they still make.
  void await_ready(Milliseconds patience);
  /// Says goodbye: this rank's last operation was `number`. Waits until all have received it, or `patience` is over.
  void leave(uint64_t number, Milliseconds patience);
  /// Answers the goodbyes of ranks whose last operation is at most `number`, which are done here.
  void answer_goodbyes(uint64_t number);
  /// Returns the identity of a rank: `rank 2 (host h, pid p)`.
  std::string who(int rank) const;
  /// Returns why a rank cannot take part in operation `number`, or an empty string. Called under the lock.
  std::string gone(int rank, uint64_t number) const;
  /// Returns which rank has gone that should send or receive a message; for any rank (-1), one that died, or all that
  /// left. Empty while the message may come. With `promised` the message is on its way, and a rank that leaves still
  /// sends it. Takes the lock.
  std::string unreachable(int with, bool promised = false);
  /// Calls `f` with each open descriptor, once, after the connections are made.
  template <class F>
  void each_descriptor(F&& f) {
    std::lock_guard lock(mutex_);
    for (Peer& p : peers_) {
      if (p.fd) f(p.fd.get());
    }
  }

 private:
  void meet(Store& store, const std::string& group, Clock::time_point deadline);
  bool connect(Store& store, int rank, const std::function<std::string(wire::Writer&)>& introduce,
               const std::string& space, Clock::time_point deadline);
  void accept_peers(int listener, const std::string& token, const std::string& space, Clock::time_point deadline);
  void meet_peer(wire::Fd fd, wire::Reader& introduction, const std::string& space);
  [[noreturn]] void did_not_come(const std::string& group, const std::vector<int>& ranks) const;
  static void close_connection(Peer& p);
  void flush(Peer& p);
  void read_once(int timeout_ms);
  bool read_from(int rank, std::vector<MeshMessage>& came);
  void take_in(int rank, std::vector<MeshMessage>& came);
  void ended(Peer& p);

  int rank_;
  std::string address_;
  std::vector<Peer> peers_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool reading_ = false;
  std::vector<char> read_buffer_;  // of the reading thread
  std::string aborted_;
  std::atomic<bool> is_aborted_{false};
  wire::Fd wake_;
};

}  // namespace vesta
