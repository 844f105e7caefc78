// Compares large ops that do little arithmetic with plain parallel loops that read and write as many bytes: the limit
// that memory sets on this machine.
//
//   build/bin/bandwidth          a row per op and size: Vesta's GB/s, the plain loop's, and the fraction reached
//   build/bin/bandwidth soft     the rows whose name contains "soft"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include <omp.h>

#include <vesta/vesta.h>

using namespace vesta;

namespace {

double best_seconds(const std::function<void()>& run) {
  double best = 1e9;
  for (int i = 0; i < 12; ++i) {
    auto start = std::chrono::steady_clock::now();
    run();
    std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    best = std::min(best, spent.count());
  }
  return best;
}

volatile float sink;

#define VESTA_ALL_VECTORS __attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3", "fast-math")))

VESTA_ALL_VECTORS float sum_of(const float* x, int64_t n) {
  float s = 0;
  for (int64_t i = 0; i < n; ++i) s += x[i];
  return s;
}
VESTA_ALL_VECTORS void map_of(const float* x, float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 1.5f;
}
VESTA_ALL_VECTORS void sum_of_two(const float* x, const float* y, float* z, int64_t n) {
  for (int64_t i = 0; i < n; ++i) z[i] = x[i] + y[i];
}
VESTA_ALL_VECTORS void fill_of(float* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = 1.5f;
}

/// The plain loop: it reads `reads` floats of x and `writes` of y, a piece of each in turn. What is read beyond what is
/// written is summed up; twice as much, from two places, is added.
void plain(const float* x, int64_t reads, float* y, int64_t writes) {
  constexpr int64_t kPieces = 256;
  const int64_t both = std::min(reads, writes);
#pragma omp parallel for schedule(static)
  for (int64_t p = 0; p < kPieces; ++p) {
    const auto cut = [&](int64_t n, int64_t at) { return n * at / kPieces; };
    const int64_t begin = cut(both, p), n = cut(both, p + 1) - begin;
    if (reads == 2 * writes) {
      sum_of_two(x + begin, x + writes + begin, y + begin, n);
      continue;
    }
    if (n > 0) map_of(x + begin, y + begin, n);
    const int64_t more_reads = reads - both, more_writes = writes - both;
    if (more_reads > 0) {
      const int64_t first = cut(more_reads, p);
      sink = sum_of(x + both + first, cut(more_reads, p + 1) - first);
    }
    if (more_writes > 0) {
      const int64_t first = cut(more_writes, p);
      fill_of(y + both + first, cut(more_writes, p + 1) - first);
    }
  }
}

/// Returns an image whose channels lie side by side.
Tensor in_pixels(const Tensor& x) { return x.permute({0, 2, 3, 1}).contiguous().permute({0, 3, 1, 2}); }

/// An op with the floats it must read and write. Batch normalisation in training has to read its input twice, its
/// gradient both operands: what belongs to a channel is known when all of it was read, and no cache holds what is
/// large.
struct Row {
  const char* name;
  int64_t reads, writes;
  std::function<void()> run;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string only = argc > 1 ? argv[1] : "";
  std::printf("%-22s %6s %12s %12s %9s\n", "op", "floats", "vesta GB/s", "plain GB/s", "fraction");
  for (int64_t side : {int64_t(1) << 10, int64_t(1) << 12}) {
    const int64_t n = side * side;
    Tensor x = rand({n}), y = rand({n}), z = rand({n}), m = rand({side, side}), halves = rand({4 * n});
    Tensor mask = gt(x, y), columns = rand({side}), rows = randperm(side);
    const Tensor image = rand({n / 4096, 64, 8, 8}), planes = rand({n >> 14, 64, 16, 16});
    const Tensor weight = rand({64}), bias = rand({64}), mean = zeros({64}), variance = ones({64});
    const TensorVector parts = {x.view({4, -1}).select(0, 0), x.view({4, -1}).select(0, 1),
                                x.view({4, -1}).select(0, 2), x.view({4, -1}).select(0, 3)};
    const Tensor large = planes.view({n >> 16, 16, 64, 64}), volume = in_pixels(large);
    const Tensor of_image = rand(image.sizes()), flags = zeros({side, side}, DType::bool_), words = randperm(side);
    const Tensor pixels = in_pixels(image), of_pixels = in_pixels(of_image);
    const Tensor quarter = rand({n >> 16, 16, 32, 32}), places = std::get<1>(_max_pool(large, 2, {}, 0, 1, false));
    const Tensor some_mean = rand({64}), some_scale = ones({64});
    const TensorVector four = {parts[0], parts[1], parts[2], parts[3]};
    const Row table[] = {
        {"add", 2 * n, n, [&] { add_out(z, x, y); }},
        {"neg", n, n, [&] { neg_out(z, x); }},
        {"relu", n, n, [&] { relu_out(z, x); }},
        {"exp", n, n, [&] { exp_out(z, x); }},
        {"tanh", n, n, [&] { tanh_out(z, x); }},
        {"sigmoid", n, n, [&] { sigmoid_out(z, x); }},
        {"gelu", n, n, [&] { gelu(x); }},
        {"x ** 2", n, n, [&] { pow_out(z, x, 2.0); }},
        {"x ** 3", n, n, [&] { pow_out(z, x, 3.0); }},
        {"x < y", 2 * n, n / 4, [&] { lt(x, y); }},
        {"where", 2 * n + n / 4, n, [&] { where(mask, x, y); }},
        {"masked_fill", n + n / 4, n, [&] { masked_fill(x, mask, 0.0); }},
        {"clone", n, n, [&] { clone(x); }},
        {"half", n, n / 2, [&] { x.to(DType::float16); }},
        {"t().contiguous()", n, n, [&] { m.t().contiguous(); }},
        {"flip(1)", n, n, [&] { flip(m, {1}); }},
        {"flip(0)", n, n, [&] { flip(m, {0}); }},
        {"pad", n, n, [&] { constant_pad_nd(m, {1, 1, 1, 1}); }},
        {"stack of 4", n, n, [&] { stack(four, 0); }},
        {"embedding", n, n, [&] { embedding(m, words); }},
        {"cat of 4", n, n, [&] { cat(parts, 0); }},
        {"index_select rows", n, n, [&] { index_select(m, 0, rows); }},
        {"sum", n, 0, [&] { sum(x); }},
        {"sum(0)", n, 0, [&] { sum(m, 0); }},
        {"sum(1)", n, 0, [&] { sum(m, 1); }},
        {"prod(1)", n, 0, [&] { prod(m, 1); }},
        {"mean(1)", n, 0, [&] { vesta::mean(m, 1); }},
        {"amax(1)", n, 0, [&] { amax(m, 1); }},
        {"amax(0)", n, 0, [&] { amax(m, 0); }},
        {"max(1)", n, 0, [&] { max(m, 1); }},
        {"max(0)", n, 0, [&] { max(m, 0); }},
        {"argmax(1)", n, 0, [&] { argmax(m, 1); }},
        {"any(1)", n / 4, 0, [&] { any(flags, 1); }},
        {"any", n / 4, 0, [&] { any(flags); }},
        {"var(1)", n, 0, [&] { var(m, 1); }},
        {"var(0)", n, 0, [&] { var(m, 0); }},
        {"std", n, 0, [&] { vesta::std(m); }},
        {"var_mean(1)", n, 0, [&] { var_mean(m, 1); }},
        {"norm", n, 0, [&] { norm(m); }},
        {"norm(1)", n, 0, [&] { norm(m, 2, 1); }},
        {"logsumexp(1)", n, 0, [&] { logsumexp(m, 1); }},
        {"cumsum(0)", n, n, [&] { cumsum(m, 0); }},
        {"cumsum(1)", n, n, [&] { cumsum(m, 1); }},
        {"cumprod(1)", n, n, [&] { cumprod(m, 1); }},
        {"softmax(0)", n, n, [&] { softmax(m, 0); }},
        {"softmax(1)", n, n, [&] { softmax(m, 1); }},
        {"log_softmax(1)", n, n, [&] { log_softmax(m, 1); }},
        {"layer_norm", n, n, [&] { layer_norm(m, {side}, columns, columns); }},
        {"batch_norm, training", 2 * n, n, [&] { batch_norm(image, mean, variance, weight, bias, true, 0.1, 1e-5); }},
        {"batch_norm", n, n, [&] { batch_norm(image, mean, variance, weight, bias, false, 0.1, 1e-5); }},
        {"batch_norm, gradient", 4 * n, n,
         [&] { _batch_norm_backward(of_image, image, weight, some_mean, some_scale, true); }},
        {"batch_norm pixels, tr.", 2 * n, n,
         [&] { batch_norm(pixels, mean, variance, weight, bias, true, 0.1, 1e-5); }},
        {"batch_norm pixels, gr.", 4 * n, n,
         [&] { _batch_norm_backward(of_pixels, pixels, weight, some_mean, some_scale, true); }},
        {"max_pool2d, 2", n, n / 4, [&] { max_pool2d(planes, {2, 2}); }},
        {"  with its places", n, n / 4 + n / 2, [&] { _max_pool(planes, 2, {}, 0, 1, false); }},
        {"max_pool2d, 2, large", n, n / 4, [&] { max_pool2d(large, {2, 2}); }},
        {"max_pool2d, 3 by 2", n, n / 4, [&] { max_pool2d(large, {3, 3}, {2, 2}, {1, 1}); }},
        {"max_pool2d, 3 by 1", n, n, [&] { max_pool2d(large, {3, 3}, {1, 1}, {1, 1}); }},
        {"max_pool2d, pixels", n, n / 4, [&] { max_pool2d(volume, {2, 2}); }},
        {"max_pool2d, gradient", n / 4 + n / 2, n, [&] { _max_pool_backward(quarter, places, large.sizes()); }},
        {"avg_pool2d, 2", n, n / 4, [&] { avg_pool2d(planes, {2, 2}); }},
        {"avg_pool2d, 2, large", n, n / 4, [&] { avg_pool2d(large, {2, 2}); }},
        {"avg_pool2d, 3 by 1", n, n, [&] { avg_pool2d(large, {3, 3}, {1, 1}, {1, 1}); }},
        {"avg_pool2d, pixels", n, n / 4, [&] { avg_pool2d(volume, {2, 2}); }},
        {"interpolate, twice", n / 4, n,
         [&] { _interpolate(quarter, {64, 64}, "bilinear", false, false, {}, {}, {}); }},
        {"interpolate, nearest", n / 4, n,
         [&] { _interpolate(quarter, {64, 64}, "nearest", false, false, {}, {}, {}); }},
    };
    const float* const from = halves.data_ptr<float>();
    for (const Row& row : table) {
      if (std::string(row.name).find(only) == std::string::npos) continue;
      double mine = 1e9, other = 1e9;
      for (int round = 0; round < 3; ++round) {
        mine = std::min(mine, best_seconds(row.run));
        other = std::min(other, best_seconds([&] { plain(from, row.reads, z.data_ptr<float>(), row.writes); }));
      }
      const double bytes = 4.0 * double(row.reads + row.writes);
      std::printf("%-22s %5ldM %12.1f %12.1f %9.2f\n", row.name, long(n >> 20), bytes / mine / 1e9, bytes / other / 1e9,
                  other / mine);
    }
  }
}
