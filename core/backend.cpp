// The registered devices, and how one is found: libvesta_cuda.so beside this library, or the path in
// VESTA_CUDA_LIBRARY. It is loaded when the device is first requested, never by `import vesta`.
#include <vesta/core/backend.h>

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include <vesta/core/base/warning.h>
#include <vesta/core/plug_in.h>

namespace vesta {
namespace {

constinit std::array<std::atomic<Backend*>, kNumDeviceTypes> backends{};

std::string why_not_loaded;     // the loader's message; written once, by load_cuda
bool of_another_build = false;  // also written once, by load_cuda
void* cuda_library = nullptr;

std::string library_path() {
  if (const char* given = std::getenv("VESTA_CUDA_LIBRARY"); given && *given) return given;
  Dl_info here{};
  dladdr(reinterpret_cast<void*>(&set_backend), &here);
  std::string path = here.dli_fname ? here.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1) + "libvesta_cuda.so";
}

/// Loads the CUDA library once; it registers itself. If it is there but cannot be used, a warning says so: a program
/// that only asks whether there is a GPU would not learn of it otherwise.
void load_cuda() {
  static std::once_flag loading;
  static std::atomic<bool> warns{false};
  std::call_once(loading, [] {
    const std::string path = library_path();
    cuda_library = load_plug_in(path, why_not_loaded);
    if (!cuda_library) {
      warns = of_another_build = why_not_loaded.find("another build") != std::string::npos;
      return;
    }
    auto plug_in = reinterpret_cast<void (*)()>(dlsym(cuda_library, "vesta_plug_in"));
    if (plug_in) plug_in();
    else why_not_loaded = path + " has no vesta_plug_in";
  });
  if (warns.exchange(false)) warn("cuda: " + why_not_loaded);  // not within call_once: it may wait for Python's lock
}

Backend* find(DeviceType type) {
  if (Backend* b = backends[int(type)].load(std::memory_order_acquire)) return b;
  if (type == DeviceType::cuda) load_cuda();
  return backends[int(type)].load(std::memory_order_acquire);
}

}  // namespace

bool has_backend(DeviceType type) { return find(type) != nullptr; }
bool is_loaded(DeviceType type) { return backends[int(type)].load(std::memory_order_acquire) != nullptr; }
void set_backend(DeviceType type, Backend* b) { backends[int(type)].store(b, std::memory_order_release); }

Backend& backend(DeviceType type) {
  Backend* b = find(type);
  VESTA_CHECK(b || !of_another_build, device, "device: expected a ", name(type), " backend of this build. ",
              why_not_loaded);
  VESTA_CHECK(b, device, "device: expected a device of this build, got '", name(type), "'. This build has no ",
              name(type), " backend",
              type == DeviceType::cuda ? "; install vesta-cuda (" + why_not_loaded + ")." : ".");
  return *b;
}

void* backend_symbol(DeviceType type, const char* symbol) {
  backend(type);
  void* found = type == DeviceType::cuda && cuda_library ? dlsym(cuda_library, symbol) : nullptr;
  VESTA_CHECK(found, device, "device: the ", name(type), " backend has no symbol ", symbol,
              "; it is of another version. Install the vesta-cuda that belongs to this vesta.");
  return found;
}

Device resolved(Device d) { return d.index() >= 0 ? d : Device(d.type(), int8_t(backend(d.type()).current_device())); }

void Backend::transfer(void*, Device to, const void*, Device from, size_t, bool) {
  fail(Cause::not_implemented, "copy: ", name(), " cannot copy from ", from, " to ", to, ".");
}

void Backend::raise_later(const bool*, const char* message, Device) {
  fail(Cause::not_implemented, name(), " cannot check values without waiting: ", message);
}

Memory Backend::allocate_pinned(size_t) {
  fail(Cause::device, "pin_memory: expected a device that reads host memory, got ", name(), ".");
}

}  // namespace vesta
