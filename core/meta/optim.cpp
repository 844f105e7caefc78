// Fused optimizer steps: checks, the counts of steps, and that of versions.
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/optim_call.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

template <StepKind kind, class Step, class... A>
void step_kernel(A... a) {
  const auto [lists, step] = step_call<Step>(step_name(kind), a...);
  lists.check_devices(DeviceType::meta);
  for (size_t i = 0; i < lists.params.size(); ++i) keep_count(lists, i, count_step(lists, step, i));
  lists.bump();
}

template <StepKind kind, class Step, class... A>
void enter(Op<void(A...)>& op) {
  op.set_kernel(DeviceType::meta, &step_kernel<kind, Step, A...>);
}

}  // namespace

void register_optim() {
#define VESTA_ENTER_STEP(op, Step) enter<StepKind::op, Step>(ops::op);
  VESTA_OPTIMIZER_STEPS(VESTA_ENTER_STEP)
#undef VESTA_ENTER_STEP
}

}  // namespace vesta::meta
