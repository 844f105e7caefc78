#include <vesta/cuda/device.h>

#include <pthread.h>

#include <array>
#include <mutex>

#include <vesta/cuda/runtime_device.h>

namespace vesta::cuda {
namespace {

thread_local int current = 0;             // at the last query; another library may have set another device since
thread_local bool current_is_set = false;  // a new thread has device 0's CUDA context only once it asks for it

bool forked = false;  // a child of a process that used CUDA, which cannot use it further

/// Makes a forked child start without a current device, so that its first use of one is checked.
void watch_forks() {
  static const int watching = pthread_atfork(nullptr, nullptr, [] { forked = true, current_is_set = false; });
  static_cast<void>(watching);
}

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

int current_device() {
  int device = current;
  if (!forked && visible_devices() > 0 && rt::get_device(&device) == rt::Status::success) current = device;
  return current;
}

void set_current_device(int device) {
  if (current_is_set && current_device() == device) return;
  VESTA_CHECK(!forked, runtime,
              "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
              "'spawn' start method.");
  VESTA_CHECK(visible_devices() > 0, device, why_no_device());
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "cuda: expected a device number from 0 to ",
              visible_devices() - 1, ", got ", device, ".");
  VESTA_CUDA_CHECK(rt::set_device(device));
  watch_forks();
  current = device, current_is_set = true;
}

DeviceGuard::DeviceGuard(int device) : before_(current_device()), was_set_(current_is_set) {
  if (before_ != device || !was_set_) set_current_device(device);
}

DeviceGuard::~DeviceGuard() {
  if (before_ == current) return;
  if (was_set_) VESTA_CUDA_IGNORE(rt::set_device(before_));  // else nobody asked for it, so it gets no context now
  current = before_, current_is_set = was_set_;
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
