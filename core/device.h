// Devices: a type and an index.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include <vesta/core/base/error.h>

namespace vesta {

/// A kind of device. `meta` has shapes but no values; `third_party` is free for plug-ins.
enum class DeviceType : uint8_t { cpu, cuda, meta, third_party };
inline constexpr int kNumDeviceTypes = 4;

/// One device: `cpu`, `cuda:0`. An index of -1 (written `cuda`) means the current one; tensors always have a number.
struct Device {
  DeviceType type = DeviceType::cpu;
  int8_t index = 0;
  constexpr Device() = default;
  constexpr Device(DeviceType t, int8_t i = 0) : type(t), index(i) {}
  /// Parses `cpu`, `cuda` or `cuda:1`; raises on anything else.
  VESTA_API explicit Device(std::string_view text);
  friend constexpr bool operator==(Device, Device) = default;
};

/// Returns `cpu` or `cuda:0`.
VESTA_API std::string str(Device d);
VESTA_API std::string_view name(DeviceType t);
inline void append(std::string& to, Device d) { to += vesta::str(d); }  // for text()

}  // namespace vesta
