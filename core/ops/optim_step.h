// The steps of element-wise optimizers: one struct each. From a struct follow the loop of every instruction set
// (core/cpu/kernels/optim.cpp), the CUDA kernel (cuda/kernels/optim.cu), both with the same bits, and the step that is
// recorded (autograd/rules/optim.cpp, `differentiable=True`).
//
// A struct holds the numbers of a step in the order of its op's parameters (lists/optim.h), which come after the lists:
// parameters, gradients, `states`, `scalars`, and, where `counts` holds, the number of steps of each parameter.
//
//   states           names of the lists of tensors of their parameter's shape
//   scalars          names of the lists of one float32 number for each parameter, on the CPU
//   counts           whether the op counts the steps of each parameter
//   uses(i)          whether states[i] is read and written with these numbers; it may be an empty list otherwise
//   Counted          what all elements of a parameter share: at most three doubles
//   count(n, s)      computes it for step n, n = 1 for the first, and updates the scalars s. Without scalars a GPU may
//                    do it, to the same bits: by +, -, *, /, sqrt and step_detail::power
//   update(p, g, states..., c)
//                    the formula for one element, V being Vec<C> on a CPU, float or double on a GPU, Tensor when
//                    recorded. Numbers are V by lit<V>(), computed in double before.
//
// Conditions on the numbers of a step may be an `if`; conditions on elements are math::select. Neither compiler may
// fuse products and sums (-ffp-contract=off, -fmad=false).
#pragma once
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include <vesta/core/base/macros.h>
#include <vesta/core/ops/math.h>

namespace vesta {
inline namespace VESTA_ISA_NS {
namespace step_detail {
using math::lit;

/// Returns the gradient to descend along: negated to ascend, with the decay of the weights (L2) if that is not 0.
template <class V>
VESTA_HD VESTA_INLINE V direction(V p, V g, bool maximize, double weight_decay) {
  if (maximize) g = -g;
  if (weight_decay != 0) g = g + p * lit<V>(weight_decay);
  return g;
}
/// Moves a running mean from the nearer end, as PyTorch's lerp_ does: nothing cancels.
template <class V>
VESTA_HD VESTA_INLINE V lerp(V mean, V x, double beta) {
  if (beta <= 0.5) return x - (x - mean) * lit<V>(beta);
  return mean + (x - mean) * lit<V>(1 - beta);
}
/// Moves a running mean of squares: square * beta + x * x * (1 - beta).
template <class V>
VESTA_HD VESTA_INLINE V mean_square(V square, V x, double beta) {
  return square * lit<V>(beta) + x * x * lit<V>(1 - beta);
}
/// Multiplies the sum `high + low` by another, with 104 bits.
VESTA_HD VESTA_INLINE void multiply(double& high, double& low, double other_high, double other_low) {
  const double product = high * other_high;
  const double rest = fma(high, other_high, -product) + (high * other_low + low * other_high);
  high = product + rest;
  low = rest - (high - product);
}
/// Raises to the number of a step: exact products and sums, which have the same bits on every device, as pow has not.
VESTA_HD inline double power(double base, double n) {
  if (!(n >= 0 && n < 0x1p53 && n == math::floor(n))) return math::pow(base, n);
  double high = 1, low = 0, square = base, square_low = 0;
  for (uint64_t left = uint64_t(n); left; left >>= 1) {
    if (left & 1) multiply(high, low, square, square_low);
    multiply(square, square_low, square, square_low);
  }
  return high + low;
}
template <size_t n>
using Names = std::array<const char*, n>;
/// The placeholder for steps without counted numbers.
struct Nothing {};
}  // namespace step_detail

/// One step of SGD (Sutskever et al. 2013 as PyTorch writes it); `first` starts the momentum with the gradient.
struct SgdStep {
  static constexpr step_detail::Names<1> states{"momentum_buffer_list"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = false;
  double weight_decay, momentum, lr, dampening;
  bool nesterov, maximize, first;

  using Counted = step_detail::Nothing;
  bool uses(int) const { return momentum != 0; }
  VESTA_HD Counted count(double, float*) const { return {}; }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& buffer, const Counted&) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, weight_decay);
    if (momentum != 0) {
      buffer = first ? g : buffer * lit<V>(momentum) + g * lit<V>(1 - dampening);
      g = nesterov ? g + buffer * lit<V>(momentum) : buffer;
    }
    p = p - g * lit<V>(lr);
  }
};

