// Enters into the Op objects what is the same on every device: ops made of geometry, of allocation, or of the device's
// Backend port alone. Called once, by vesta::initialize().
#pragma once

namespace vesta {

void register_view_ops();
void register_copy_ops();
void register_factory_ops();
void register_index_ops();
void register_resample_ops();
void register_sparse_ops();
void register_profiled_ops();

/// Registers all of the above.
inline void register_ops() {
  register_view_ops();
  register_copy_ops();
  register_factory_ops();
  register_index_ops();
  register_resample_ops();
  register_sparse_ops();
  register_profiled_ops();
}

}  // namespace vesta
