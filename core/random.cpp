#include <vesta/core/random.h>

#include <atomic>
#include <cstring>
#include <random>

#include <vesta/core/backend.h>

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
                  state.is_contiguous() && state.device().type() == DeviceType::cpu,
              type, "set_state: expected a contiguous uint8 tensor of ", sizeof words, " elements on the CPU (state).");
  std::memcpy(words, state.data_ptr(), sizeof words);
  VESTA_CHECK(words[0] == kFormat, value, "set_state: expected a state of get_state(), got other bytes (state).");
  std::lock_guard lock(mutex_);
  seed_ = words[1], offset_ = words[2];
}

namespace {

constexpr int kMaxNumbers = 64;  // devices of a type that get a default generator

/// The default generators. They are made on first use and never destroyed: threads may draw while the process ends.
struct Defaults {
  std::mutex mutex;
  uint64_t seed = Generator::kDefaultSeed;
  std::atomic<Generator*> made[kNumDeviceTypes][kMaxNumbers] = {};
};
Defaults& defaults() {
  static auto* d = new Defaults;
  return *d;
}

}  // namespace

Generator& default_generator() { return default_generator(Device()); }

Generator& default_generator(Device device) {
  device = resolved(device);
  VESTA_CHECK(device.index() >= 0 && device.index() < kMaxNumbers, device, "default_generator: expected a device, got ",
              device, ".");
  Defaults& d = defaults();
  std::atomic<Generator*>& slot = d.made[int(device.type())][device.index()];
  if (Generator* g = slot.load(std::memory_order_acquire)) [[likely]]
    return *g;
  std::lock_guard lock(d.mutex);
  if (!slot.load(std::memory_order_relaxed)) slot.store(new Generator(d.seed, device), std::memory_order_release);
  return *slot.load(std::memory_order_relaxed);
}

Generator& manual_seed(uint64_t seed) {
  Generator& own = default_generator();
  Defaults& d = defaults();
  std::lock_guard lock(d.mutex);
  d.seed = seed;
  for (auto& type : d.made) {
    for (auto& slot : type) {
      if (Generator* g = slot.load(std::memory_order_relaxed)) g->manual_seed(seed);
    }
  }
  return own;
}

RandomStream next_stream(Generator* generator, Device device, const char* op) {
  if (!generator) return default_generator(device).next();
  VESTA_CHECK(generator->device() == resolved(device), runtime, op, ": expected a generator of the tensor's device ",
              device, ", got one of ", generator->device(), " (generator). Make it with Generator(device=\"", device,
              "\").");
  return generator->next();
}

}  // namespace vesta