/// One step of Adam (Kingma and Ba 2015) or AdamW (Loshchilov and Hutter 2019, `decoupled`).
struct AdamStep {
  static constexpr step_detail::Names<3> states{"exp_avgs", "exp_avg_sqs", "max_exp_avg_sqs"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double lr, beta1, beta2, weight_decay, eps;
  bool amsgrad, maximize, decoupled;

  /// Multiplied by the root of beta2's correction, which spares each element a division.
  struct Counted {
    double step_size, eps;
  };
  bool uses(int state) const { return state < 2 || amsgrad; }
  VESTA_HD Counted count(double n, float*) const {
    const double root = math::sqrt(1 - step_detail::power(beta2, n));
    return {lr / (1 - step_detail::power(beta1, n)) * root, eps * root};
  }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& mean, V& square, V& largest, const Counted& c) const {
    using math::lit;
    if (decoupled && weight_decay != 0) p = p * lit<V>(1 - lr * weight_decay);
    g = step_detail::direction(p, g, maximize, decoupled ? 0 : weight_decay);
    mean = step_detail::lerp(mean, g, beta1);
    square = step_detail::mean_square(square, g, beta2);
    V scale = square;
    if (amsgrad) scale = largest = math::maximum(largest, square);
    p = p - lit<V>(c.step_size) * mean / (math::sqrt(scale) + lit<V>(c.eps));
  }
};

/// One step of RMSprop (Hinton, Coursera lecture 6e, 2012); `centered` divides by the estimated deviation (Graves
/// 2013).
struct RmspropStep {
  static constexpr step_detail::Names<3> states{"square_avgs", "grad_avgs", "momentum_buffer_list"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double lr, alpha, eps, weight_decay, momentum;
  bool centered, maximize;

  using Counted = step_detail::Nothing;
  bool uses(int state) const { return state == 0 || (state == 1 ? centered : momentum != 0); }
  VESTA_HD Counted count(double, float*) const { return {}; }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& square, V& mean, V& buffer, const Counted&) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, weight_decay);
    square = step_detail::mean_square(square, g, alpha);
    V below = square;
    if (centered) {
      mean = step_detail::lerp(mean, g, alpha);
      below = below - mean * mean;
    }
    g = g / (math::sqrt(below) + lit<V>(eps));
    if (momentum != 0) g = buffer = buffer * lit<V>(momentum) + g;
    p = p - g * lit<V>(lr);
  }
};

/// One step of Adagrad (Duchi et al. 2011).
struct AdagradStep {
  static constexpr step_detail::Names<1> states{"state_sums"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double lr, lr_decay, weight_decay, eps;
  bool maximize;

  struct Counted {
    double step_size;
  };
  bool uses(int) const { return true; }
  VESTA_HD Counted count(double n, float*) const { return {lr / (1 + (n - 1) * lr_decay)}; }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& sum, const Counted& c) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, weight_decay);
    sum = sum + g * g;
    p = p - lit<V>(c.step_size) * g / (math::sqrt(sum) + lit<V>(eps));
  }
};

/// One step of Adadelta (Zeiler 2012).
struct AdadeltaStep {
  static constexpr step_detail::Names<2> states{"square_avgs", "acc_deltas"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double lr, rho, eps, weight_decay;
  bool maximize;

  using Counted = step_detail::Nothing;
  bool uses(int) const { return true; }
  VESTA_HD Counted count(double, float*) const { return {}; }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& square, V& change, const Counted&) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, weight_decay);
    square = step_detail::mean_square(square, g, rho);
    const V delta = math::sqrt(change + lit<V>(eps)) / math::sqrt(square + lit<V>(eps)) * g;
    change = step_detail::mean_square(change, delta, rho);
    p = p - delta * lit<V>(lr);
  }
};

