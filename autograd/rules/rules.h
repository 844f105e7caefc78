// The functions that register_autograd() calls: one per topic, which registers its rules.
#pragma once

namespace vesta::autograd::rules {

void register_pointwise();
void register_reduce();
void register_view();
void register_copy();
void register_index();
void register_random();
void register_matmul();
void register_linalg();
void register_distance();
void register_fft();
void register_conv();
void register_pool();
void register_resample();
void register_softmax();
void register_sort();
void register_loss();
void register_norm();
void register_optim();
void register_sequence();
void register_recurrence();
void register_attention();
void register_sparse();

}  // namespace vesta::autograd::rules
