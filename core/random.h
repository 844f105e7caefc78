// Random numbers: a generator is a seed and a count of the streams it has given out. See core/base/philox.h.
#pragma once
#include <cstdint>
#include <mutex>

#include <vesta/core/tensor.h>

namespace vesta {

/// A stream of Philox 4x32-10: the number of element i depends on seed, offset and i alone.
struct RandomStream {
  uint64_t seed, offset;
};

/// A source of streams: every random op takes one. Thread-safe.
class VESTA_API Generator {
 public:
  static constexpr uint64_t kDefaultSeed = 67280421310721;  // PyTorch's
  /// Makes a generator that gives the streams of `seed` from number `first` on.
  explicit Generator(uint64_t seed = kDefaultSeed, Device device = {}, uint64_t first = 0)
      : seed_(seed), offset_(first), device_(device) {}
  Generator(const Generator&) = delete;

  /// Returns the device whose ops may use it. The numbers are the same on every device.
  Device device() const { return device_; }
  /// Restarts from `seed`.
  void manual_seed(uint64_t seed);
  /// Reseeds from the system's source of randomness and returns the seed.
  uint64_t seed();
  /// Returns the seed in use.
  uint64_t initial_seed() const;
  /// Returns the next stream.
  RandomStream next();
  /// Returns the state as uint8 [24]: a format number, the seed and the count of streams, little-endian integers.
  Tensor get_state() const;
  /// Continues from a state of get_state(); raises on anything else.
  void set_state(const Tensor& state);

 private:
  mutable std::mutex mutex_;
  uint64_t seed_, offset_;
  const Device device_;
};

/// Returns the generator that ops on the CPU use if none is given.
VESTA_API Generator& default_generator();
/// Returns the generator that ops on a device use if none is given: one per device, seeded by manual_seed().
VESTA_API Generator& default_generator(Device device);
/// Seeds the default generators of all devices, also those first used later; returns the CPU's.
VESTA_API Generator& manual_seed(uint64_t seed);
/// Returns the next stream of `generator`, or of the device's default generator if it is null. Error(runtime) for a
/// generator of another device.
VESTA_API RandomStream next_stream(Generator* generator, Device device, const char* op);

}  // namespace vesta