/// One step of Adamax: Adam with the infinity norm (Kingma and Ba 2015).
struct AdamaxStep {
  static constexpr step_detail::Names<2> states{"exp_avgs", "exp_infs"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double lr, beta1, beta2, eps, weight_decay;
  bool maximize;

  struct Counted {
    double step_size;
  };
  bool uses(int) const { return true; }
  VESTA_HD Counted count(double n, float*) const { return {lr / (1 - step_detail::power(beta1, n))}; }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& mean, V& largest, const Counted& c) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, weight_decay);
    mean = step_detail::lerp(mean, g, beta1);
    largest = math::maximum(largest * lit<V>(beta2), math::abs(g) + lit<V>(eps));
    p = p - lit<V>(c.step_size) * mean / largest;
  }
};

/// One step of NAdam: Adam with Nesterov's momentum (Dozat 2016). `mu_products` are the products of all momenta so far.
struct NAdamStep {
  static constexpr step_detail::Names<2> states{"exp_avgs", "exp_avg_sqs"};
  static constexpr step_detail::Names<1> scalars{"mu_products"};
  static constexpr bool counts = true;
  double lr, beta1, beta2, eps, weight_decay, momentum_decay;
  bool decoupled, maximize;

  struct Counted {
    double of_grad, of_mean, correction;
  };
  bool uses(int) const { return true; }
  VESTA_HD double momentum(double n) const { return beta1 * (1 - 0.5 * math::pow(0.96, n * momentum_decay)); }
  VESTA_HD Counted count(double n, float* product) const {
    const double mu = momentum(n), next = momentum(n + 1);
    *product = *product * float(mu);
    return {lr * (1 - mu) / (1 - double(*product)), lr * next / (1 - double(*product) * next),
            1 - step_detail::power(beta2, n)};
  }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& mean, V& square, const Counted& c) const {
    using math::lit;
    if (decoupled && weight_decay != 0) p = p * lit<V>(1 - lr * weight_decay);
    g = step_detail::direction(p, g, maximize, decoupled ? 0 : weight_decay);
    mean = step_detail::lerp(mean, g, beta1);
    square = step_detail::mean_square(square, g, beta2);
    const V below = math::sqrt(square / lit<V>(c.correction)) + lit<V>(eps);
    p = p - lit<V>(c.of_grad) * g / below;
    p = p - lit<V>(c.of_mean) * mean / below;
  }
};

/// One step of RAdam: Adam that is rectified while the variance of its scale is large (Liu et al. 2020).
struct RAdamStep {
  static constexpr step_detail::Names<2> states{"exp_avgs", "exp_avg_sqs"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double lr, beta1, beta2, eps, weight_decay;
  bool decoupled, maximize;

  struct Counted {
    double step_size, rectified;
  };
  bool uses(int) const { return true; }
  VESTA_HD Counted count(double n, float*) const {
    const double correction1 = 1 - step_detail::power(beta1, n), power = step_detail::power(beta2, n),
                 correction2 = 1 - power;
    const double longest = 2 / (1 - beta2) - 1, length = longest - 2 * n * power / correction2;
    if (length <= 5) return {lr / correction1, 0};
    const double above = (length - 4) * (length - 2) * longest, below = (longest - 4) * (longest - 2) * length;
    return {lr * math::sqrt(above / below * correction2) / correction1, 1};
  }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& mean, V& square, const Counted& c) const {
    using math::lit;
    if (decoupled && weight_decay != 0) p = p * lit<V>(1 - lr * weight_decay);
    g = step_detail::direction(p, g, maximize, decoupled ? 0 : weight_decay);
    mean = step_detail::lerp(mean, g, beta1);
    square = step_detail::mean_square(square, g, beta2);
    V step = lit<V>(c.step_size) * mean;
    if (c.rectified != 0) step = step / (math::sqrt(square) + lit<V>(eps));
    p = p - step;
  }
};

