// Products of bfloat16 pairs (Notes [Pairs of bfloat16] and [Tiles of pairs] in gemm_kernel.h) against the same
// operations one by one, and against double.
#include <catch2/catch.hpp>

#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace {

using namespace vesta::cpu;
using std::int64_t;
using Bits = std::uint16_t;

float wide(Bits v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v) << 16); }
Bits narrow(float v) {
  Bits out;
  f32_to_bf16(1, &v, &out);
  return out;
}

constexpr Bits kInfinity = 0x7f80, kNan = 0x7fc1, kLargest = 0x7f7f, kSubnormal = 0x0041, kLeastNormal = 0x0080;

// Random numbers in [-1, 1); every `rare`-th is a special one.
std::vector<Bits> values(int64_t n, unsigned seed, unsigned rare = 0) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> draw(-1, 1);
  constexpr Bits kSpecial[] = {kInfinity, kNan, kLargest, kSubnormal, kLeastNormal, 0x8000, 0xff7f, 0x8001};
  std::vector<Bits> out(static_cast<std::size_t>(n));
  for (Bits& v : out) v = rare != 0 && engine() % rare == 0 ? kSpecial[engine() % 8] : narrow(draw(engine));
  return out;
}

// A matrix that lies by rows or columns, dense or apart, at an odd address of 16 bits or not, or broadcast.
struct Matrix {
  int64_t rows, cols, row, col, first;
  std::vector<Bits> data;
  Matrix(const std::vector<Bits>& dense, int64_t r, int64_t c, int layout) : rows(r), cols(c), first(0) {
    switch (layout) {
      case 0: row = c, col = 1; break;
      case 1: row = 1, col = r; break;
      case 2: row = c + c % 2 + 2, col = 1; break;  // pairs at whole floats where c is even
      case 3: row = c + 1 + c % 2, col = 1, first = 1; break;
      case 4: row = 1, col = r + 3, first = 1; break;
      default: row = 2 * c + 1, col = 2;
    }
    data = values(first + r * row + c * col + 1, 77, 3);
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < c; ++j) data[first + i * row + j * col] = dense[i * c + j];
  }
  const Bits* at() const { return data.data() + first; }
};
constexpr int kLayouts = 6;

float without_subnormals(float v) {
  return std::abs(v) < std::numeric_limits<float>::min() ? std::copysign(0.f, v) : v;
}

// One element of a product as the note has it: `a` with a step of a_step, `b` of b_step.
Bits element(int64_t k_end, const Bits* a, int64_t a_step, const Bits* b, int64_t b_step, const Bits* before,
             const Bits* bias) {
  float total = before != nullptr ? wide(*before) : 0;
  bool empty = before == nullptr;
  const auto factor = [&](const Bits* from, int64_t k, int64_t step) {
    return k < k_end ? without_subnormals(wide(from[k * step])) : 0;
  };
  const auto add = [&](float& sum, int64_t k) {
    sum = without_subnormals(std::fma(factor(a, k, a_step), factor(b, k, b_step), sum));
  };
  for (int64_t k0 = 0; k0 < k_end; k0 += 2 * kBlockK) {
    const int64_t k1 = std::min(k_end, k0 + 2 * kBlockK);
    float sum = 0;
    if (gemm_isa() == Isa::avx512_amx) {  // Note [Tiles of pairs]
      for (int64_t step = k0; step < k1; step += 2 * kTileSteps) {
        float first = 0, second = 0;
        for (int64_t k = step; k < std::min(k1, step + 2 * kTileSteps); k += 2) add(first, k), add(second, k + 1);
        sum = without_subnormals(sum + without_subnormals(first + second));
      }
    } else {
      for (int64_t k = k0; k < k1; k += 2) add(sum, k + 1), add(sum, k);
    }
    total = empty ? sum : total + sum;
    empty = false;
  }
  if (bias != nullptr) total += wide(*bias);
  return narrow(total);
}

bool is_nan(Bits v) { return (v & 0x7fff) > kInfinity; }
bool same(Bits a, Bits b) { return a == b || (is_nan(a) && is_nan(b)); }

// Restores what the machine has.
struct Limit {
  explicit Limit(Isa isa) { limit_gemm_isa(isa); }
  ~Limit() { limit_gemm_isa(Isa::avx512_amx); }
};

// The instruction sets of this machine that multiply pairs.
std::vector<Isa> isas_with_pairs() {
  std::vector<Isa> out;
  for (const Isa isa : {Isa::avx512_bf16, Isa::avx512_amx}) {
    const Limit limit(isa);
    if (gemm_isa() == isa) out.push_back(isa);
  }
  if (out.empty()) WARN("no instructions for bfloat16 here");
  return out;
}

Gemm product_of(const Matrix& a, const Matrix& b, Bits* c) {
  return {.m = a.rows,
          .n = b.cols,
          .k = a.cols,
          .a = a.at(),
          .a_row = a.row,
          .a_col = a.col,
          .b = b.at(),
          .b_row = b.row,
          .b_col = b.col,
          .c = c,
          .c_row = b.cols};
}

