// Fused optimizer steps on the device: parameters are grouped by device and dtype, with one launch per few hundred.
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/optim_call.h>

#include <cstring>
#include <vector>

#include <vesta/cuda/kernels/optim.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// A launch being built: entries of one device and dtype.
struct Group {
  Device device;
  DType dtype;
  std::vector<OptimEntry> entries;
  std::vector<Tensor> kept;  // numbers that are counted on the device
  std::vector<size_t> counted;  // entries whose number of steps lies on the device
  std::vector<float*> steps;
};

/// Finds the group of parameter p that has room, or starts one.
Group& group_of(std::vector<Group>& groups, const Tensor& p) {
  for (Group& g : groups) {
    if (g.device == p.device() && g.dtype == p.dtype() && g.entries.size() < size_t(kOptimEntries)) return g;
  }
  groups.push_back({p.device(), p.dtype(), {}, {}, {}, {}});
  return groups.back();
}

/// Raises unless all lies on CUDA devices, and each number of steps there or on the CPU.
void check_devices(const StepLists& l) {
  l.check_devices(DeviceType::cuda);
  for (size_t i = 0; i < l.steps.size(); ++i) {
    const Device d = l.steps[i].device();
    VESTA_CHECK(d.type() == DeviceType::cpu || (d == l.params[i].device() && l.num_scalars == 0), device, l.op,
                ": expected state_steps[", i, "] on the CPU", l.num_scalars ? "" : " or with the parameter", ", got ",
                d, ".");
  }
}

/// Queues the counting of steps that lie on the device; the group's entries read the numbers computed from them.
void count_on_device(Group& g, StepKind kind, const void* numbers, StreamHandle stream) {
  if (g.counted.empty()) return;
  Tensor counted = empty_tensor({{int64_t(g.counted.size()), kMaxCounted}}, DType::float64, g.device);
  StepCounts c{};
  c.counted = static_cast<double*>(counted.data_ptr());
  c.n = int(g.counted.size());
  for (size_t k = 0; k < g.counted.size(); ++k) {
    c.steps[k] = g.steps[k];
    g.entries[g.counted[k]].counted_here = c.counted + kMaxCounted * k;
  }
  run_counts(kind, c, numbers, stream);
  g.kept.push_back(counted);
}

/// Queues the steps of parameters that do not overlap in memory.
template <StepKind kind, class Step>
void run_lists(const StepLists& lists, const Step& step) {
  const size_t n = lists.params.size();
  std::vector<Group> groups;
  std::vector<CountedStep<Step>> counted(n);
  InOrder memory(lists.op);
  for (size_t i = 0; i < n; ++i) {
    const Tensor& p = lists.params[i];
    Group& group = group_of(groups, p);
    DeviceGuard guard(p.device().index());
    OptimEntry e;
    e.p = memory.write(p, p), e.g = memory.read(lists.grads[i], p), e.numel = p.numel();
    for (int k = 0; k < lists.num_states; ++k) {
      if (lists.used[k]) e.states[k] = memory.write(lists.states[k][i], p);
    }
    if (lists.counts && lists.steps[i].device().type() != DeviceType::cpu) {
      group.counted.push_back(group.entries.size());
      group.steps.push_back(static_cast<float*>(lists.steps[i].data_ptr()));
    } else {
      counted[i] = count_step(lists, step, i, counted[i > 0 ? i - 1 : 0]);
      std::memcpy(e.counted, &counted[i].numbers, sizeof counted[i].numbers);
    }
    group.entries.push_back(e);
  }
  for (Group& g : groups) {
    DeviceGuard guard(g.device.index());
    const StreamHandle stream = current_stream(g.device.index()).handle();
    count_on_device(g, kind, &step, stream);
    run_step(kind, g.entries.data(), int(g.entries.size()), g.dtype, &step, stream);
  }
  memory.finish();
  for (size_t i = 0; i < n; ++i) keep_count(lists, i, counted[i]);  // everything is queued: it counts
  lists.bump();
}

template <StepKind kind, class Step, class... A>
void step_kernel(A... a) {
  const auto [lists, step] = step_call<Step>(step_name(kind), a...);
  check_devices(lists);
  for_independent(lists, [&step = step](const StepLists& some) { run_lists<kind>(some, step); });
}

template <StepKind kind, class Step, class... A>
void enter(Op<void(A...)>& op) {
  op.set_kernel(DeviceType::cuda, &step_kernel<kind, Step, A...>);
}

}  // namespace

void register_optim() {
#define VESTA_ENTER_STEP(op, Step) enter<StepKind::op, Step>(ops::op);
  VESTA_OPTIMIZER_STEPS(VESTA_ENTER_STEP)
#undef VESTA_ENTER_STEP
}

}  // namespace vesta::cuda
