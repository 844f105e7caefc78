// What a test program whose files are compiled for one instruction set asks first. (-DVESTA_ISA=... names it here, too,
// but this file is compiled with the compiler's baseline flags.) On a CPU without that set the program ends with status
// 77, "skipped", before any other initialiser of the program can run an instruction that the CPU lacks.
#include <vesta/core/base/macros.h>

#include <cstdio>
#include <cstring>
#include <unistd.h>

#define VESTA_TEXT_OF(x) #x
#define VESTA_TEXT(x) VESTA_TEXT_OF(x)

namespace {

bool cpu_can_run(const char* isa) {
  __builtin_cpu_init();
  if (std::strcmp(isa, "avx2") == 0) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  }
  if (std::strcmp(isa, "avx512") == 0) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  }
  return std::strcmp(isa, "baseline") == 0;
}

__attribute__((constructor(101))) void skip_unless_supported() {
  if (cpu_can_run(VESTA_TEXT(VESTA_ISA))) return;
  std::fputs("skipped: this CPU has no " VESTA_TEXT(VESTA_ISA) "\n", stderr);
  _exit(77);
}

}  // namespace
