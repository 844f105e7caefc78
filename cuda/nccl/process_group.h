// The NCCL backend of process groups ("nccl").
#pragma once
#include <vesta/multiprocessing/process_group.h>

namespace vesta::cuda::nccl {

/// Makes a group of backend "nccl"; all its tensors are on CUDA devices, one per process.
ProcessGroupPtr new_group(std::shared_ptr<Store> store, int rank, int size, const GroupOptions& options);

}  // namespace vesta::cuda::nccl
