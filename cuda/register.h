// Registers CUDA with core: its backend, and its kernels topic by topic. Called once, when core has loaded this
// library.
#pragma once

#include <vesta/core/kernel_topics.h>

namespace vesta::cuda {

#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##cuda(void register_##topic();)
VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X

/// Registers the kernels of every topic, and the backend.
void register_all();

}  // namespace vesta::cuda
