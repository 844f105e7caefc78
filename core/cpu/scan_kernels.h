// The interface between running sums and products and their kernels.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>

namespace vesta::cpu {

/// The most lines that a kernel scans side by side.
inline constexpr int kScanBeside = 1024;

/// Neighbouring lines to be scanned: their first elements are `across` apart, the elements of a line `next`. One of the
/// two steps is 1.
struct ScanLines {
  const void* x;
  void* y;
  std::int64_t length, next, lines, across;
  bool non_temporal = false;  // whether the results bypass the caches, which could not hold them
};
using ScanKernel = void (*)(const ScanLines&);

/// The kernels of one instruction set: sums and products of float, double and int64.
struct ScanKernels {
  ScanKernel of_float[2], of_double[2], of_int64[2];
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_scan_kernels(vesta::cpu::ScanKernels& kernels))
