// Registers every op of the op list with the profiler's recorder.
#include <array>

#include <vesta/core/dispatch/profiler.h>
#include <vesta/core/ops/attention.h>
#include <vesta/core/ops/norm_backward.h>
#include <vesta/core/ops/ops.h>
#include <vesta/core/ops/recurrence.h>
#include <vesta/core/ops/register.h>
#include <vesta/core/ops/ties.h>
#include <vesta/core/ops/topics.h>

namespace vesta {

#define VESTA_ADDRESS(kind, ...) VESTA_LINE_##kind(VESTA_ADDRESS, __VA_ARGS__)
#define VESTA_ADDRESS_POINTWISE(name, ...) &ops::name,
#define VESTA_ADDRESS_POINTWISE_PAIR(...) VESTA_ADDRESS_POINTWISE(__VA_ARGS__)
#define VESTA_ADDRESS_OP(R, object, ...) &ops::object,
#define VESTA_ADDRESS_OUT(...) VESTA_ADDRESS_OP(__VA_ARGS__)
#define VESTA_ADDRESS_TWIN(...) VESTA_ADDRESS_OP(__VA_ARGS__)
#define VESTA_ADDRESS_COPIED(source, ...) VESTA_ADDRESS_OP(__VA_ARGS__)
#define VESTA_ADDRESS_IN(space, R, name, ...) &ops::space##_##name,
#define VESTA_ADDRESS_FORM(...)
#define VESTA_ADDRESS_PYTHON_FORM(...)
#define VESTA_ADDRESS_ALIAS(...)
#define VESTA_TOPIC_ADDRESSES(topic, LIST) LIST(VESTA_ADDRESS)

void register_profiled_ops() {
  static OpBase* const all[] = {VESTA_TOPICS(VESTA_TOPIC_ADDRESSES) VESTA_PRIVATE_LISTS(VESTA_TOPIC_ADDRESSES)};
  profiler::add_ops(all);
}

}  // namespace vesta
