// Engine: what moves the values of large collectives, as far as the group's thread and monitor have to know it. What an
// engine can do besides is between it and its group: HostEngine (host_engine.h) moves bytes of host memory, NCCL those
// of a device.
#pragma once
#include <functional>
#include <string>

#include <vesta/multiprocessing/deadline.h>

namespace vesta {

/// The life of an engine: it is made when the group meets, and can be ended from any thread.
class Engine {
 public:
  virtual ~Engine() = default;
  /// Ends everything: running calls throw, soon. Safe from any thread.
  virtual void abort() noexcept = 0;
};

/// What an engine gets to meet its peers: all ranks publish some bytes and read the others'.
struct Meeting {
  int rank = 0, size = 1;
  std::string address;  // of this machine, numeric
  Milliseconds timeout;
  std::function<void(const std::string& bytes)> publish;
  std::function<std::string(int rank)> read;
};

}  // namespace vesta
