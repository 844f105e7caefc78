// The functions that register_autograd() calls: one per topic, which registers its rules.
#pragma once

#include <vesta/core/kernel_topics.h>

namespace vesta::autograd::rules {

#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##rules(void register_##topic();)
VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X

/// Enters the rules of every topic.
inline void register_all() {
#define VESTA_X(topic, cpu, meta, cuda, rules) VESTA_IF_##rules(register_##topic();)
  VESTA_KERNEL_TOPICS(VESTA_X)
#undef VESTA_X
}

}  // namespace vesta::autograd::rules
