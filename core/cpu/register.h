// Registers the CPU with core: its backend, and its kernels topic by topic. vesta::initialize() calls this once.
#pragma once

#include <vesta/core/kernel_topics.h>

namespace vesta::cpu {

void register_backend();
#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##cpu(void register_##topic();)
VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X

/// Registers the kernels of every topic.
inline void register_all() {
#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##cpu(register_##topic();)
  VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::cpu
