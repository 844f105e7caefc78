// Devices: how many there are, which one this thread works on.
#pragma once
#include <vesta/core/device.h>
#include <vesta/cuda/check.h>

namespace vesta::cuda {

inline constexpr int kMaxDevices = 16;

/// Returns the number of usable devices; 0 where there is no GPU or no driver. Asks the driver once.
VESTA_API int visible_devices();
/// Says in a sentence why visible_devices() is 0; empty where it is not.
VESTA_API std::string why_no_device();
/// Returns this thread's current device, 0 at first. It is the runtime's: another library's cudaSetDevice counts.
VESTA_API int current_device();
/// Makes `device` current for this thread. Error(device) for a number that does not exist. A device that is current
/// already costs one question to the runtime, none to the driver.
VESTA_API void set_current_device(int device);
/// Describes a device; asked once.
VESTA_API const DeviceProperties& properties(int device);

/// Makes `device` current while it lives.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;

 private:
  int before_;
  bool was_set_;
};

/// Returns the number of a device of type cuda, with the current one for `cuda` without a number.
VESTA_API int index_of(Device device);

}  // namespace vesta::cuda
