// NCCL, opened when first needed, and what its answers mean.
#pragma once
#include <string>

#include <vesta/cuda/nccl/nccl_abi.h>
#include <vesta/multiprocessing/distributed_error.h>

namespace vesta::cuda::nccl {

/// Returns the functions; Error(runtime) with the reason where there is no usable library.
const Functions& functions();
/// Says why NCCL cannot be used; empty where it can.
std::string problem();
/// Returns NCCL's version as it counts: 22809 for 2.28.9; 0 where there is none.
int version();
/// Says what a failed call means: `ncclAllReduce: unhandled cuda error (1): ...`.
std::string describe(Result r, const char* call, Comm comm);
/// Raises DistributedError unless the call went well or goes on by itself.
void check(Result r, const char* call, Comm comm = nullptr);

}  // namespace vesta::cuda::nccl
