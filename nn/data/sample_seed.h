// The seeds of a sample's random numbers: a function of the pass and the sample's position in it, so that they depend
// neither on threads or processes nor on what came before.
#pragma once
#include <cstdint>

namespace vesta::data {

/// The odd number whose multiples mixed() scatters best: 2^64 divided by the golden ratio.
inline constexpr uint64_t kGolden = 0x9E3779B97F4A7C15u;

/// Mixes 64 bits (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
inline uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// The generators that a sample may draw from: Python's module `random`, NumPy's, and this library's.
enum class SampleStream : uint64_t { python = 1, numpy = 2, vesta = 3 };

/// Returns the seed of a generator for the sample at `position` of the pass that has the seed `base`.
inline uint64_t sample_seed(uint64_t base, uint64_t position, SampleStream stream) {
  return mixed(mixed(base + kGolden * uint64_t(stream)) + kGolden * (position + 1));
}

}  // namespace vesta::data