// Compares up to 4000 elements of a product, plain and added to what is there with a bias, in some layouts.
void check_product(int64_t m, int64_t n, int64_t k, unsigned rare, int step) {
  const auto a = values(m * k, 1, rare), b = values(k * n, 2, rare), before = values(m * n, 3), bias = values(n, 4);
  const int64_t stride = m * n / 4000 + 1;
  std::vector<Bits> want, want_added;
  for (int64_t e = 0; e < m * n; e += stride) {
    const Bits *const x = a.data() + e / n * k, *const y = b.data() + e % n;
    want.push_back(element(k, x, 1, y, n, nullptr, nullptr));
    want_added.push_back(element(k, x, 1, y, n, &before[e], &bias[e % n]));
  }
  for (int layout = 0; layout < kLayouts * kLayouts; layout += step) {
    const Matrix left(a, m, k, layout / kLayouts), right(b, k, n, layout % kLayouts);
    std::vector<Bits> plain(static_cast<std::size_t>(m * n), kNan), added = before;
    Gemm args = product_of(left, right, plain.data());
    gemm(Elem::bf16, args);
    args.c = added.data();
    args.bias = bias.data();
    args.accumulate = true;
    gemm(Elem::bf16, args);
    int64_t wrong = 0;
    for (int64_t e = 0; e < m * n; e += stride) {
      wrong += !same(plain[e], want[e / stride]) + !same(added[e], want_added[e / stride]);
    }
    INFO(m << " x " << n << " x " << k << ", layout " << layout << ", " << name(gemm_isa()));
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("products of pairs are the operations of the note, whatever path and strides", "[bfloat16][bits]") {
  for (const Isa isa : isas_with_pairs()) {
    const Limit limit(isa);
    for (const auto& s : std::vector<std::vector<int64_t>>{
             {1, 1, 1},     {1, 1, 700},   {1, 17, 5},    {3, 1, 40},    {200, 1, 301}, {2, 3, 4},     {6, 16, 256},
             {7, 17, 257},  {13, 33, 512}, {8, 8, 8},     {32, 64, 63},  {1, 300, 601}, {5, 300, 299}, {100, 10, 64},
             {97, 130, 70}, {33, 65, 513}, {2, 70, 1515}, {40, 3, 300},  {100, 4, 515}, {1, 37, 2051}, {70, 2, 9},
             {90, 48, 2},   {50, 11, 71},  {13, 1, 4000}, {1, 600, 514}, {3, 600, 514}, {14, 40, 1025}}) {
      check_product(s[0], s[1], s[2], 0, 1);
      check_product(s[0], s[1], s[2], static_cast<unsigned>(4 * s[2]), 5);
    }
  }
}

TEST_CASE("large products of pairs take every path, with the same bits for any number of threads", "[bfloat16][bits]") {
  const int threads = num_threads();
  for (const int count : {1, 2, 4}) {
    set_num_threads(count);
    for (const Isa isa : isas_with_pairs()) {
      const Limit limit(isa);
      for (const auto& s : std::vector<std::vector<int64_t>>{
               {300, 310, 641}, {20, 30, 9001}, {64, 1500, 600}, {700, 24, 600}, {2000, 1, 1200}, {1, 2000, 1200}}) {
        check_product(s[0], s[1], s[2], 0, 11);
      }
    }
  }
  set_num_threads(threads);
}

TEST_CASE("a row of a product of pairs does not depend on the rows and the batch around it", "[bfloat16][bits]") {
  for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 64}, {10, 63}, {65, 300}, {256, 1000}, {600, 257}, {16, 5000}, {2000, 520}}) {
    for (const int layout : {0, 1, 3}) {
      const auto dense = values(129 * k, 1);
      const Matrix a(dense, 129, k, 0), b(values(k * n, 2), k, n, layout);
      const auto bias = values(n, 3);
      std::vector<Bits> whole(static_cast<std::size_t>(129 * n)), part(whole);
      Gemm all = product_of(a, b, whole.data());
      all.bias = bias.data();
      gemm(Elem::bf16, all);
      for (const int64_t m : {1, 2, 3, 13, 64}) {
        INFO("n " << n << " k " << k << " m " << m << " layout " << layout);
        Gemm some = all;
        some.m = m;
        some.a = a.at() + (129 - m) * a.row;
        some.c = part.data();
        gemm(Elem::bf16, some);
        CHECK(std::memcmp(part.data(), whole.data() + (129 - m) * n, static_cast<std::size_t>(2 * m * n)) == 0);
      }
      // every row as a product of its own, in two batches, and of the rows in turn
      const std::vector<BatchDim> batch{{3, a.row, 0, n}, {43, 3 * a.row, 0, 3 * n}};
      Gemm rows = all;
      rows.m = 1;
      rows.batch = batch;
      rows.c = part.data();
      gemm(Elem::bf16, rows);
      CHECK(part == whole);
    }
  }
}

