// The peak rates of this machine, with which profiles are compared.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/dispatch/profiler.h>

/// Does rounds * kPeakOperations multiplications and additions that wait for no memory; writes one number.
VESTA_DECLARE_ON_ISA(void multiply_and_add(std::int64_t rounds, float* result))

namespace vesta::cpu {

/// Measures the peaks with as many threads as ops use, in about 0.2 s where they all run.
profiler::Peaks measure_peaks();

}  // namespace vesta::cpu
