// Steps of recurrent networks and their gradients: the formulas of core/cpu/kernels/recurrence.cpp. A thread has four
// neighbouring hidden units of a sequence, or one where rows are not aligned for four, and loads all that it needs of
// them before it computes. Steps are short, so that blocks are small: a step of 64 sequences and 512 units is 128
// blocks.
#include <vesta/cuda/kernels/recurrence.h>

#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 64;
constexpr int kPack = 4;  // units of a thread

/// The gates of a network, as rows of its weight.
template <Recurrent kind>
constexpr int kGates = kind == Recurrent::lstm  ? 4
                       : kind == Recurrent::gru ? 3
                                                : 1;
template <Recurrent kind>
constexpr bool kGated = kGates<kind> > 1;

/// A thread's place: N hidden units of a row.
template <class T, int N>
struct Units {
  using C = compute_of<T>;
  using Values = Elements<T, N>;
  uint32_t row, column, width;
  bool exists;

  VESTA_DEVICE Units(const FastDivisor& packs, uint32_t rows, uint32_t width) : width(width) {
    const uint32_t i = global_index();
    row = packs.divide(i), column = (i - row * packs.divisor) * N, exists = row < rows;
  }
  /// Loads from a matrix of `gates` gates.
  VESTA_DEVICE Values load(const T* p, int gates = 1, int gate = 0) const {
    return *reinterpret_cast<const Values*>(p + (int64_t(row) * gates + gate) * width + column);
  }
  /// Loads from a vector of gates.
  VESTA_DEVICE Values load_bias(const T* p, int gate) const {
    return *reinterpret_cast<const Values*>(p + int64_t(gate) * width + column);
  }
  VESTA_DEVICE void store(T* p, const Values& v, int gates = 1, int gate = 0) const {
    *reinterpret_cast<Values*>(p + (int64_t(row) * gates + gate) * width + column) = v;
  }
};

template <class T, int N>
VESTA_DEVICE Elements<T, N> zeros() {
  Elements<T, N> r;
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) r.v[j] = convert<T>(compute_of<T>(0));
  return r;
}

template <class T>
struct StepArgs {
  FastDivisor packs;
  uint32_t rows, width;
  const T *x, *product, *bias, *before;
  T *c, *cells, *activations, *out, *h;
};

template <class T, Recurrent kind, int N>
VESTA_KERNEL void recurrent_step_kernel(StepArgs<T> a) {
  using C = compute_of<T>;
  constexpr int gates = kGates<kind>;
  const Units<T, N> at(a.packs, a.rows, a.width);
  if (!at.exists) return;
  Elements<T, N> x[gates], product[gates], bias[gates], before, made[4], c, h;
  VESTA_UNROLL
  for (int g = 0; g < gates; ++g) {
    x[g] = at.load(a.x, gates, g);
    product[g] = a.product ? at.load(a.product, gates, g) : zeros<T, N>();
  }
  if constexpr (kind == Recurrent::lstm) before = at.load(a.before);
  if constexpr (kind == Recurrent::gru) before = at.load(a.h);
  VESTA_UNROLL
  for (int g = 0; g < gates; ++g) bias[g] = a.bias ? at.load_bias(a.bias, g) : zeros<T, N>();
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const auto of_x = [&](int g) { return convert<C>(x[g].v[j]); };
    const auto of_h = [&](int g) { return convert<C>(product[g].v[j]) + convert<C>(bias[g].v[j]); };
    C state;
    if constexpr (kind == Recurrent::lstm) {
      const C in = math::sigmoid(of_x(0) + of_h(0)), forget = math::sigmoid(of_x(1) + of_h(1)),
              cell = math::tanh(of_x(2) + of_h(2)), out = math::sigmoid(of_x(3) + of_h(3));
      const C next = forget * convert<C>(before.v[j]) + in * cell;
      state = out * math::tanh(next);
      c.v[j] = convert<T>(next);
      made[0].v[j] = convert<T>(in), made[1].v[j] = convert<T>(forget);
      made[2].v[j] = convert<T>(cell), made[3].v[j] = convert<T>(out);
    } else if constexpr (kind == Recurrent::gru) {
      const C reset = math::sigmoid(of_x(0) + of_h(0)), update = math::sigmoid(of_x(1) + of_h(1)), from_h = of_h(2),
              fresh = math::tanh(of_x(2) + reset * from_h);
      state = fresh + update * (convert<C>(before.v[j]) - fresh);
      made[0].v[j] = convert<T>(reset), made[1].v[j] = convert<T>(update);
      made[2].v[j] = convert<T>(fresh), made[3].v[j] = convert<T>(from_h);
    } else if constexpr (kind == Recurrent::tanh) {
      state = math::tanh(of_x(0) + of_h(0));
    } else {
      state = math::maximum(of_x(0) + of_h(0), C(0));
    }
    h.v[j] = convert<T>(state);
  }
  if (a.h) at.store(a.h, h);
  at.store(a.out, h);
  if constexpr (kind == Recurrent::lstm) {
    at.store(a.c, c);
    if (a.cells) at.store(a.cells, before);
  }
  if constexpr (kGated<kind>) {
    if (!a.activations) return;
    VESTA_UNROLL
    for (int g = 0; g < 4; ++g) at.store(a.activations, made[g], 4, g);
  }
}

