#include <vesta/core/cpu/isa.h>

#include <algorithm>
#include <cstdlib>

namespace vesta::cpu {
namespace {

constexpr std::string_view kIsaNames[] = {"baseline", "avx2", "avx512", "avx512_bf16"};

Isa detect() {
  Isa best = Isa::baseline;
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) best = Isa::avx2;  // such CPUs all have F16C
  if (best == Isa::avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
    best = Isa::avx512;
  }
#if defined(VESTA_AVX512_BF16)  // the compiler knows it
  if (best == Isa::avx512 && __builtin_cpu_supports("avx512bf16")) best = Isa::avx512_bf16;
#endif
#endif
  if (const char* wish = std::getenv("VESTA_ISA")) {
    for (int i = 0; i < 4; ++i) {
      if (kIsaNames[i] == wish) best = std::min(best, Isa(i));
    }
  }
  return best;
}

}  // namespace

Isa isa() {
  static const Isa chosen = detect();
  return chosen;
}

std::string_view name(Isa i) { return kIsaNames[int(i)]; }

}  // namespace vesta::cpu
