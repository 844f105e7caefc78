// Threads of the CPU's kernels, beside what guards.h has.
#pragma once
#include <torch/guards.h>

namespace vesta::cpu {
VESTA_API int num_threads();
VESTA_API void set_num_threads(int n);
}  // namespace vesta::cpu

namespace torch {
inline int get_num_threads() { return vesta::cpu::num_threads(); }
inline void set_num_threads(int n) { vesta::cpu::set_num_threads(n); }
inline void init_num_threads() {}
/// Returns 1: ops do not run beside each other on the CPU.
inline int get_num_interop_threads() { return 1; }
inline void set_num_interop_threads(int) {}
}  // namespace torch
