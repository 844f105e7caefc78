// NCCL, opened on first use, and the meaning of its results.
#pragma once
#include <string>

#include <vesta/cuda/nccl/nccl_abi.h>
#include <vesta/multiprocessing/distributed_error.h>

namespace vesta::cuda::nccl {

/// Returns the functions; Error(runtime) with the reason if there is no usable library.
const Functions& functions();
/// Returns why NCCL cannot be used; empty if it can.
std::string problem();
/// Returns NCCL's version in its own numbering: 22809 for 2.28.9; 0 if there is none.
int version();
/// Returns the meaning of a failed call: `ncclAllReduce: unhandled cuda error (1): ...`.
std::string describe(Result r, const char* call, Comm comm);
/// Raises DistributedError unless the call succeeded or is still in progress.
void check(Result r, const char* call, Comm comm = nullptr);

}  // namespace vesta::cuda::nccl
