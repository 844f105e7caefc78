// Compares element-wise ops and sums with plain parallel loops over the same memory: the physical limit of the
// machine.
//
//   build/bin/bandwidth          a row per op and size: Vesta's GB/s, the plain loop's, and the fraction reached
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>

#include <omp.h>

#include <vesta/vesta.h>

using namespace vesta;

namespace {

double best_seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 15; ++i) {
    auto start = std::chrono::steady_clock::now();
    run();
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count());
  }
  return best;
}

__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fast-math"))) double plain_sum(
    const float* x, int64_t n) {
  double total = 0;
  for (int64_t block = 0; block < n; block += 4096) {
    float s = 0;
    for (int64_t i = block; i < std::min(n, block + 4096); ++i) s += x[i];
    total += s;
  }
  return total;
}

volatile double sink;

}  // namespace

int main() {
  std::printf("%-10s %6s %12s %12s %9s\n", "op", "floats", "vesta GB/s", "plain GB/s", "fraction");
  for (int64_t n : {int64_t(1) << 20, int64_t(1) << 24}) {
    Tensor x = rand({n}), y = rand({n}), z = rand({n});
    const float *a = x.data_ptr<float>(), *b = y.data_ptr<float>();
    float* c = z.data_ptr<float>();
    auto row = [&](const char* name, double bytes, const std::function<void()>& ours,
                   const std::function<void()>& plain) {
      double mine = 1e9, other = 1e9;
      for (int round = 0; round < 3; ++round)
        mine = std::min(mine, best_seconds(ours)), other = std::min(other, best_seconds(plain));
      std::printf("%-10s %5ldM %12.1f %12.1f %9.2f\n", name, long(n >> 20), bytes / mine / 1e9, bytes / other / 1e9,
                  other / mine);
    };
    row(
        "add", 12.0 * double(n), [&] { add_out(z, x, y); },
        [&] {
#pragma omp parallel for simd schedule(static)
          for (int64_t i = 0; i < n; ++i) c[i] = a[i] + b[i];
        });
    row(
        "neg", 8.0 * double(n), [&] { neg_out(z, x); },
        [&] {
#pragma omp parallel for simd schedule(static)
          for (int64_t i = 0; i < n; ++i) c[i] = -a[i];
        });
    row(
        "relu", 8.0 * double(n), [&] { relu_out(z, x); },
        [&] {
#pragma omp parallel for simd schedule(static)
          for (int64_t i = 0; i < n; ++i) c[i] = a[i] > 0 ? a[i] : 0;
        });
    row(
        "exp", 8.0 * double(n), [&] { exp_out(z, x); }, [&] {  // the limit here is the memory, not a loop of expf
#pragma omp parallel for simd schedule(static)
          for (int64_t i = 0; i < n; ++i) c[i] = a[i] * 1.5f;
        });
    row(
        "sum", 4.0 * double(n), [&] { sink = sum(x).item<double>(); },
        [&] {
          double total = 0;
#pragma omp parallel for schedule(static) reduction(+ : total)
          for (int64_t p = 0; p < n; p += 1 << 16) total += plain_sum(a + p, std::min<int64_t>(1 << 16, n - p));
          sink = total;
        });
  }
}
