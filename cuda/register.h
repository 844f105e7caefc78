// Registers CUDA with core: its backend, and its kernels topic by topic. Called once, when core has loaded this
// library.
#pragma once

namespace vesta::cuda {

void register_pointwise();
void register_matmul();
void register_conv();
void register_pool();
void register_resample();
void register_grid_sample();
void register_reductions();
void register_scan();
void register_softmax();
void register_sort();
void register_loss();
void register_norm();
void register_row_norm();
void register_recurrence();
void register_group_norm();
void register_factory();
void register_index();
void register_cat();
void register_triangle();
void register_optim();
void register_random();
void register_amp();
void register_attention();
void register_host();
void register_linalg();
void register_nccl();

/// Registers the kernels of every topic; a new topic is a declaration above and a line in backend.cpp.
void register_all();

}  // namespace vesta::cuda