TEST_CASE("products of bfloat16 keep to their bound against double", "[bfloat16]") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512, Isa::avx512_bf16, Isa::avx512_amx}) {
    const Limit limit(isa);
    for (const float scale : {1.f, 0x1p-60f, 0x1p-63f, 0x1p60f}) {  // products near the least numbers, and large ones
      for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{33, 40, 1}, {9, 70, 77}, {40, 40, 1500}}) {
        auto a = values(m * k, 1), b = values(k * n, 2), bias = values(n, 3);
        for (auto* part : {&a, &b}) {
          for (Bits& v : *part) v = narrow(wide(v) * scale);
        }
        for (Bits& v : bias) v = narrow(wide(v) * scale * scale);
        std::vector<Bits> c(static_cast<std::size_t>(m * n));
        const Matrix left(a, m, k, 0), right(b, k, n, 0);
        Gemm args = product_of(left, right, c.data());
        args.bias = bias.data();
        gemm(Elem::bf16, args);
        double worst = 0;
        for (int64_t i = 0; i < m; ++i) {
          for (int64_t j = 0; j < n; ++j) {
            double sum = wide(bias[j]), size = std::abs(sum);
            for (int64_t l = 0; l < k; ++l) {
              const double term = static_cast<double>(wide(a[i * k + l])) * wide(b[l * n + j]);
              sum += term, size += std::abs(term);
            }
            const double least = std::numeric_limits<float>::min();  // what a step may lose to the flush
            const double sums = static_cast<double>(k + 10) * (0x1p-24 * size + least);
            const double bound = sums + 0x1p-8 * (std::abs(sum) + sums) + 0x1p-134;
            worst = std::max(worst, std::abs(static_cast<double>(wide(c[i * n + j])) - sum) / bound);
          }
        }
        INFO(m << " x " << n << " x " << k << ", scale " << scale << ", " << name(gemm_isa()));
        CHECK(worst <= 1);
      }
    }
  }
}

TEST_CASE("numbers that bfloat16 cannot hold come through a product", "[bfloat16]") {
  for (const Isa isa : {Isa::baseline, Isa::avx512, Isa::avx512_bf16, Isa::avx512_amx}) {
    const Limit limit(isa);
    const auto times = [&](std::vector<Bits> a, std::vector<Bits> b) {
      Bits c = 0;
      const auto k = static_cast<int64_t>(a.size());
      gemm(Elem::bf16, product_of(Matrix(a, 1, k, 0), Matrix(b, k, 1, 0), &c));
      return c;
    };
    const Bits one = narrow(1), two = narrow(2), minus = narrow(-1);
    CHECK(is_nan(times({kInfinity, one, one}, {0, one, one})));
    CHECK(is_nan(times({one, kInfinity}, {one, 0})));
    CHECK(is_nan(times({one, kNan, one}, {one, one, one})));
    CHECK(is_nan(times({kInfinity, kInfinity}, {one, minus})));
    CHECK(times({one, kInfinity, one}, {one, minus, one}) == (kInfinity | 0x8000));
    CHECK(times({kLargest, one}, {two, one}) == kInfinity);  // an overflow
    CHECK(times({kLargest, kLargest}, {minus, one}) == 0);
    CHECK(times({kLargest}, {one}) == kLargest);
    // the zero that fills up an odd k meets no infinity
    CHECK(times({kInfinity}, {one}) == kInfinity);
    // subnormal factors are zeros to the instruction, and numbers to all others
    CHECK(times({kSubnormal}, {narrow(0x1p100f)}) ==
          (gemm_isa() >= Isa::avx512_bf16 ? 0 : narrow(wide(kSubnormal) * 0x1p100f)));
    // a subnormal bias is kept, and so is what was there
    Bits c = kSubnormal;
    const Bits bias = 2;
    Gemm none = product_of(Matrix({}, 1, 0, 0), Matrix({}, 0, 1, 0), &c);
    none.bias = &bias;
    none.accumulate = true;
    gemm(Elem::bf16, none);
    CHECK(c == kSubnormal + 2);
    none.accumulate = false;
    gemm(Elem::bf16, none);
    CHECK(c == 2);
    none.bias = nullptr;
    gemm(Elem::bf16, none);
    CHECK(c == 0);
  }
}

TEST_CASE("the rounding of sums of pairs is that of every other machine", "[bfloat16]") {
  if (isas_with_pairs().empty()) return;
  const PairKernels& kernels = *pair_kernels();
  std::vector<float> in;
  for (std::uint32_t top = 0; top < 65536; ++top) {
    for (const std::uint32_t low : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      in.push_back(std::bit_cast<float>(top << 16 | low));
    }
  }
  const auto count = static_cast<int64_t>(in.size());
  std::vector<Bits> want(in.size()), out(in.size());
  f32_to_bf16(count, in.data(), want.data());
  kernels.narrow(count, in.data(), out.data());
  CHECK(out == want);
  for (int64_t n = 1; n < 40; ++n) {  // nothing behind the last is touched
    std::vector<Bits> few(41, 7);
    kernels.narrow(n, in.data() + 1000, few.data());
    CHECK(std::equal(few.begin(), few.begin() + n, want.begin() + 1000));
    CHECK(std::all_of(few.begin() + n, few.end(), [](Bits v) { return v == 7; }));
  }
}
