// The monitor: one thread per process that looks after all groups where nobody else does. Internal to multiprocessing.
#pragma once
#include <memory>

#include <vesta/multiprocessing/mesh.h>

namespace vesta {

/// Is looked after by the monitor.
class Watched {
 public:
  virtual ~Watched() = default;
  /// Is called about ten times a second, and at once when a connection of the mesh ends. Never blocks.
  virtual void look() = 0;
};

/// Registers what is to be looked after; the first starts the thread. `mesh` gives the connections to listen to.
void watch(std::shared_ptr<Watched> who, Mesh& mesh);
/// Ends that; when it returns, `look` is not running (unless it is the caller). The last one ends the thread.
void unwatch(const Watched* who);

}  // namespace vesta
