#include <vesta/core/random.h>

#include <cstring>
#include <random>

namespace vesta {
namespace {
constexpr uint64_t kFormat = 0x31584C4948505456;  // "VTPHILX1"
}

void Generator::manual_seed(uint64_t seed) {
  std::lock_guard lock(mutex_);
  seed_ = seed, offset_ = 0;
}

uint64_t Generator::seed() {
  std::random_device source;
  uint64_t seed = uint64_t(source()) << 32 | source();
  manual_seed(seed);
  return seed;
}

uint64_t Generator::initial_seed() const {
  std::lock_guard lock(mutex_);
  return seed_;
}

RandomStream Generator::next() {
  std::lock_guard lock(mutex_);
  return {seed_, offset_++};
}

Tensor Generator::get_state() const {
  std::lock_guard lock(mutex_);
  uint64_t words[] = {kFormat, seed_, offset_};
  Tensor t = empty_tensor({{int64_t(sizeof words)}}, DType::uint8);
  std::memcpy(t.data_ptr(), words, sizeof words);
  return t;
}

void Generator::set_state(const Tensor& state) {
  uint64_t words[3];
  VESTA_CHECK(state.defined() && state.dtype() == DType::uint8 && state.numel() == int64_t(sizeof words) &&
                  state.is_contiguous() && state.device().type == DeviceType::cpu,
              type, "set_state: expected a contiguous uint8 tensor of ", sizeof words, " elements on the CPU (state).");
  std::memcpy(words, state.data_ptr(), sizeof words);
  VESTA_CHECK(words[0] == kFormat, value, "set_state: expected a state of get_state(), got other bytes (state).");
  std::lock_guard lock(mutex_);
  seed_ = words[1], offset_ = words[2];
}

Generator& default_generator() {
  static Generator* g = new Generator;  // never destroyed: threads may draw while the process ends
  return *g;
}

Generator& manual_seed(uint64_t seed) {
  default_generator().manual_seed(seed);
  return default_generator();
}

}  // namespace vesta
