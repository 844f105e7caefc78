// Messages between two ranks of an NCCL group: send and recv, beside the collectives.
//
// NCCL matches messages by order alone, and two ranks that both send first on one communicator wait for each other
// forever. So each direction of a pair has a communicator, made when it is first used, and a thread queues what is
// ready: the head of a message (tag, dtype, size, call site) goes ahead through the mesh, and a receive is queued when
// its head has come, in the order of the heads. With that, receiving from any rank works as it does with Gloo, a
// receive of a different size is an error before a byte moves, and sends and receives may be given in any order. Only
// a message whose receive is never posted holds up those after it, whatever their tags. A send is queued when its
// receive is known. All ranks queue messages and collectives in one order (message_order.h), so that no rank waits for
// a hardware queue that another one fills.
#pragma once
#include <vesta/cuda/nccl/work.h>
#include <vesta/multiprocessing/store.h>

namespace vesta::cuda::nccl {

class Messages {
 public:
  Messages(std::shared_ptr<GroupCore> core, std::shared_ptr<GroupState> group, StorePtr store);
  ~Messages();
  WorkPtr send(const Tensor& tensor, int to, int tag, Milliseconds timeout);
  /// Receives a tensor. Source -1: from any rank.
  WorkPtr receive(const Tensor& tensor, int from, int tag, Milliseconds timeout);

  /// Counts collectives that are called together, in the order of calls; returns the number of the first.
  uint64_t call_collectives(uint64_t count);
  /// Returns whether the collectives from this number on may be queued, as far as messages go.
  bool clear(uint64_t collective);
  /// Records that the collectives up to this number are queued (or have failed).
  void collectives_queued(uint64_t last);

  /// Waits for messages whose other side has come, fails the rest, and ends the thread.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace vesta::cuda::nccl
