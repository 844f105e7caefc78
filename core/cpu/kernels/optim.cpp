// Optimizer steps, the unscaling of gradients and their norms over runs of elements. The formulas are those of
// core/ops/optim_step.h.
#include <vesta/core/cpu/optim_kernels.h>

#include <cstring>
#include <utility>

#include <vesta/core/cpu/row_sums.h>
#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

template <class Step, class T>
void run(char* const* at, int64_t n, const void* numbers, const void* counted) {
  using C = compute_t<T>;
  constexpr size_t kStates = Step::states.size();
  Step step;  // copies, which no store into a tensor can change: their numbers stay in registers
  typename Step::Counted c;
  std::memcpy(&step, numbers, sizeof step);
  std::memcpy(&c, counted, sizeof c);
  T* p = reinterpret_cast<T*>(at[0]);
  const T* g = reinterpret_cast<const T*>(at[1]);
  T* states[kStates];
  for (size_t k = 0; k < kStates; ++k) states[k] = reinterpret_cast<T*>(at[2 + k]);
  // Inlined by order, since a call for each vector would convert the step's numbers each time.
  each_vector<C>(n, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
    Vec<C> x = load_row<C>(p + i, w), d = load_row<C>(g + i, w);
    [&]<size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) {
      Vec<C> s[kStates] = {(states[k] ? load_row<C>(states[k] + i, w) : Vec<C>(C(0)))...};
      step.update(x, d, s[k]..., c);
      ((states[k] ? store_row<C>(s[k], states[k] + i, w) : void()), ...);
    }(std::make_index_sequence<kStates>());
    store_row<C>(x, p + i, w);
  });
}

template <class T>
bool unscale(char* gb, int64_t n, double factor) {
  using C = compute_t<T>;
  T* g = reinterpret_cast<T*>(gb);
  const Vec<C> f{C(factor)};
  bool finite = true;
  each_vector<C>(n, [&](int64_t i, int64_t w) {
    const Vec<C> v = load_row<C>(g + i, w);
    finite = finite & all(math::isfinite(v));
    store_row<C>(v * f, g + i, w);
  });
  return finite;
}

template <class T>
void scale(char* xb, int64_t n, double factor) {
  using C = compute_t<T>;
  T* x = reinterpret_cast<T*>(xb);
  const Vec<C> f{C(factor)};
  each_vector<C>(n, [&](int64_t i, int64_t w) { store_row<C>(load_row<C>(x + i, w) * f, x + i, w); });
}

template <class T>
double norm_part(const char* xb, int64_t n, NormKind kind) {
  using C = compute_t<T>;
  const T* x = reinterpret_cast<const T*>(xb);
  const auto load = [x](int64_t i, int64_t w) __attribute__((always_inline)) { return load_row<C>(x + i, w); };
  if (kind == NormKind::squares) {
    return sum_vectors<C>(n, [&](int64_t i, int64_t w) __attribute__((always_inline)) {
      const Vec<C> v = load(i, w);
      return v * v;
    });
  }
  if (kind == NormKind::sum) {
    return sum_vectors<C>(n,
                          [&](int64_t i, int64_t w) __attribute__((always_inline)) { return math::abs(load(i, w)); });
  }
  Vec<C> top{C(0)};
  each_vector<C>(n, [&](int64_t i, int64_t w) { top = math::maximum(top, math::abs(load(i, w))); });
  C lanes[Vec<C>::N];
  top.store(lanes);
  double r = 0;
  for (const C v : lanes) r = r != r || r > double(v) ? r : double(v);  // NaN stays
  return r;
}

}  // namespace

void register_optim_kernels(OptimKernels (&optim)[kNumDTypes]) {
  auto one = [&]<class T>() {
    OptimKernels& kernels = optim[int(dtype_of<T>)];
#define VESTA_STEP_KERNEL(op, Step) kernels.steps[int(StepKind::op)] = &run<Step, T>;
    VESTA_OPTIMIZER_STEPS(VESTA_STEP_KERNEL)
#undef VESTA_STEP_KERNEL
    kernels.unscale = &unscale<T>;
    kernels.scale = &scale<T>;
    kernels.norm_part = &norm_part<T>;
  };
  one.template operator()<float>();
  one.template operator()<double>();
  one.template operator()<Half>();
  one.template operator()<BFloat16>();
}

}  // namespace vesta::cpu::VESTA_ISA_NS
