// Messages between two ranks of a group: send and recv, beside the collectives. Internal to multiprocessing.
//
// A message is a head (tag, dtype, size, call site) in the mesh, followed by the values if they are few; the engine
// carries many values. A receive is matched with the first head of its tag, on a thread that the first large send or
// any receive starts.
#pragma once
#include <list>
#include <map>

#include <vesta/multiprocessing/host_engine.h>
#include <vesta/multiprocessing/process_group_core.h>

namespace vesta {

class Messages {
 public:
  /// Makes the messages of a group; `engine`, which belongs to `core`, carries the large ones.
  Messages(std::shared_ptr<GroupCore> core, HostEngine* engine);
  ~Messages();
  /// Sends a contiguous tensor in host memory. A small one is done at once.
  WorkPtr send(Tensor host, int to, int tag, Milliseconds timeout);
  /// Receives into a contiguous tensor in host memory; `user` is the Work's result, and `arrived` runs before the Work
  /// ends. Source -1: any rank. Unless `waits_for_ever`, the program means to continue after the timeout (Note [Told
  /// apart from slow ranks]).
  WorkPtr receive(Tensor host, int from, int tag, Milliseconds timeout, bool waits_for_ever, Tensor user,
                  std::function<void()> arrived);
  /// Ends the thread; what has not arrived fails.
  void stop();

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace vesta
