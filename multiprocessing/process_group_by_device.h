// A group per type of device behind one interface: "cpu:gloo,cuda:nccl". Internal to multiprocessing.
#pragma once
#include <vesta/multiprocessing/process_group.h>

namespace vesta {

/// Makes groups of several backends that share a name and a store. A call goes to the group of its tensors' device, a
/// call without tensors to the first. `backends` is a comma-separated list of `device:backend`.
ProcessGroupPtr new_group_by_device(const std::string& backends, std::shared_ptr<Store> store, int rank, int size,
                                    const GroupOptions& options);

}  // namespace vesta
