#include <vesta/cuda/device.h>

#include <array>
#include <mutex>

namespace vesta::cuda {
namespace {

thread_local int current = 0;
thread_local bool current_is_set = false;  // a new thread's CUDA context is device 0's only once somebody asks for it

struct Found {
  int count = 0;
  rt::Status status = rt::Status::success;
  Found() {
    status = rt::device_count(&count);
    if (status != rt::Status::success) count = 0;
    if (count > kMaxDevices) count = kMaxDevices;
  }
};
const Found& found() {
  static const Found f;
  return f;
}

}  // namespace

int visible_devices() { return found().count; }

std::string why_no_device() {
  if (found().count) return {};
  return text("cuda: no CUDA device is usable: ", rt::status_text(found().status), " (",
              rt::status_name(found().status), "). Check the driver with nvidia-smi, and CUDA_VISIBLE_DEVICES.");
}

int current_device() { return current; }

void set_current_device(int device) {
  if (device == current && current_is_set) return;
  VESTA_CHECK(visible_devices() > 0, device, why_no_device());
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "cuda: expected a device number from 0 to ",
              visible_devices() - 1, ", got ", device, ".");
  VESTA_CUDA_CHECK(rt::set_device(device));
  current = device, current_is_set = true;
}

DeviceGuard::~DeviceGuard() {
  if (before_ == current) return;
  VESTA_CUDA_IGNORE(rt::set_device(before_));
  current = before_;
}

const DeviceProperties& properties(int device) {
  static std::array<DeviceProperties, kMaxDevices> all;
  static std::array<std::once_flag, kMaxDevices> asked;
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "cuda: expected a device number from 0 to ",
              visible_devices() - 1, ", got ", device, ".");
  std::call_once(asked[size_t(device)], [&] { VESTA_CUDA_CHECK(rt::device_properties(device, &all[size_t(device)])); });
  return all[size_t(device)];
}

int index_of(Device device) {
  VESTA_CHECK(device.type == DeviceType::cuda, device, "cuda: expected a CUDA device, got ", device, ".");
  return device.index < 0 ? current_device() : device.index;
}

}  // namespace vesta::cuda
