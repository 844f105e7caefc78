#include <vesta/core/device.h>

#include <charconv>

namespace vesta {
namespace { constexpr std::string_view kNames[] = {"cpu", "cuda", "meta", "third_party"}; }

std::string_view name(DeviceType t) { return kNames[int(t)]; }

Device::Device(std::string_view s) {
  auto colon = s.find(':');
  std::string_view kind = s.substr(0, colon);
  for (int t = 0; t < kNumDeviceTypes; ++t) {
    if (kind != kNames[t]) continue;
    type_ = DeviceType(t);
    if (colon == std::string_view::npos) {
      index_ = type_ == DeviceType::cuda ? int8_t(-1) : int8_t(0);
      return;
    }
    int value = -1;
    auto digits = s.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    VESTA_CHECK(error == std::errc() && end == digits.data() + digits.size() && value >= 0 && value < 128 &&
                    (type_ != DeviceType::meta || value == 0),
                value, "device: expected an index such as cuda:0, got '", s, "'.");
    index_ = type_ == DeviceType::cpu ? int8_t(0) : int8_t(value);  // there is one CPU, whatever its number
    return;
  }
  fail(Cause::value, "device: expected cpu, cuda or meta, got '", s, "'.");
}

std::string Device::str() const {
  std::string s(kNames[int(type_)]);
  if (type_ == DeviceType::cpu || type_ == DeviceType::meta || index_ < 0) return s;
  return s + ":" + std::to_string(index_);
}

}  // namespace vesta
