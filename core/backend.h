// The port a device plugs into. Core holds one pointer per device type and depends on nothing else of a device.
#pragma once
#include <cstddef>

#include <vesta/core/device.h>
#include <vesta/core/dtype.h>

namespace vesta {

struct PointwisePlan;
class Storage;

/// A block that a backend allocated; `deleter(context)` frees it.
struct Memory {
  void* data = nullptr;
  void* context = nullptr;
  void (*deleter)(void* context) = nullptr;
};

/// The services that a device offers to core. Kernels of ops are registered with the ops; this is the rest.
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
  /// Raises `message` (a literal) as Error(runtime) the next time the host waits for the device, if *flag is set. The
  /// flag lies in the device's memory.
  virtual void raise_later(const bool* flag, const char* message, Device device);

  // The following is for devices with their own memory and queues; it is never called for the CPU.

  /// Returns the device that `cuda` without a number means on this thread. Error(device) where there is none.
  virtual int current_device() const { return 0; }
  /// Copies bytes to this device, from it, or between two of this type. Returns when the host may use both blocks.
  /// With `non_blocking` and a page-locked host block it returns as soon as the copy is queued.
  virtual void transfer(void* to, Device to_device, const void* from, Device from_device, size_t nbytes,
                        bool non_blocking);
  /// Returns the number of this thread's current stream of a device (set_current_stream sets it).
  virtual uint32_t current_stream(Device) const { return 0; }
  virtual void set_current_stream(Device, uint32_t) {}
  /// Makes later work of stream `later` wait for what is queued on `earlier` now.
  virtual void order(Device, uint32_t /*later*/, uint32_t /*earlier*/) {}
  /// Records that work queued on a stream uses the storage, so that its memory is not reused too early.
  virtual void record_use(const Storage&, uint32_t /*stream*/) {}
  /// Allocates page-locked host memory, which the device can read directly. Error(device) if there is no device.
  virtual Memory allocate_pinned(size_t nbytes);
  /// Returns whether a host address lies in page-locked memory.
  virtual bool is_pinned(const void*) const { return false; }
};

/// Returns the backend of a device type, loading its library if needed. Error(device) if there is none.
VESTA_API Backend& backend(DeviceType type);
/// Returns whether a backend is registered, or can be loaded.
VESTA_API bool has_backend(DeviceType type);
/// Returns the address of a symbol of the library that a backend was loaded from; Error(device) if it has none.
VESTA_API void* backend_symbol(DeviceType type, const char* symbol);
/// Returns `device` with a number: a device without one (`cuda`) gets that of the current device.
VESTA_API Device resolved(Device device);
/// Returns whether a backend is registered; loads nothing.
VESTA_API bool is_loaded(DeviceType type);
/// Registers a backend; each plug-in's register function calls it once.
VESTA_API void set_backend(DeviceType type, Backend* backend);

}  // namespace vesta
