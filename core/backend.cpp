#include <vesta/core/backend.h>

#include <array>

namespace vesta {
namespace { constinit std::array<Backend*, kNumDeviceTypes> backends{}; }

bool has_backend(DeviceType type) { return backends[int(type)] != nullptr; }
void set_backend(DeviceType type, Backend* b) { backends[int(type)] = b; }

Backend& backend(DeviceType type) {
  Backend* b = backends[int(type)];
  VESTA_CHECK(b, device, "device: expected a device of this build, got '", name(type), "'. This build has no ",
              name(type), " backend", type == DeviceType::cuda ? "; install vesta-cuda." : ".");
  return *b;
}

}  // namespace vesta
