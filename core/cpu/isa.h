// The instruction set in use: chosen once, at start-up.
#pragma once
#include <cstdint>
#include <string_view>

#include <vesta/core/base/macros.h>

namespace vesta::cpu {

/// The instruction sets that kernels are compiled for, in ascending order. Only products of bfloat16 exist for
/// avx512_bf16 and avx512_amx (kernels/avx512_bf16, kernels/avx512_amx); everything else there is avx512's.
enum class Isa : uint8_t { baseline, avx2, avx512, avx512_bf16, avx512_amx };

/// Returns the best instruction set of this machine, or a lower one if the environment says VESTA_ISA=baseline, avx2,
/// avx512 or avx512_bf16.
VESTA_API Isa isa();
/// Returns its name as in the build: baseline, avx2, avx512, avx512_bf16, avx512_amx.
VESTA_API std::string_view name(Isa i);

}  // namespace vesta::cpu

/// Calls `function(arguments)` of the namespace that belongs to the instruction set in use.
#if defined(__x86_64__)
#define VESTA_ON_ISA(function, ...)                                                      \
  do {                                                                                   \
    switch (::vesta::cpu::isa()) {                                                       \
      case ::vesta::cpu::Isa::avx512_amx:                                                \
      case ::vesta::cpu::Isa::avx512_bf16:                                               \
      case ::vesta::cpu::Isa::avx512: ::vesta::cpu::avx512::function(__VA_ARGS__); break; \
      case ::vesta::cpu::Isa::avx2: ::vesta::cpu::avx2::function(__VA_ARGS__); break;     \
      default: ::vesta::cpu::baseline::function(__VA_ARGS__);                            \
    }                                                                                    \
  } while (0)
/// Calls the function as VESTA_ON_ISA does, AVX2's version at most: wider vectors add nothing to memory-bound code.
#define VESTA_ON_AVX2_AT_MOST(function, ...)                                             \
  do {                                                                                   \
    if (::vesta::cpu::isa() >= ::vesta::cpu::Isa::avx2) ::vesta::cpu::avx2::function(__VA_ARGS__); \
    else ::vesta::cpu::baseline::function(__VA_ARGS__);                                  \
  } while (0)
/// Calls a function that fills a table: AVX2's version, then AVX-512's, which replaces the entries that it has.
#define VESTA_ON_ISA_OVER_AVX2(function, ...)                                            \
  do {                                                                                   \
    VESTA_ON_AVX2_AT_MOST(function, __VA_ARGS__);                                        \
    if (::vesta::cpu::isa() >= ::vesta::cpu::Isa::avx512) ::vesta::cpu::avx512::function(__VA_ARGS__); \
  } while (0)
/// Declares `signature` in the namespace of every instruction set.
#define VESTA_DECLARE_ON_ISA(...)                  \
  namespace vesta::cpu::baseline { __VA_ARGS__; }  \
  namespace vesta::cpu::avx2 { __VA_ARGS__; }      \
  namespace vesta::cpu::avx512 { __VA_ARGS__; }
#else
#define VESTA_ON_ISA(function, ...) ::vesta::cpu::baseline::function(__VA_ARGS__)
#define VESTA_ON_AVX2_AT_MOST VESTA_ON_ISA
#define VESTA_ON_ISA_OVER_AVX2 VESTA_ON_ISA
#define VESTA_DECLARE_ON_ISA(...) namespace vesta::cpu::baseline { __VA_ARGS__; }
#endif
