// The transforms of Winograd's convolution for outputs of 4 x 4 pixels and kernels of 3 x 3: Note [Winograd's
// convolution] in conv_winograd.h. With the points 0, a, -a, b, -b and infinity the matrices are
//
//   input (6 x 6)                              weights (6 x 3)              output (4 x 6)
//   [ a2b2   0  -a2-b2   0    1   0 ]          [ 1/a2b2     0      0   ]    [ 1   1   1   1   1   0 ]
//   [  0  -ab2   -b2     a    1   0 ]          [ f          a f    a2 f ]   [ 0   a  -a   b  -b   0 ]
//   [  0   ab2   -b2    -a    1   0 ]          [ f         -a f    a2 f ]   [ 0  a2  a2  b2  b2   0 ]
//   [  0  -a2b   -a2     b    1   0 ]          [ h          b h    b2 h ]   [ 0  a3 -a3  b3 -b3   1 ]
//   [  0   a2b   -a2    -b    1   0 ]          [ h         -b h    b2 h ]
//   [  0  a2b2    0   -a2-b2  0   1 ]          [ 0          0      1   ]
//
// where a2 is a squared, f = 1 / (2 a2 (a2 - b2)) and h = 1 / (2 b2 (b2 - a2)). A tile is transformed along its
// columns, then along its rows.
#include <vesta/core/cpu/conv_kernel.h>
#include <vesta/core/cpu/gemm_vectors.h>

