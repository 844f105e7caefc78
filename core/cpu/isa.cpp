#include <vesta/core/cpu/isa.h>

#include <algorithm>
#include <cstdlib>

#if defined(VESTA_AVX512_AMX)
#include <cpuid.h>
#endif

namespace vesta::cpu {
namespace {

constexpr std::string_view kIsaNames[] = {"baseline", "avx2", "avx512", "avx512_bf16", "avx512_amx"};

#if defined(VESTA_AVX512_AMX)
// GCC 12 does not know these by name in __builtin_cpu_supports.
bool has_tiles() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d >> 22 & 1) != 0 && (d >> 24 & 1) != 0;  // AMX-BF16, AMX-TILE
}
#endif

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
#if defined(VESTA_AVX512_AMX)
  if (best == Isa::avx512_bf16 && has_tiles()) best = Isa::avx512_amx;
#endif
#endif
  if (const char* wish = std::getenv("VESTA_ISA")) {
    for (int i = 0; i < 5; ++i) {
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
