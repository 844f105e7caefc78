// Engine: moves the values of large collectives. The thread and the monitor of a group only end it. What else an engine
// can do is between it and its group: HostEngine (host_engine.h) moves bytes of host memory, NCCL those of devices.
#pragma once
#include <functional>
#include <string>

#include <vesta/multiprocessing/deadline.h>

namespace vesta {

/// The life of an engine: it starts when the ranks of a group meet, and any thread may end it.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Ends everything: running calls throw soon. Safe from any thread.
  virtual void abort() noexcept = 0;
};

/// The means by which an engine finds its peers: all ranks publish some bytes and read those of the others.
struct Meeting {
  int rank = 0, size = 1;
  std::string address;  // of this machine, numeric
  Milliseconds timeout;
  std::function<void(const std::string& bytes)> publish;
  std::function<std::string(int rank)> read;
};

}  // namespace vesta