/// One step of averaged SGD (Polyak and Juditsky 1992): `axs` are means of the parameters from step t0 on.
struct AsgdStep {
  static constexpr step_detail::Names<1> states{"axs"};
  static constexpr step_detail::Names<2> scalars{"etas", "mus"};
  static constexpr bool counts = true;
  double lr, lambd, alpha, t0, weight_decay;
  bool maximize;

  struct Counted {
    double eta, mu;
  };
  bool uses(int) const { return true; }
  VESTA_HD Counted count(double n, float* eta_mu) const {
    const Counted now{double(eta_mu[0]), double(eta_mu[1])};
    eta_mu[0] = float(lr / math::pow(1 + lambd * lr * n, alpha));
    eta_mu[1] = float(n - t0 > 1 ? 1 / (n - t0) : 1);
    return now;
  }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& average, const Counted& c) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, weight_decay);
    p = p * lit<V>(1 - lambd * c.eta);
    p = p - g * lit<V>(c.eta);
    average = c.mu == 1 ? p : average + (p - average) * lit<V>(c.mu);
  }
};

/// One step of Rprop (Riedmiller and Braun 1993): steps by the sign of the gradient alone.
struct RpropStep {
  static constexpr step_detail::Names<2> states{"prevs", "step_sizes"};
  static constexpr step_detail::Names<0> scalars{};
  static constexpr bool counts = true;
  double etaminus, etaplus, min_step, max_step;
  bool maximize;

  using Counted = step_detail::Nothing;
  bool uses(int) const { return true; }
  VESTA_HD Counted count(double, float*) const { return {}; }
  template <class V>
  VESTA_HD VESTA_INLINE void update(V& p, V g, V& previous, V& size, const Counted&) const {
    using math::lit;
    g = step_detail::direction(p, g, maximize, 0);
    const V turn = g * previous, zero = lit<V>(0);
    size = math::select(turn > zero, size * lit<V>(etaplus), math::select(turn < zero, size * lit<V>(etaminus), size));
    size = math::minimum(math::maximum(size, lit<V>(min_step)), lit<V>(max_step));
    g = math::select(turn < zero, zero, g);
    p = p - math::sign(g) * size;
    previous = g;
  }
};
}  // namespace VESTA_ISA_NS

/// Expands to X(op, Step) for each fused step.
#define VESTA_OPTIMIZER_STEPS(X)                                                                             \
  X(_fused_sgd_, SgdStep) X(_fused_adam_, AdamStep) X(_fused_rmsprop_, RmspropStep)                          \
  X(_fused_adagrad_, AdagradStep) X(_fused_adadelta_, AdadeltaStep) X(_fused_adamax_, AdamaxStep)            \
  X(_fused_nadam_, NAdamStep) X(_fused_radam_, RAdamStep) X(_fused_asgd_, AsgdStep) X(_fused_rprop_, RpropStep)

/// The fused steps by name, and their number.
enum class StepKind : int {
#define VESTA_NAME_STEP(op, Step) op,
  VESTA_OPTIMIZER_STEPS(VESTA_NAME_STEP)
#undef VESTA_NAME_STEP
      count
};
/// Returns the name of a step's op.
constexpr const char* step_name(StepKind kind) {
#define VESTA_NAME_STEP(op, Step) #op,
  constexpr const char* names[] = {VESTA_OPTIMIZER_STEPS(VESTA_NAME_STEP)};
#undef VESTA_NAME_STEP
  return names[int(kind)];
}
inline constexpr int kNumSteps = int(StepKind::count);
inline constexpr int kMaxStates = 3, kMaxScalars = 2, kMaxCounted = 3;  // of a step

}  // namespace vesta
