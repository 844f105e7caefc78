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
class Device {
 public:
  constexpr Device() = default;
  constexpr Device(DeviceType type, int8_t index = 0) : type_(type), index_(index) {}
  /// Parses `cpu`, `cuda` or `cuda:1`; raises on anything else.
  VESTA_API explicit Device(std::string_view text);
  constexpr DeviceType type() const { return type_; }
  /// Returns the number of the device, -1 for the current one.
  constexpr int8_t index() const { return index_; }
  constexpr bool is_cpu() const { return type_ == DeviceType::cpu; }
  constexpr bool is_cuda() const { return type_ == DeviceType::cuda; }
  constexpr bool is_meta() const { return type_ == DeviceType::meta; }
  constexpr bool has_index() const { return index_ >= 0; }
  /// Returns `cpu` or `cuda:0`.
  VESTA_API std::string str() const;
  friend constexpr bool operator==(Device, Device) = default;

 private:
  DeviceType type_ = DeviceType::cpu;
  int8_t index_ = 0;
};

inline std::string str(Device d) { return d.str(); }
VESTA_API std::string_view name(DeviceType t);
inline void append(std::string& to, Device d) { to += vesta::str(d); }  // for text()

}  // namespace vesta
