// Gradients of products: result / x, which zeros need special care for (the composites in core/ops/composite.cpp have
// the formulas).
#include <vesta/cuda/kernels/product_gradient.h>

#include <vesta/cuda/kernels/block_scan.cuh>
#include <vesta/cuda/kernels/scan.h>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr int kThreads = kTeamThreads;

/// One line of the operands; elements are `step` apart.
template <class T>
struct Line {
  using C = compute_of<T>;
  const T *x, *grad, *result;
  T* out;
  int64_t length, step;

  VESTA_DEVICE Line(const ProductGradient& l, int64_t line, bool running) : length(l.length), step(l.inner) {
    const int64_t first = line / l.inner * l.length * l.inner + line % l.inner, other = running ? first : line;
    x = static_cast<const T*>(l.x) + first, out = static_cast<T*>(l.out) + first;
    grad = static_cast<const T*>(l.grad) + other, result = static_cast<const T*>(l.result) + other;
  }
  VESTA_DEVICE C value(int64_t i) const { return convert<C>(x[i * step]); }
  VESTA_DEVICE C slope(int64_t i) const { return convert<C>(grad[i * step]); }
  /// Returns the running product through element i, conjugated.
  VESTA_DEVICE C product(int64_t i) const { return math::conj(convert<C>(result[i * step])); }
  VESTA_DEVICE void store(int64_t i, C v) const { out[i * step] = convert<T>(v); }
};

template <class T>
VESTA_KERNEL void product_gradient_kernel(ProductGradient l, int64_t lines, unsigned width) {
  using C = compute_of<T>;
  const GroupOrBlock team(width);
  const bool exists = int64_t(team.row) < lines;
  const Line<T> line(l, exists ? int64_t(team.row) : 0, false);
  const int64_t n = exists ? line.length : 0;
  int zeros = 0;
  C rest = C(1);  // the product of all but zeros
  for (int64_t i = team.rank; i < n; i += team.size) {
    const C v = line.value(i);
    if (v == C(0)) zeros = zeros < 2 ? zeros + 1 : 2;
    else rest = C(rest * v);
  }
  zeros = team.reduce(zeros, [](int a, int b) { return a + b; });
  rest = team.reduce(rest, [](C a, C b) { return C(a * b); });
  const C g = line.slope(0), ordinary = g * line.product(0), at_zero = zeros == 1 ? C(g * math::conj(rest)) : C(0);
  for (int64_t i = team.rank; i < n; i += team.size) {
    const C v = line.value(i);
    line.store(i, v == C(0) ? at_zero : C(ordinary / math::conj(v)));
  }
}

/// Does a line in three walks: to its first zero; behind it, over the products without it; and back from it.
template <class T>
VESTA_KERNEL void running_lines_kernel(ProductGradient l, int64_t lines) {
  using C = compute_of<T>;
  const int64_t number = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (number >= lines) return;
  const Line<T> line(l, number, true);
  int64_t zero = 0;
  while (zero < line.length && !(line.value(zero) == C(0))) ++zero;
  if (zero < line.length) {
    C others = zero > 0 ? line.product(zero - 1) : C(1), sum = line.slope(zero) * others;
    for (int64_t i = zero + 1; i < line.length; ++i) {
      others = C(others * math::conj(line.value(i)));
      sum = sum + line.slope(i) * others;
      line.store(i, C(0));
    }
    line.store(zero, sum);
  }
  C sum = C(0);
  for (int64_t i = zero - 1; i >= 0; --i) {
    sum = sum + line.slope(i) * line.product(i);
    line.store(i, C(sum / math::conj(line.value(i))));
  }
}

/// Does the same with a block per line, kThreads elements at a time.
template <class T>
VESTA_KERNEL void running_blocks_kernel(ProductGradient l) {
  using C = compute_of<T>;
  const auto plus = [](C a, C b) { return C(a + b); };
  const Line<T> line(l, blockIdx.x, true);
  const int64_t n = line.length, rank = threadIdx.x;
  int64_t zero = n;
  for (int64_t i = rank; i < n && zero == n; i += kThreads) {
    if (line.value(i) == C(0)) zero = i;
  }
  zero = block_reduce(zero, [](int64_t a, int64_t b) { return a < b ? a : b; }, 0);
  if (zero < n) {  // the same for all threads
    C before = zero > 0 ? line.product(zero - 1) : C(1), sum = C(0), total = C(0);
    for (int64_t begin = zero; begin < n; begin += kThreads) {
      const int64_t i = begin + rank;
      const C own = i > zero && i < n ? math::conj(line.value(i)) : C(1);
      const C through = block_scan_through<kThreads>(own, total, C(1), [](C a, C b) { return C(a * b); });
      if (i < n) sum = sum + line.slope(i) * C(before * through);
      if (i > zero && i < n) line.store(i, C(0));
      before = C(before * total);
    }
    sum = block_reduce(sum, plus, 0);
    if (rank == 0) line.store(zero, sum);
  }
  C behind = C(0), total = C(0);
  for (int64_t end = zero; end > 0; end -= kThreads) {
    const int64_t i = end - 1 - rank;
    const C own = i >= 0 ? C(line.slope(i) * line.product(i)) : C(0);
    const C through = block_scan_through<kThreads>(own, total, C(0), plus);
    if (i >= 0) line.store(i, C((behind + through) / math::conj(line.value(i))));
    behind = behind + total;
  }
}

}  // namespace

void run_product_gradient(const ProductGradient& l) {
  const int64_t lines = l.outer * l.inner;
  // Beside each other, many lines have a thread each: neighbours read neighbours.
  const bool beside = l.inner > 1 && (l.length <= 32 || lines >= 4096);
  const unsigned width = beside ? 1 : team_width(l.length, 1);
  visit_device<kFloats | kComplexes>(l.dtype, [&]<class T>() {
    launch_block("_prod_backward", product_gradient_kernel<T>, team_shape(uint64_t(lines), width, l.stream), l, lines,
                 width);
  });
}

void run_running_product_gradient(const ProductGradient& l) {
  const int64_t lines = l.outer * l.inner;
  visit_device<kFloats | kComplexes>(l.dtype, [&]<class T>() {
    if (scans_lines(l)) {
      launch_independent("_cumprod_backward", running_lines_kernel<T>,
                         linear_shape(uint64_t(lines), kThreads, l.stream), l, lines);
    } else {
      launch_block("_cumprod_backward", running_blocks_kernel<T>,
                   linear_shape(uint64_t(lines) * kThreads, kThreads, l.stream), l);
    }
  });
}

}  // namespace vesta::cuda
