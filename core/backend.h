// The port a device plugs into. Core owns one pointer per device type and knows nothing else of a device.
#pragma once
#include <cstddef>

#include <vesta/core/device.h>
#include <vesta/core/dtype.h>

namespace vesta {

struct PointwisePlan;

/// Is a block that a backend allocated; `deleter(context)` gives it back.
struct Memory {
  void* data = nullptr;
  void* context = nullptr;
  void (*deleter)(void* context) = nullptr;
};

/// Is what a device offers to core. Kernels of ops are registered with the ops; this is the rest.
class VESTA_API Backend {
 public:
  virtual ~Backend() = default;
  virtual const char* name() const = 0;
  /// Returns the number of devices of this type; 0 where there is a plug-in but no hardware.
  virtual int device_count() const = 0;
  /// Allocates `nbytes`, at least 64-byte aligned. Error(memory) naming the request and what is in use.
  virtual Memory allocate(size_t nbytes, Device device) = 0;
  /// Copies bytes within the device, ordered after earlier work on it.
  virtual void copy_bytes(void* to, const void* from, size_t nbytes, Device device) = 0;
  /// Runs the pointwise kernel that is registered for this device over the plan.
  virtual void run(const PointwisePlan& plan) = 0;
  /// Waits until all work queued on the device is done.
  virtual void synchronize(Device device) = 0;
};

/// Returns the backend of a device type; Error(device) where there is none.
VESTA_API Backend& backend(DeviceType type);
/// Tells whether a backend is plugged in.
VESTA_API bool has_backend(DeviceType type);
/// Plugs a backend in; called once by each plug-in's register function.
VESTA_API void set_backend(DeviceType type, Backend* backend);

}  // namespace vesta
