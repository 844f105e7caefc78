// Steps of recurrent networks: an LSTM (Hochreiter and Schmidhuber 1997), a GRU (Cho et al. 2014, with the reset gate
// behind the product) and networks without gates (Elman 1990), and their gradients.
#include <vesta/core/cpu/recurrence_kernels.h>

#include <vesta/core/cpu/rows.h>
#include <vesta/core/cpu/simd.h>
#include <vesta/core/ops/math.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

/// Loads and stores one vector of a row: of element i, `n` lanes.
template <class T>
struct Lane {
  int64_t row, i, n;
  Vec<T> load(const Rows<const T>& r, int gate = 0) const {
    return load_row<T>(r.data + row * r.step + gate * r.gate + i, n);
  }
  Vec<T> load_or_zero(const Rows<const T>& r) const { return r.data ? load(r) : Vec<T>(T(0)); }
  Vec<T> load(const Rows<T>& r) const { return load_row<T>(r.data + row * r.step + i, n); }
  void store(Vec<T> v, const Rows<T>& r, int gate = 0) const {
    if (r.data == nullptr) return;
    store_row<T>(v, r.data + row * r.step + gate * r.gate + i, n);
  }
};

template <class T, class F>
VESTA_INLINE void each_lane(int64_t rows, int64_t units, F f) {
  for (int64_t row = 0; row < rows; ++row) {
    each_vector<T>(units, [&](int64_t i, int64_t n) __attribute__((always_inline)) { f(Lane<T>{row, i, n}); });
  }
}

template <class T>
Vec<T> slope_of_sigmoid(Vec<T> y) {
  return y * (Vec<T>(T(1)) - y);
}

template <class T>
void lstm(const StepForward<T>& s) {
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const auto gate = [&](int g) __attribute__((always_inline)) { return at.load(s.x, g) + at.load(s.product, g); };
    const Vec<T> in = math::sigmoid(gate(0)), forget = math::sigmoid(gate(1)), cell = math::tanh(gate(2)),
                 out = math::sigmoid(gate(3));
    const Vec<T> before = at.load(s.c), c = forget * before + in * cell, h = out * math::tanh(c);
    at.store(before, s.cells);
    at.store(c, s.c);
    at.store(in, s.activations, 0);
    at.store(forget, s.activations, 1);
    at.store(cell, s.activations, 2);
    at.store(out, s.activations, 3);
    at.store(h, s.out);
    at.store(h, s.state);
  });
}

template <class T>
void lstm_backward(const StepBackward<T>& s) {
  const Vec<T> one(T(1));
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> in = at.load(s.activations, 0), forget = at.load(s.activations, 1), cell = at.load(s.activations, 2),
                 out = at.load(s.activations, 3), before = at.load(s.cells);
    const Vec<T> top = math::tanh(forget * before + in * cell), g = at.load_or_zero(s.later) + at.load_or_zero(s.out);
    const Vec<T> slope = g * out * (one - top * top) + at.load(s.of_c);
    const Vec<T> of[4] = {slope * cell * slope_of_sigmoid(in), slope * before * slope_of_sigmoid(forget),
                          slope * in * (one - cell * cell), g * top * slope_of_sigmoid(out)};
    for (int gate = 0; gate < 4; ++gate) at.store(of[gate], s.of_x, gate), at.store(of[gate], s.copy, gate);
    at.store(slope * forget, s.of_c);
  });
}

template <class T>
void gru(const StepForward<T>& s) {
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> reset = math::sigmoid(at.load(s.x, 0) + at.load(s.product, 0)),
                 update = math::sigmoid(at.load(s.x, 1) + at.load(s.product, 1)), from_state = at.load(s.product, 2),
                 fresh = math::tanh(at.load(s.x, 2) + reset * from_state);
    const Vec<T> h = fresh + update * (at.load(s.h) - fresh);
    at.store(reset, s.activations, 0);
    at.store(update, s.activations, 1);
    at.store(fresh, s.activations, 2);
    at.store(from_state, s.activations, 3);
    at.store(h, s.out);
    at.store(h, s.state);
  });
}

template <class T>
void gru_backward(const StepBackward<T>& s) {
  const Vec<T> one(T(1));
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> reset = at.load(s.activations, 0), update = at.load(s.activations, 1),
                 fresh = at.load(s.activations, 2), from_state = at.load(s.activations, 3);
    const Vec<T> g = at.load_or_zero(s.later) + at.load_or_zero(s.out) + at.load(s.direct);
    const Vec<T> of_fresh = g * (one - update) * (one - fresh * fresh),
                 of_update = g * (at.load(s.h) - fresh) * slope_of_sigmoid(update),
                 of_reset = of_fresh * from_state * slope_of_sigmoid(reset);
    const Vec<T> of_x[3] = {of_reset, of_update, of_fresh}, of_product[3] = {of_reset, of_update, of_fresh * reset};
    for (int gate = 0; gate < 3; ++gate) {
      at.store(of_x[gate], s.of_x, gate);
      at.store(of_product[gate], s.of_product, gate);
      at.store(of_product[gate], s.copy, gate);
    }
    at.store(g * update, s.direct);
  });
}

template <class T>
void tanh_step(const StepForward<T>& s) {
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> h = math::tanh(at.load(s.x) + at.load(s.product));
    at.store(h, s.out);
    at.store(h, s.state);
  });
}

template <class T>
void tanh_backward(const StepBackward<T>& s) {
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> y = at.load(s.y), of = (at.load_or_zero(s.later) + at.load_or_zero(s.out)) * (Vec<T>(T(1)) - y * y);
    at.store(of, s.of_x);
    at.store(of, s.copy);
  });
}

template <class T>
void relu_step(const StepForward<T>& s) {
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> h = math::maximum(at.load(s.x) + at.load(s.product), Vec<T>(T(0)));
    at.store(h, s.out);
    at.store(h, s.state);
  });
}

template <class T>
void relu_backward(const StepBackward<T>& s) {
  const Vec<T> zero(T(0));
  each_lane<T>(s.rows, s.units, [&](const Lane<T>& at) __attribute__((always_inline)) {
    const Vec<T> g = at.load_or_zero(s.later) + at.load_or_zero(s.out), of = select(at.load(s.y) <= zero, zero, g);
    at.store(of, s.of_x);
    at.store(of, s.copy);
  });
}

template <class T>
void enter(RecurrenceKernels<T>& kernels) {
  kernels = {{&lstm<T>, &gru<T>, &tanh_step<T>, &relu_step<T>},
             {&lstm_backward<T>, &gru_backward<T>, &tanh_backward<T>, &relu_backward<T>}};
}

}  // namespace

void register_steps(RecurrenceKernels<float>& floats, RecurrenceKernels<double>& doubles) {
  enter(floats), enter(doubles);
}

}  // namespace vesta::cpu::VESTA_ISA_NS
