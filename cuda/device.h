// Devices: their number and properties, and the thread's current device.
#pragma once
#include <vesta/core/device.h>
#include <vesta/cuda/check.h>

namespace vesta::cuda {

inline constexpr int kMaxDevices = 16;

/// Returns the number of usable devices; 0 if there is no GPU or no driver. Asks the driver once.
VESTA_API int visible_devices();
/// Returns a sentence that tells why visible_devices() is 0; empty if it is not.
VESTA_API std::string why_no_device();
/// Returns this thread's current device, 0 at first. It is the runtime's own, so that another library's cudaSetDevice
/// counts.
VESTA_API int current_device();
/// Makes `device` current for this thread. Error(device) for a number that does not exist. If the device is current
/// already, this costs one query of the runtime and none of the driver.
VESTA_API void set_current_device(int device);
/// Returns a device's properties, queried once.
VESTA_API const DeviceProperties& properties(int device);

/// Returns whether code for `architectures`, in CMake's notation ("80-real,90": device code, device code and PTX), runs
/// on a device of this compute capability.
VESTA_API bool has_code_for(const std::string& architectures, int major, int minor);

/// A guard that makes `device` current while it lives.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int before_;
  bool was_set_;
};

/// Returns the number of a device of type cuda; for `cuda` without a number, that of the current one.
VESTA_API int index_of(Device device);

}  // namespace vesta::cuda
