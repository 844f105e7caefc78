// A block takes 4096 elements of one entry and finds the entry by its own number. The formulas are the CPU's
// (core/ops/optim_step.h), and this file is compiled with -fmad=false: each sum and product is rounded by itself, so
// that both devices train to the same bits.
#include <vesta/cuda/kernels/optim.h>

#include <utility>

#include <vesta/cuda/kernels/entries.cuh>
#include <vesta/cuda/kernels/packs.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;
constexpr int kPack = 4, kPacks = 4;  // elements loaded at once, and how often
constexpr int64_t kChunk = int64_t(kThreads) * kPack * kPacks;

/// The entries of a launch. There are two capacities, because all of it is copied with every launch.
template <class Step, int capacity>
struct Entries {
  Step step;
  int n;
  OptimEntry at[capacity];
};

/// Loads up to four elements; `whole`: all four, at once.
template <class T, bool whole, class C>
VESTA_DEVICE void load(const char* base, int64_t i, int n, C (&to)[kPack]) {
  const T* p = reinterpret_cast<const T*>(base) + i;
  if constexpr (whole) {
    const auto pack = *reinterpret_cast<const Elements<T, kPack>*>(p);
    widen(pack, to);
  } else {
    VESTA_UNROLL
    for (int k = 0; k < kPack; ++k) to[k] = k < n ? convert<C>(p[k]) : C(0);
  }
}
template <class T, bool whole, class C>
VESTA_DEVICE void store(const C (&from)[kPack], char* base, int64_t i, int n) {
  T* p = reinterpret_cast<T*>(base) + i;
  if constexpr (whole) {
    store_whole(p, narrowed<T, kPack>(from));
  } else {
    VESTA_UNROLL
    for (int k = 0; k < kPack; ++k) {
      if (k < n) p[k] = convert<T>(from[k]);
    }
  }
}

/// Returns whether packs of an entry's operands are aligned.
template <class T>
VESTA_DEVICE bool aligned(const OptimEntry& e) {
  auto all = reinterpret_cast<uintptr_t>(e.p) | reinterpret_cast<uintptr_t>(e.g);
  for (const char* state : e.states) all |= reinterpret_cast<uintptr_t>(state);
  return all % alignof(Elements<T, kPack>) == 0;
}

/// Calls f.operator()<whole>(first element, how many) for the thread's packs of entry e.
template <class T, class F>
VESTA_DEVICE void for_packs(const OptimEntry& e, F f) {
  const int64_t begin = int64_t(blockIdx.x - e.first_block) * kChunk;
  if (begin + kChunk <= e.numel && aligned<T>(e)) {
    VESTA_ROLLED
    for (int k = 0; k < kPacks; ++k) {
      f.template operator()<true>(begin + (int64_t(k) * kThreads + threadIdx.x) * kPack, kPack);
    }
    return;
  }
  VESTA_ROLLED
  for (int k = 0; k < kPacks; ++k) {
    const int64_t i = begin + (int64_t(k) * kThreads + threadIdx.x) * kPack;
    if (i >= e.numel) return;
    f.template operator()<false>(i, e.numel - i < kPack ? int(e.numel - i) : kPack);
  }
}

/// Updates element k of a pack by the step's formula.
template <class Step, class C, size_t... s>
VESTA_DEVICE void update(const Step& step, int k, C (&x)[kPack], const C (&d)[kPack], C (&states)[sizeof...(s)][kPack],
                         const typename Step::Counted& counted, std::index_sequence<s...>) {
  step.update(x[k], d[k], states[s][k]..., counted);
}

