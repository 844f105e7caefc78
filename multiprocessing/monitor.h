// The monitor: one thread per process that checks all groups when no other thread does. Internal to multiprocessing.
#pragma once
#include <memory>

#include <vesta/multiprocessing/mesh.h>

namespace vesta {

/// An object that the monitor checks.
class Watched {
 public:
  virtual ~Watched() = default;
  /// Checks the object. It is called about ten times a second, and at once when a connection of the mesh ends. It must
  /// not block.
  virtual void look() = 0;
};

/// Registers an object for checks; the first one starts the thread. `mesh` gives the connections to listen to.
void watch(std::shared_ptr<Watched> who, Mesh& mesh);
/// Unregisters an object; when it returns, `look` is not running (unless `look` is the caller). The last one ends the
/// thread.
void unwatch(const Watched* who);

}  // namespace vesta