template <class T>
struct GradientArgs {
  FastDivisor packs;
  uint32_t rows, width;
  const T *later, *grad, *later_c;
  T *of_c, *direct;
  const T *activations, *cells, *h, *y;
  T *of_x, *of_product;
};

template <class C>
VESTA_DEVICE C slope_of_sigmoid(C y) {
  return y * (C(1) - y);
}

template <class T, Recurrent kind, int N>
VESTA_KERNEL void recurrent_backward_kernel(GradientArgs<T> a) {
  using C = compute_of<T>;
  constexpr int gates = kGates<kind>;
  const Units<T, N> at(a.packs, a.rows, a.width);
  if (!at.exists) return;
  Elements<T, N> made[4], before, state, of[gates], through;
  if constexpr (kGated<kind>) {
    VESTA_UNROLL
    for (int k = 0; k < 4; ++k) made[k] = at.load(a.activations, 4, k);
  }
  if constexpr (kind == Recurrent::lstm)
    before = at.load(a.cells), state = a.later_c ? at.load(a.later_c) : zeros<T, N>();
  else if constexpr (kind == Recurrent::gru) before = at.load(a.h), state = at.load(a.direct);
  else before = at.load(a.y);
  const Elements<T, N> later = a.later ? at.load(a.later) : zeros<T, N>(),
                       grad = a.grad ? at.load(a.grad) : zeros<T, N>();
  VESTA_UNROLL
  for (int j = 0; j < N; ++j) {
    const auto gate = [&](int k) { return convert<C>(made[k].v[j]); };
    const C of_h = convert<C>(later.v[j]) + convert<C>(grad.v[j]), old = convert<C>(before.v[j]);
    if constexpr (kind == Recurrent::lstm) {
      const C in = gate(0), forget = gate(1), cell = gate(2), out = gate(3);
      const C top = math::tanh(forget * old + in * cell),
              slope = of_h * out * (C(1) - top * top) + convert<C>(state.v[j]);
      of[0].v[j] = convert<T>(slope * cell * slope_of_sigmoid(in));
      of[1].v[j] = convert<T>(slope * old * slope_of_sigmoid(forget));
      of[2].v[j] = convert<T>(slope * in * (C(1) - cell * cell));
      of[3].v[j] = convert<T>(of_h * top * slope_of_sigmoid(out));
      state.v[j] = convert<T>(slope * forget);
    } else if constexpr (kind == Recurrent::gru) {
      const C reset = gate(0), update = gate(1), fresh = gate(2), whole = of_h + convert<C>(state.v[j]);
      const C of_fresh = whole * (C(1) - update) * (C(1) - fresh * fresh);
      of[0].v[j] = convert<T>(of_fresh * gate(3) * slope_of_sigmoid(reset));
      of[1].v[j] = convert<T>(whole * (old - fresh) * slope_of_sigmoid(update));
      of[2].v[j] = convert<T>(of_fresh);
      through.v[j] = convert<T>(of_fresh * reset);
      state.v[j] = convert<T>(whole * update);
    } else if constexpr (kind == Recurrent::tanh) {
      of[0].v[j] = convert<T>(of_h * (C(1) - old * old));
    } else {
      of[0].v[j] = convert<T>(old <= C(0) ? C(0) : of_h);
    }
  }
  VESTA_UNROLL
  for (int k = 0; k < gates; ++k) at.store(a.of_x, of[k], gates, k);
  if constexpr (kind == Recurrent::lstm) at.store(a.of_c, state);
  if constexpr (kind == Recurrent::gru) {
    at.store(a.direct, state);
    at.store(a.of_product, of[0], 3, 0), at.store(a.of_product, of[1], 3, 1), at.store(a.of_product, through, 3, 2);
  }
}