template <class Step, class T, int capacity>
VESTA_KERNEL void step_kernel(VESTA_CONSTANT_ARGUMENT Entries<Step, capacity> a) {
  using C = compute_of<T>;
  constexpr int kStates = int(Step::states.size());
  const OptimEntry& e = a.at[entry_of(a.at, a.n, blockIdx.x)];
  const auto counted = *reinterpret_cast<const typename Step::Counted*>(e.counted_here ? e.counted_here : e.counted);
  for_packs<T>(e, [&]<bool whole>(int64_t i, int n) {
    C x[kPack], d[kPack], states[kStates][kPack] = {};
    load<T, whole>(e.p, i, n, x);
    load<T, whole>(e.g, i, n, d);
    VESTA_UNROLL
    for (int s = 0; s < kStates; ++s) {
      if (e.states[s]) load<T, whole>(e.states[s], i, n, states[s]);
    }
    VESTA_UNROLL
    for (int k = 0; k < kPack; ++k) update(a.step, k, x, d, states, counted, std::make_index_sequence<kStates>());
    VESTA_UNROLL
    for (int s = 0; s < kStates; ++s) {
      if (e.states[s]) store<T, whole>(states[s], e.states[s], i, n);
    }
    store<T, whole>(x, e.p, i, n);
  });
}

template <class Step>
VESTA_KERNEL void counts_kernel(VESTA_CONSTANT_ARGUMENT StepCounts c, Step step) {
  const unsigned i = global_index();
  if (i >= unsigned(c.n)) return;
  const float n = *c.steps[i] += 1;
  *reinterpret_cast<typename Step::Counted*>(c.counted + kMaxCounted * i) = step.count(double(n), nullptr);
}

/// Queues kernel(entries) over the blocks that the entries need.
template <class Step, int capacity>
void run_entries(const char* name, void (*kernel)(Entries<Step, capacity>), const OptimEntry* entries, int n,
                 const Step& step, StreamHandle stream) {
  static_assert(sizeof(Entries<Step, capacity>) <= 32764);  // what a kernel's arguments may take
  Entries<Step, capacity> a;
  a.step = step, a.n = n;
  uint64_t blocks = 0;
  for (int i = 0; i < n; ++i) {
    a.at[i] = entries[i];
    a.at[i].first_block = uint32_t(blocks);
    blocks += uint64_t((entries[i].numel + kChunk - 1) / kChunk);
  }
  if (blocks) launch_independent(name, kernel, linear_shape(blocks * kThreads, kThreads, stream), a);
}

constexpr int kFew = 32;

template <class Step>
void run(const char* name, const OptimEntry* entries, int n, DType dtype, const void* numbers, StreamHandle stream) {
  const Step& step = *static_cast<const Step*>(numbers);
  visit_device<kFloats>(dtype, [&]<class T>() {
    if (n <= kFew) run_entries<Step, kFew>(name, step_kernel<Step, T, kFew>, entries, n, step, stream);
    else run_entries<Step, kOptimEntries>(name, step_kernel<Step, T, kOptimEntries>, entries, n, step, stream);
  });
}

}  // namespace

void run_step(StepKind kind, const OptimEntry* entries, int n, DType dtype, const void* numbers, StreamHandle stream) {
  switch (kind) {
#define VESTA_RUN_STEP(op, Step) \
  case StepKind::op: return run<Step>(#op, entries, n, dtype, numbers, stream);
    VESTA_OPTIMIZER_STEPS(VESTA_RUN_STEP)
#undef VESTA_RUN_STEP
    case StepKind::count: break;
  }
}

void run_counts(StepKind kind, const StepCounts& c, const void* numbers, StreamHandle stream) {
  const auto launch = [&]<class Step>(const Step& step) {
    if constexpr (Step::scalars.empty()) {
      launch_independent("counts", counts_kernel<Step>, linear_shape(uint64_t(c.n), 128, stream), c, step);
    }
  };
  switch (kind) {
#define VESTA_RUN_COUNTS(op, Step) \
  case StepKind::op: return launch(*static_cast<const Step*>(numbers));
    VESTA_OPTIMIZER_STEPS(VESTA_RUN_COUNTS)
#undef VESTA_RUN_COUNTS
    case StepKind::count: break;
  }
}

}  // namespace vesta::cuda
