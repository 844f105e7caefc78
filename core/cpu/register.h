// Registers the CPU with core: its backend, and its kernels topic by topic. vesta::initialize() calls this once.
#pragma once

namespace vesta::cpu {

void register_backend();
void register_pointwise();
void register_factories();
void register_reductions();
void register_scan();
void register_softmax();
void register_sort();
void register_optim();
void register_amp();
void register_matmul();
void register_linalg();
void register_fft();
void register_distance();
void register_conv();
void register_norm();
void register_pool();
void register_resample();
void register_grid_sample();
void register_flip();
void register_triangle();
void register_pad();
void register_indexing();
void register_mask();
void register_randoms();
void register_sequence();
void register_recurrence();
void register_attention();

/// Registers the kernels of every topic; a new topic is a declaration above and a line here.
inline void register_all() {
  register_pointwise();
  register_factories();
  register_reductions();
  register_scan();
  register_softmax();
  register_sort();
  register_optim();
  register_amp();
  register_matmul();
  register_linalg();
  register_fft();
  register_distance();
  register_conv();
  register_norm();
  register_pool();
  register_resample();
  register_grid_sample();
  register_flip();
  register_triangle();
  register_pad();
  register_indexing();
  register_mask();
  register_randoms();
  register_sequence();
  register_recurrence();
  register_attention();
}

}  // namespace vesta::cpu
