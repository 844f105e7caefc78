// Division and rounding of sizes upwards. Internal to the CPU's kernels and their drivers.
#pragma once
#include <cstdint>

namespace vesta::cpu {

/// Returns a / b rounded up, for a >= 0 and b > 0.
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// Returns the least multiple of b that is not below a.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t b) { return ceil_div(a, b) * b; }

}  // namespace vesta::cpu
