#include <vesta/cuda/device.h>

#include <pthread.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>

#include <vesta/cuda/runtime_device.h>

namespace vesta::cuda {
namespace {

thread_local int current = 0;             // at the last query; another library may have set another device since
thread_local bool current_is_set = false;  // a new thread has device 0's CUDA context only once it asks for it
thread_local int left_by_guard = -1;  // the runtime's device that is not this thread's: a guard's, when none was set

bool forked = false;  // a child of a process that used CUDA, which cannot use it further

/// Makes a forked child start without a current device, so that its first use of one is refused.
void watch_forks() {
  static const int watching = pthread_atfork(nullptr, nullptr, [] { forked = true, current_is_set = false; });
  static_cast<void>(watching);
}

struct Found {
  int count = 0;
  rt::Status status = rt::Status::success;
  Found() {
    watch_forks();  // counting devices starts the driver, which a child cannot use
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
  int driver = 0;
  if (rt::driver_version(&driver) == rt::Status::success && driver == 0) {
    return "cuda: no NVIDIA driver was found on this machine (libcuda.so.1). Install it, or compute with "
           "device=\"cpu\".";
  }
  return text("cuda: no CUDA device is usable: ", rt::status_text(found().status), " (",
              rt::status_name(found().status), "). Check the driver with nvidia-smi, and CUDA_VISIBLE_DEVICES.");
}

int current_device() {
  int device = current;
  if (forked || visible_devices() == 0 || rt::get_device(&device) != rt::Status::success) return current;
  if (device != left_by_guard) current = device, left_by_guard = -1;
  return current;
}

namespace {
/// Raises Error(device) for a device that this library has no kernels for.
void refuse_without_code(int device) {
  const DeviceProperties& p = properties(device);
  if (has_code_for(rt::architectures(), p.major, p.minor)) return;
  constexpr int kLeastMajor = 8;  // of what the kernels can be compiled for (architectures.cmake)
  VESTA_CHECK(p.major >= kLeastMajor, device, "cuda: cuda:", device, " (", p.name, ") has compute capability ", p.major,
              ".", p.minor,
              ", and the kernels need 8.0 or later. Choose another device with CUDA_VISIBLE_DEVICES, or "
              "device=\"cpu\".");
  fail(Cause::device, "cuda: cuda:", device, " (", p.name, ") has compute capability ", p.major, ".", p.minor,
       ", for which this build has no code (it was built for ", rt::architectures(),
       "). Choose another device with CUDA_VISIBLE_DEVICES, or build with -DCMAKE_CUDA_ARCHITECTURES=", p.major,
       p.minor, ".");
}
}  // namespace

void set_current_device(int device) {
  if (current_is_set && current_device() == device) return;
  VESTA_CHECK(!forked, runtime,
              "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, you must use the "
              "'spawn' start method.");
  VESTA_CHECK(visible_devices() > 0, device, why_no_device());
  VESTA_CHECK(device >= 0 && device < visible_devices(), device, "cuda: expected a device number from 0 to ",
              visible_devices() - 1, ", got ", device, ".");
  refuse_without_code(device);
  VESTA_CUDA_CHECK(rt::set_device(device));
  current = device, current_is_set = true, left_by_guard = -1;
}

DeviceGuard::DeviceGuard(int device) : before_(current_device()), was_set_(current_is_set) {
  if (before_ != device || !was_set_) set_current_device(device);
}

DeviceGuard::~DeviceGuard() {
  if (before_ == current) return;
  if (was_set_ || before_ != 0) VESTA_CUDA_IGNORE(rt::set_device(before_));
  else left_by_guard = current;  // nobody asked for the one before, so it gets no context now
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

bool has_code_for(const std::string& architectures, int major, int minor) {
  const int wanted = 10 * major + minor;
  for (size_t at = 0; at < architectures.size();) {
    const size_t end = std::min(architectures.find(',', at), architectures.size());
    const std::string one = architectures.substr(at, end - at);
    at = end + 1;
    const int built = std::atoi(one.c_str());
    if (built == 0) return true;  // native, all: the driver tells
    const std::string kind = one.substr(std::min(one.find_first_not_of("0123456789"), one.size()));
    if (built > wanted) continue;
    if (kind.starts_with('a')) {  // for this one architecture
      if (built == wanted) return true;
      continue;
    }
    if (kind.starts_with('f')) {  // for this family of architectures
      if (built / 10 == major) return true;
      continue;
    }
    if (!kind.ends_with("-real")) return true;  // with PTX, which the driver compiles for later devices
    if (built / 10 == major) return true;  // a later minor version runs it
  }
  return false;
}

int index_of(Device device) {
  VESTA_CHECK(device.type() == DeviceType::cuda, device, "cuda: expected a CUDA device, got ", device, ".");
  return device.index() < 0 ? current_device() : device.index();
}

}  // namespace vesta::cuda