template <class T>
const T* of(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* of(void* p) {
  return static_cast<T*>(p);
}

/// Queues the step of a network, or its gradient, whose threads have N units.
template <class T, Recurrent kind, int N>
void queue(const RecurrentStep& s, const FastDivisor& packs, const LaunchShape& shape) {
  const StepArgs<T> a{.packs = packs,
                      .rows = uint32_t(s.rows),
                      .width = uint32_t(s.width),
                      .x = of<T>(s.x),
                      .product = of<T>(s.product),
                      .bias = of<T>(s.bias),
                      .before = of<T>(s.before),
                      .c = of<T>(s.c),
                      .cells = of<T>(s.cells),
                      .activations = of<T>(s.activations),
                      .out = of<T>(s.out),
                      .h = of<T>(s.h)};
  launch_independent("_recurrence", recurrent_step_kernel<T, kind, N>, shape, a);
}
template <class T, Recurrent kind, int N>
void queue(const RecurrentStepGradient& s, const FastDivisor& packs, const LaunchShape& shape) {
  const GradientArgs<T> a{.packs = packs,
                          .rows = uint32_t(s.rows),
                          .width = uint32_t(s.width),
                          .later = of<T>(s.later),
                          .grad = of<T>(s.grad),
                          .later_c = of<T>(s.later_c),
                          .of_c = of<T>(s.of_c),
                          .direct = of<T>(s.direct),
                          .activations = of<T>(s.activations),
                          .cells = of<T>(s.cells),
                          .h = of<T>(s.h),
                          .y = of<T>(s.y),
                          .of_x = of<T>(s.of_x),
                          .of_product = of<T>(s.of_product)};
  launch_independent("_recurrence_backward", recurrent_backward_kernel<T, kind, N>, shape, a);
}

template <class T, Recurrent kind, class Step>
void queue(const Step& s) {
  const int64_t packs = s.packed ? s.width / kPack : s.width;
  const LaunchShape shape = linear_shape(uint64_t(packs) * uint64_t(s.rows), kThreads, s.stream);
  const FastDivisor divisor{uint32_t(packs)};
  if (s.packed) queue<T, kind, kPack>(s, divisor, shape);
  else queue<T, kind, 1>(s, divisor, shape);
}

template <class Step>
void run(const Step& s) {
  visit_device<kFloats>(s.dtype, [&]<class T>() {
    switch (s.kind) {
      case Recurrent::lstm: return queue<T, Recurrent::lstm>(s);
      case Recurrent::gru: return queue<T, Recurrent::gru>(s);
      case Recurrent::tanh: return queue<T, Recurrent::tanh>(s);
      case Recurrent::relu: return queue<T, Recurrent::relu>(s);
    }
  });
}

}  // namespace

void run_recurrent_step(const RecurrentStep& s) { run(s); }
void run_recurrent_step(const RecurrentStepGradient& s) { run(s); }

}  // namespace vesta::cuda