namespace vesta::cpu::VESTA_ISA_NS {
namespace {

using X = VecF32;
using V = X::V;
using std::int64_t;

constexpr int kPanelVectors = 2, kWidth = X::kWidth, kPanel = kPanelVectors * kWidth;

// The points: their powers and sums are exact, and the error is less than half of that of 1 and 2.
constexpr float a = 0.75f, b = 1.5f;
constexpr float a2 = a * a, b2 = b * b, a3 = a2 * a, b3 = b2 * b;
constexpr float f = 1 / (2 * a2 * (a2 - b2)), h = 1 / (2 * b2 * (b2 - a2));

VESTA_INLINE V constant(const float& value) { return X::broadcast(&value); }
VESTA_INLINE V times(float s, V x, V y) { return X::fma(constant(s), x, y); }  // s x + y
VESTA_INLINE V times(float s, V x) { return X::fma(constant(s), x, X::zero()); }

VESTA_INLINE void input_line(const V (&d)[6], V (&t)[6]) {
  const V even_a = times(-b2, d[2], d[4]), odd_a = times(-b2, d[1], d[3]);
  const V even_b = times(-a2, d[2], d[4]), odd_b = times(-a2, d[1], d[3]);
  t[0] = times(a2 * b2, d[0], times(-(a2 + b2), d[2], d[4]));
  t[1] = times(a, odd_a, even_a);
  t[2] = times(-a, odd_a, even_a);
  t[3] = times(b, odd_b, even_b);
  t[4] = times(-b, odd_b, even_b);
  t[5] = times(a2 * b2, d[1], times(-(a2 + b2), d[3], d[5]));
}

VESTA_INLINE void output_line(const V (&m)[6], V (&y)[4]) {
  const V even_a = X::add(m[1], m[2]), odd_a = times(-1, m[2], m[1]);
  const V even_b = X::add(m[3], m[4]), odd_b = times(-1, m[4], m[3]);
  y[0] = X::add(m[0], X::add(even_a, even_b));
  y[1] = times(a, odd_a, times(b, odd_b));
  y[2] = times(a2, even_a, times(b2, even_b));
  y[3] = X::add(m[5], times(a3, odd_a, times(b3, odd_b)));
}

VESTA_INLINE void weights_line(const V (&w)[3], V (&u)[6]) {
  const V even_a = times(a2, w[2], w[0]), odd_a = times(a, w[1]);
  const V even_b = times(b2, w[2], w[0]), odd_b = times(b, w[1]);
  u[0] = times(1 / (a2 * b2), w[0]);
  u[1] = times(f, X::add(even_a, odd_a));
  u[2] = times(f, times(-1, odd_a, even_a));
  u[3] = times(h, X::add(even_b, odd_b));
  u[4] = times(h, times(-1, odd_b, even_b));
  u[5] = w[2];
}

// The transpose of output_line.
VESTA_INLINE void output_gradient_line(const V (&g)[4], V (&t)[6]) {
  const V even_a = times(a2, g[2], g[0]), odd_a = times(a3, g[3], times(a, g[1]));
  const V even_b = times(b2, g[2], g[0]), odd_b = times(b3, g[3], times(b, g[1]));
  t[0] = g[0];
  t[1] = X::add(even_a, odd_a);
  t[2] = times(-1, odd_a, even_a);
  t[3] = X::add(even_b, odd_b);
  t[4] = times(-1, odd_b, even_b);
  t[5] = g[3];
}

// The transpose of weights_line.
VESTA_INLINE void weights_gradient_line(const V (&u)[6], V (&w)[3]) {
  const V even_a = times(f, X::add(u[1], u[2])), odd_a = times(f, times(-1, u[2], u[1]));
  const V even_b = times(h, X::add(u[3], u[4])), odd_b = times(h, times(-1, u[4], u[3]));
  w[0] = times(1 / (a2 * b2), u[0], X::add(even_a, even_b));
  w[1] = times(a, odd_a, times(b, odd_b));
  w[2] = X::add(u[5], times(a2, even_a, times(b2, even_b)));
}

// Returns whether no lane of sums of 0 * result is NaN.
bool all_finite(V sums) {
  float lanes[kWidth];
  X::store(lanes, sums);
  bool all = true;
  for (const float lane : lanes) all = all && lane == 0;
  return all;
}

/// Transforms a tile of kFrom x kFrom vectors, `load(i, j)`, to one of kTo x kTo, `store(i, j, v)`: along its columns,
/// then along its rows.
template <int kFrom, int kTo, void (*line)(const V (&)[kFrom], V (&)[kTo]), class Load, class Store>
VESTA_INLINE void transform(const Load& load, const Store& store) {
  V half[kTo][kFrom];
#pragma GCC unroll 6
  for (int j = 0; j < kFrom; ++j) {
    V from[kFrom], to[kTo];
#pragma GCC unroll 6
    for (int i = 0; i < kFrom; ++i) from[i] = load(i, j);
    line(from, to);
#pragma GCC unroll 6
    for (int i = 0; i < kTo; ++i) half[i][j] = to[i];
  }
#pragma GCC unroll 6
  for (int i = 0; i < kTo; ++i) {
    V to[kTo];
    line(half[i], to);
#pragma GCC unroll 6
    for (int j = 0; j < kTo; ++j) store(i, j, to[j]);
  }
}

void input(int64_t tiles, int64_t channels, const float* in, int64_t row, float* out, int64_t tile, int64_t point) {
  const int vectors = channels > kWidth ? kPanelVectors : 1;
  for (int64_t t = 0; t < tiles; ++t) {
    for (int v = 0; v < vectors; ++v) {
      const float* const from = in + 4 * t * kPanel + v * kWidth;
      float* const to = out + t * tile + v * kWidth;
      transform<6, 6, input_line>([&](int i, int j) { return X::load(from + i * row + j * kPanel); },
                                  [&](int i, int j, V y) { X::store(to + (6 * i + j) * point, y); });
    }
  }
}

bool output(int64_t tiles, int64_t channels, const float* in, int64_t tile, int64_t point, const float* bias,
            float* out, int64_t row) {
  const int vectors = channels > kWidth ? kPanelVectors : 1;
  V finite = X::zero();  // 0, or NaN once a result was not finite
  for (int64_t t = 0; t < tiles; ++t) {
    for (int v = 0; v < vectors; ++v) {
      const float* const from = in + t * tile + v * kWidth;
      float* const to = out + 4 * t * kPanel + v * kWidth;
      const V offset = bias == nullptr ? X::zero() : X::load(bias + v * kWidth);
      transform<6, 4, output_line>([&](int i, int j) { return X::load(from + (6 * i + j) * point); },
                                   [&](int i, int j, V y) {
                                     finite = X::fma(y, X::zero(), finite);
                                     X::store(to + i * row + j * kPanel, X::add(y, offset));
                                   });
    }
  }
  return all_finite(finite);
}

void weights(int64_t count, bool flipped, const float* in, float* out, int64_t point) {
  for (int64_t p = 0; p < count; ++p) {
    for (int v = 0; v < kPanelVectors; ++v) {
      const float* const from = in + 9 * p * kPanel + v * kWidth;
      float* const to = out + p * kPanel + v * kWidth;
      transform<3, 6, weights_line>(
          [&](int i, int j) { return X::load(from + (flipped ? 8 - 3 * i - j : 3 * i + j) * kPanel); },
          [&](int i, int j, V y) { X::store(to + (6 * i + j) * point, y); });
    }
  }
}

void output_gradient(int64_t tiles, const float* in, int64_t row, float* out, int64_t tile, int64_t point) {
  for (int64_t t = 0; t < tiles; ++t) {
    for (int v = 0; v < kPanelVectors; ++v) {
      const float* const from = in + 4 * t * kPanel + v * kWidth;
      float* const to = out + t * tile + v * kWidth;
      transform<4, 6, output_gradient_line>([&](int i, int j) { return X::load(from + i * row + j * kPanel); },
                                            [&](int i, int j, V y) { X::store(to + (6 * i + j) * point, y); });
    }
  }
}

bool weights_gradient(int64_t count, const float* in, int64_t pair, int64_t point, float* out) {
  V finite = X::zero();
  for (int64_t p = 0; p < count; ++p) {
    for (int v = 0; v < kPanelVectors; ++v) {
      const float* const from = in + p * pair + v * kWidth;
      float* const to = out + 9 * p * kPanel + v * kWidth;
      transform<6, 3, weights_gradient_line>([&](int i, int j) { return X::load(from + (6 * i + j) * point); },
                                             [&](int i, int j, V y) {
                                               finite = X::fma(y, X::zero(), finite);
                                               X::store(to + (3 * i + j) * kPanel, y);
                                             });
    }
  }
  return all_finite(finite);
}

constexpr WinogradKernels kKernels{&input, &output, &weights, &output_gradient, &weights_gradient};

}  // namespace

const WinogradKernels& winograd_float_kernels() { return kKernels; }

}  // namespace vesta::cpu::VESTA_ISA_NS
