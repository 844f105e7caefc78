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
    type = DeviceType(t);
    if (colon == std::string_view::npos) {
      index = type == DeviceType::cuda ? int8_t(-1) : int8_t(0);
      return;
    }
    int value = -1;
    auto digits = s.substr(colon + 1);
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    VESTA_CHECK(error == std::errc() && end == digits.data() + digits.size() && value >= 0 && value < 128 &&
                    (type == DeviceType::cuda || type == DeviceType::third_party || value == 0),
                value, "device: expected an index such as cuda:0, got '", s, "'.");
    index = int8_t(value);
    return;
  }
  fail(Cause::value, "device: expected cpu, cuda or meta, got '", s, "'.");
}

std::string str(Device d) {
  std::string s(kNames[int(d.type)]);
  if (d.type == DeviceType::cpu || d.type == DeviceType::meta || d.index < 0) return s;
  return s + ":" + std::to_string(d.index);
}

}  // namespace vesta
