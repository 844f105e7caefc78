// Fused optimizer steps over lists of tensors: one parallel region for all of them.
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/optim_call.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/optim_kernels.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>

VESTA_DECLARE_ON_ISA(void register_optim_kernels(vesta::cpu::OptimKernels (&)[vesta::kNumDTypes]))

namespace vesta::cpu {
namespace {

OptimKernels optim[kNumDTypes];

constexpr int64_t kStepGrain = 65536;  // elements that a thread takes at a time: 30 us of Adam
/// Elements to which a tensor's position among all is rounded up: pieces begin at whole vectors.
constexpr int64_t kPlace = 64;

/// A parameter in the loop over all: its memory, its kernel, and where its elements stand among those of all.
struct Run {
  char* at[2 + kMaxStates];
  OptimKernels::StepKernel kernel;
  double counted[kMaxCounted];
  int64_t begin, numel;
  int item;
};

/// Runs the elements [begin, end) of all tensors, laid one after the other.
void run_piece(const std::vector<Run>& runs, const void* numbers, int num_states, int64_t begin, int64_t end) {
  auto run =
      std::upper_bound(runs.begin(), runs.end(), begin, [](int64_t at, const Run& r) { return at < r.begin; }) - 1;
  for (; run != runs.end() && run->begin < end; ++run) {
    const int64_t from = std::max<int64_t>(begin - run->begin, 0), to = std::min(end - run->begin, run->numel);
    if (from >= to) continue;  // between tensors
    char* at[2 + kMaxStates];
    for (int k = 0; k < 2 + num_states; ++k) at[k] = run->at[k] ? run->at[k] + from * run->item : nullptr;
    run->kernel(at, to - from, numbers, run->counted);
  }
}

/// Steps parameters that do not overlap in memory, in one loop.
template <StepKind kind, class Step>
void run_lists(const StepLists& lists, const Step& step) {
  const size_t n = lists.params.size();
  std::vector<Run> runs(n);
  std::vector<CountedStep<Step>> counted(n);
  InOrder memory(lists.op);
  int64_t total = 0;
  for (size_t i = 0; i < n; ++i) {
    const Tensor& p = lists.params[i];
    Run& r = runs[i];
    r.at[0] = memory.write(p, p), r.at[1] = const_cast<char*>(memory.read(lists.grads[i], p));
    for (int k = 0; k < lists.num_states; ++k) {
      r.at[2 + k] = lists.used[k] ? memory.write(lists.states[k][i], p) : nullptr;
    }
    r.kernel = optim_kernels(p.dtype()).steps[int(kind)];
    counted[i] = count_step(lists, step, i, counted[i > 0 ? i - 1 : 0]);
    std::memcpy(r.counted, &counted[i].numbers, sizeof counted[i].numbers);
    r.begin = total, r.numel = p.numel(), r.item = int(itemsize(p.dtype()));
    total += (r.numel + kPlace - 1) / kPlace * kPlace;
  }
  parallel_for(total, kStepGrain,
               [&](int64_t begin, int64_t end) { run_piece(runs, &step, lists.num_states, begin, end); });
  memory.finish();
  for (size_t i = 0; i < n; ++i) keep_count(lists, i, counted[i]);
  lists.bump();
}

template <StepKind kind, class Step, class... A>
void step_kernel(A... a) {
  const auto [lists, step] = step_call<Step>(step_name(kind), a...);
  for_independent(lists, [&step = step](const StepLists& some) { run_lists<kind>(some, step); });
}

template <StepKind kind, class Step, class... A>
void enter(Op<void(A...)>& op) {
  op.set_kernel(DeviceType::cpu, &step_kernel<kind, Step, A...>);
}

}  // namespace

const OptimKernels& optim_kernels(DType d) {
  VESTA_CHECK(is_float(d), type, "expected a floating-point dtype, got ", d, ".");
  return optim[int(d)];
}

void register_optim() {
  VESTA_ON_AVX2_AT_MOST(register_optim_kernels, optim);
#define VESTA_ENTER_STEP(op, Step) enter<StepKind::op, Step>(ops::op);
  VESTA_OPTIMIZER_STEPS(VESTA_ENTER_STEP)
#undef VESTA_ENTER_STEP
}

}  // namespace vesta::cpu
