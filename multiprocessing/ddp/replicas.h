// Functions that make the ranks' models replicas of each other: the same parameters by name, shape and order, the same
// values.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include <vesta/multiprocessing/process_group.h>

namespace vesta::ddp {

/// The bytes broadcast at once, as in PyTorch.
constexpr int64_t kBroadcastBytes = int64_t(250) << 20;

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

/// Raises on every rank, with the same message, unless all ranks have the same tensors: names, order, shapes, strides,
/// dtypes and whether they require grad. `kind` names them in errors ("parameter"); the group communicates through
/// tensors on `device`.
VESTA_API void verify_replicas(ProcessGroup& group, const NamedTensors& tensors, const std::string& kind,
                               Device device);

/// Gives all ranks the values of rank `source`; tensors are sent together, at most `bytes` at once.
VESTA_API void broadcast_tensors(ProcessGroup& group, const std::vector<Tensor>& tensors, int source,
                                 int64_t bytes = kBroadcastBytes);

/// Does the same for buffers, before every forward. A buffer that has rank `source`'s value already is not written, so
/// that a backward which has saved it still runs; if a saved buffer changes, that backward raises.
VESTA_API void refresh_tensors(ProcessGroup& group, const std::vector<Tensor>& tensors, int source);

}  // namespace vesta::ddp
