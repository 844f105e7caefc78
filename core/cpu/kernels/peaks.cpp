// The loop that measures how fast the machine multiplies and adds.
#include <vesta/core/cpu/peaks.h>
#include <vesta/core/cpu/simd.h>

namespace vesta::cpu::VESTA_ISA_NS {

void multiply_and_add(std::int64_t rounds, float* result) {
  // Enough chains to hide the latency of 4 cycles with two units, few enough for the registers of every set.
  constexpr int kChains = 10;
  using V = Vec<float>;
  const std::int64_t turns = rounds * 16 / V::N;
  V sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = V(float(i));
  const V a(0.999f), b(0.001f);
  for (std::int64_t t = 0; t < turns; ++t) {
#pragma GCC unroll 10
    for (int i = 0; i < kChains; ++i) sum[i] = mul_add(sum[i], a, b);
  }
  float total = 0;
  for (int i = 0; i < kChains; ++i) {
    for (int j = 0; j < V::N; ++j) total += sum[i][j];
  }
  *result = total;
}

}  // namespace vesta::cpu::VESTA_ISA_NS
