// The order of messages beside collectives, the same on every rank of a group.
//
// Note [Order of messages]. A message and a collective are kernels that wait for other ranks. Streams that share a
// hardware queue run what is queued in the order in which it was queued, so a rank that queues the message first and
// a rank that queues the collective first wait for each other for ever. Each rank therefore queues both in one order:
//
//   position   A message stands behind the collective number p, the larger of the numbers of collectives that its two
//              ranks had called before `send` and before `recv`. So it comes before a collective exactly if both ranks
//              called it before that.
//   turn       Messages of one position have the order in which one rank, the sequencer, was told of them. The receiver
//              tells it once it has matched a message; the sequencer tells both ranks. Connections keep the order, so
//              the turns that a rank hears of are in the sequencer's order. The sequencer is the lowest rank that has
//              not left; turns given by a rank count only after all lower ranks have left.
//
// Collective n+1 is queued when every message of this rank with a position up to n is queued, and none can be added:
// for each message that this rank called before the collective and that is not matched, the other rank has answered
// that it has called collective n+1. Its answer comes after all of its earlier messages; both ranks give messages that
// are matched later a position of at least n+1 (the `floor`). No question is sent while no message of this rank is
// open.
//
// Why ranks cannot deadlock. (1) Queued operations: all ranks queue by (position, turn), one order of the whole group.
// The first unfinished operation in it is first on each of its ranks as well; nothing that waits is ahead of it, and it
// ends once all its ranks have queued it. (2) Operations that are not queued: take the first one in the order that all
// its ranks have called. A collective waits for messages ahead of it, which are called by both ranks and then come
// first, or for answers. An answer is missing only if the other rank has called neither the message nor the collective;
// but it belongs to the collective. A message waits for what is ahead of it, and for the sequencer, whose thread waits
// for nothing. So a group is blocked only if a rank does not make a call that another waits for.
//
// The cost: a collective counts from its call, as if it were waited for, also with async_op. A program may not need a
// message that is called after a collective for another rank to reach that collective. PyTorch has the same rule where
// messages and collectives share a communicator (batched messages, and groups made for a device). With an open message,
// calling a collective waits on the host for the answers.
//
// Rejected: an answer of all ranks before each collective (the host would wait for every collective in groups that
// never send); one thread that gives all operations their turn, collectives too (the same); queueing a message when
// both devices are idle (two ranks may take each other's turn for ever, and collectives under way hold messages up).
//
// The order is that of one group. Collectives and messages of different groups are the program's to order alike on all
// ranks, as NCCL demands for several communicators.
#pragma once
#include <cstdint>
#include <deque>
#include <vector>

#include <vesta/multiprocessing/mesh.h>

namespace vesta::cuda::nccl {

/// The kind of a message between ranks; the first byte of the body.
enum class MessageKind : uint8_t {
  head,  // sender to receiver: a message was called
  matched,  // receiver to sender: it has its receive, and this position
  ready,  // receiver to sequencer: the same
  turn,  // sequencer to both: queue it next
  ask,  // tell me when you have called collective n
  called,  // the answer
};

/// The turn of a message: which message it is, and its position.
struct Turn {
  int source = 0, target = 0;
  uint64_t number = 0;
  uint64_t position = 0;
};

/// The state of the order on one rank. Under the lock of its owner.
class MessageOrder {
 public:
  explicit MessageOrder(Mesh& mesh);

  /// Counts collectives that are called together; returns the number of the first.
  uint64_t call(uint64_t count);
  uint64_t called() const { return called_; }
  /// Records that the collectives up to this number are queued.
  void queued(uint64_t last) { queued_ = last; }
  /// Returns whether a message may be queued as far as collectives go.
  bool reached(uint64_t position) const { return position <= queued_; }

  /// Returns the least position of a message that is matched with a rank from now on.
  uint64_t floor(int rank) const;
  /// Returns whether no message with this rank that is matched from now on can come before collective `n`; asks if that
  /// is not known.
  bool settled(int rank, uint64_t n);

  /// Processes a message of a rank about the order; `kind` is one of ready, turn, ask and called.
  void take_in(int from, MessageKind kind, uint64_t number, wire::Reader& r);
  /// Tells the sequencer of a message that this rank has matched, and the sender its position.
  void announce(const Turn& t);
  /// Records that a rank has left or died. All of its messages must have been processed.
  void left(int rank) { left_[size_t(rank)] = true; }
  /// Does the sequencer's work, if this rank is the sequencer, and answers.
  void go_on();
  /// Returns the next message to be queued, if it is known.
  bool next(Turn& t);
  /// Returns whether the sequencer has changed: messages without a turn must be announced again.
  bool sequencer_changed();

 private:
  int sequencer() const;
  void tell(int to, MessageKind kind, uint64_t number, const std::string& rest);

  Mesh& mesh_;
  uint64_t called_ = 0, queued_ = 0;
  std::vector<uint64_t> promised_, answered_;  // by rank: collectives before which no more messages come
  std::vector<uint64_t> asked_, questions_;  // by rank: what it was asked, what it asks
  std::vector<bool> left_;
  std::deque<Turn> ready_;
  std::vector<std::deque<Turn>> turns_;  // by the rank that gave them
  int announced_to_ = 0;
};

/// Returns the beginning of a body.
wire::Writer& put(wire::Writer& w, MessageKind kind);

}  // namespace vesta::cuda::nccl
