// Calls of fused optimizer steps: what all devices check and prepare. The formulas are structs (optim_step.h); a kernel
// is made from a struct by `step_call`, which sorts the arguments of its op.
#pragma once
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <vesta/core/arguments.h>
#include <vesta/core/ops/optim_step.h>
#include <vesta/core/tensor.h>

namespace vesta {

/// Returns whether two short lists are equal, without a call.
inline bool same_numbers(IntSpan a, IntSpan b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

/// Returns whether the elements of two tensors of one shape lie in the same order and at the same distances, without a
/// call. Strides of dimensions of size 1 do not matter.
inline bool same_order(const Tensor& a, const Tensor& b) {
  if (a.dim() != b.dim()) return false;
  for (size_t d = 0; d < size_t(a.dim()); ++d) {
    if (a.strides()[d] != b.strides()[d] && a.sizes()[d] != 1) return false;
  }
  return true;
}

/// Returns whether tensors of a list overlap in memory: in-place work is then done one tensor at a time.
VESTA_API bool overlapping(TensorList list);

/// The lists of tensors of a fused step, whichever op it is.
struct StepLists {
  const char* op;
  TensorList params, grads;
  TensorList states[kMaxStates], scalars[kMaxScalars], steps;
  const char *state_names[kMaxStates], *scalar_names[kMaxScalars];
  bool used[kMaxStates];  // states that these numbers read and write
  int num_states, num_scalars;
  bool counts;

  /// Checks lengths, shapes, dtypes, and that what is written is dense memory that may be written.
  VESTA_API void check() const;
  /// Raises unless each parameter, its gradient and its used states lie on one device of this type.
  VESTA_API void check_devices(DeviceType type) const;
  /// Returns whether parameters overlap in memory: they are then stepped one by one, each after the one before it.
  bool overlap() const { return overlapping(params); }
  /// Returns the lists of parameter i alone.
  VESTA_API StepLists part(size_t i) const;
  /// Raises the versions of what a step has written.
  VESTA_API void bump() const;
};

/// Calls run(lists) once for all parameters, or once for each where they overlap in memory.
template <class F>
void for_independent(const StepLists& l, F run) {
  if (!l.overlap()) return run(l);
  for (size_t i = 0; i < l.params.size(); ++i) run(l.part(i));
}

/// Sorts the arguments of a fused step into its lists, which are checked, and its numbers.
template <class Step, class... A>
std::pair<StepLists, Step> step_call(const char* op, const A&... a) {
  constexpr size_t states = Step::states.size(), scalars = Step::scalars.size();
  constexpr size_t lists = 2 + states + scalars + (Step::counts ? 1 : 0);
  static_assert(states <= kMaxStates && scalars <= kMaxScalars && sizeof(typename Step::Counted) <= 8 * kMaxCounted);
  static_assert(std::is_trivially_copyable_v<Step> && alignof(typename Step::Counted) <= 8);  // kernels get copies
  const std::tuple<const A&...> all(a...);
  StepLists l{};
  l.op = op, l.num_states = states, l.num_scalars = scalars, l.counts = Step::counts;
  l.params = std::get<0>(all), l.grads = std::get<1>(all);
  [&]<size_t... i>(std::index_sequence<i...>) {
    ((l.states[i] = std::get<2 + i>(all), l.state_names[i] = Step::states[i]), ...);
  }(std::make_index_sequence<states>());
  [&]<size_t... i>(std::index_sequence<i...>) {
    ((l.scalars[i] = std::get<2 + states + i>(all), l.scalar_names[i] = Step::scalars[i]), ...);
  }(std::make_index_sequence<scalars>());
  if constexpr (Step::counts) l.steps = std::get<lists - 1>(all);
  const Step step = [&]<size_t... i>(std::index_sequence<i...>) {
    return Step{std::get<lists + i>(all)...};
  }(std::make_index_sequence<sizeof...(A) - lists>());
  for (size_t i = 0; i < states; ++i) l.used[i] = step.uses(int(i));
  l.check();
  return {l, step};
}

/// The numbers that a step derives from the step count and the scalars of one parameter.
template <class Step>
struct CountedStep {
  typename Step::Counted numbers;
  float n = std::numeric_limits<float>::quiet_NaN(), scalars[kMaxScalars] = {};  // before a step: equal to no number
};

/// Returns a number of a parameter's state, 0 on the meta device; Error(device) for one that lies on another device.
VESTA_API float number_in(const Tensor& t, const char* op);
/// Writes a number of a parameter's state; does nothing if it is not on the CPU.
VESTA_API void set_number(const Tensor& t, float value);

/// Computes the next step of parameter i, whose number and scalars lie on the CPU; writes nothing. `last` is that of
/// another parameter, which has the same result where the number is the same.
template <class Step>
CountedStep<Step> count_step(const StepLists& l, const Step& step, size_t i, const CountedStep<Step>& last = {}) {
  const float n = l.counts ? number_in(l.steps[i], l.op) + 1 : 0;
  if (l.num_scalars == 0 && n == last.n) return last;
  CountedStep<Step> r;
  r.n = n;
  for (int k = 0; k < l.num_scalars; ++k) r.scalars[k] = number_in(l.scalars[k][i], l.op);
  r.numbers = step.count(double(r.n), r.scalars);
  return r;
}

/// Writes the number and the scalars of parameter i, where they lie on the CPU.
template <class Step>
void keep_count(const StepLists& l, size_t i, const CountedStep<Step>& counted) {
  for (int k = 0; k < l.num_scalars; ++k) set_number(l.scalars[k][i], counted.scalars[k]);
  if (l.counts) set_number(l.steps[i], counted.n);
}

/// The memory of a step's tensors, a parameter and what belongs to it in one dense order. A tensor in another order, or
/// with holes, is copied.
class InOrder {
 public:
  explicit InOrder(const char* op) : op_(op) {}
  /// Returns the memory of a gradient in the order of its parameter.
  const char* read(const Tensor& t, const Tensor& param) {
    return in_order(t, param) ? t.impl()->data() : copied(t, param);
  }
  /// Returns the memory of a parameter or a state; what is written there is copied back by finish().
  char* write(const Tensor& t, const Tensor& param) {
    return in_order(t, param) ? t.impl()->data() : copied_back(t, param);
  }
  VESTA_API void finish();

 private:
  static bool in_order(const Tensor& t, const Tensor& param) { return param.impl()->dense() && same_order(t, param); }
  VESTA_API const char* copied(const Tensor& t, const Tensor& param);
  VESTA_API char* copied_back(const Tensor& t, const Tensor& param);
  Tensor copy_of(const Tensor& t, const Tensor& param) const;
  const char* op_;
  std::vector<Tensor> kept_;
  std::vector<std::pair<Tensor, Tensor>> changed_;  // a tensor and its copy
};

}  // namespace vesta
