// Elementwise reductions of all dtypes, for engines. Internal to multiprocessing.
#pragma once
#include <vesta/multiprocessing/host_engine.h>

namespace vesta {

/// Returns the function of an operator and a dtype. avg and premul_sum add. Error(type) if the dtype has no such
/// operator.
Reduction reduction(ReduceOp op, DType dtype);
/// Multiplies `n` values by a number, in place: premul_sum's factor, before the sum.
void multiply(void* data, size_t n, DType dtype, double factor);
/// Divides `n` values by a number, in place: avg's number of ranks, after the sum.
void divide(void* data, size_t n, DType dtype, double divisor);

}  // namespace vesta
