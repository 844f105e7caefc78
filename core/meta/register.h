// Registers the meta device with core: a backend without memory, and the shapes of the ops topic by topic.
// vesta::initialize() calls this once, after the CPU is registered.
#pragma once

#include <vesta/core/kernel_topics.h>

namespace vesta::meta {

void register_backend();
#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##meta(void register_##topic();)
VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X

/// Registers the shapes of every topic.
inline void register_all() {
#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##meta(register_##topic();)
  VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::meta
