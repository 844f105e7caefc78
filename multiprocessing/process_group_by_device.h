// A group per type of device behind one interface: "cpu:gloo,cuda:nccl". Internal to multiprocessing.
#pragma once
#include <vesta/multiprocessing/process_group.h>

namespace vesta {

/// Makes groups of several backends that share a name and a store; a call goes to that of its tensors' device, one
/// without tensors to the first. `backends` is a list of `device:backend` by commas.
ProcessGroupPtr new_group_by_device(const std::string& backends, std::shared_ptr<Store> store, int rank, int size,
                                    const GroupOptions& options);

}  // namespace vesta
