// Matrix products against a direct loop in wider arithmetic, and equal bits across paths.
#include <catch2/catch.hpp>

#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/parallel.h>

#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace vesta::cpu;
using std::int64_t;

template <class T>
std::vector<T> values(int64_t n, unsigned seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<double> draw(-1, 1);
  std::vector<T> out(static_cast<std::size_t>(n));
  for (T& v : out) v = static_cast<T>(draw(engine));
  return out;
}

template <class T>
bool same_bits(const T* a, const T* b, int64_t n) {
  return std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(T)) == 0;
}

// A rows x cols matrix stored row-major, column-major, or with both strides above one.
enum class Order { rows, columns, sparse };

template <class T>
struct Matrix {
  int64_t rows, cols, row, col;
  std::vector<T> data;
  Matrix(int64_t r, int64_t c, Order order, unsigned seed) : rows(r), cols(c) {
    row = order == Order::rows ? c + 3 : order == Order::columns ? 1 : 2 * c + 1;
    col = order == Order::rows ? 1 : order == Order::columns ? r + 1 : 2;
    data = values<T>(std::max<int64_t>(1, r * row + c * col + 1), 100 + seed);
    const std::vector<T> dense = values<T>(r * c, seed);  // the same values in every order
    for (int64_t i = 0; i < r; ++i)
      for (int64_t j = 0; j < c; ++j) data[i * row + j * col] = dense[i * c + j];
  }
  T at(int64_t i, int64_t j) const { return data[i * row + j * col]; }
};

template <class T>
Gemm product_of(const Matrix<T>& a, const Matrix<T>& b, T* c) {
  return {.m = a.rows,
          .n = b.cols,
          .k = a.cols,
          .a = a.data.data(),
          .a_row = a.row,
          .a_col = a.col,
          .b = b.data.data(),
          .b_row = b.row,
          .b_col = b.col,
          .c = c,
          .c_row = b.cols};
}

template <class T>
void check_product(Elem elem, int64_t m, int64_t n, int64_t k, double tolerance) {
  INFO(m << " x " << n << " x " << k << ", " << name(gemm_isa()));
  const auto bias = values<T>(n, 3), before = values<T>(m * n, 4);
  std::vector<double> want(static_cast<std::size_t>(m * n));
  const Matrix<T> dense_a(m, k, Order::rows, 1), dense_b(k, n, Order::rows, 2);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j)
      for (int64_t l = 0; l < k; ++l) want[i * n + j] += static_cast<double>(dense_a.at(i, l)) * dense_b.at(l, j);
  std::vector<T> first, first_added;
  for (const Order order_a : {Order::rows, Order::columns, Order::sparse}) {
    for (const Order order_b : {Order::rows, Order::columns, Order::sparse}) {
      const Matrix<T> a(m, k, order_a, 1), b(k, n, order_b, 2);
      std::vector<T> c(static_cast<std::size_t>(m * n), T(99));
      Gemm args = product_of(a, b, c.data());
      gemm(elem, args);
      double worst = 0;
      for (int64_t i = 0; i < m * n; ++i) worst = std::max(worst, std::abs(static_cast<double>(c[i]) - want[i]));
      CHECK(worst <= tolerance * static_cast<double>(k + 10));
      std::vector<T> added = before, biased(c.size());
      args.bias = bias.data();
      args.c = biased.data();
      gemm(elem, args);
      for (int64_t i = 0; i < m * n; ++i) worst = std::max<double>(worst, std::abs(biased[i] - (c[i] + bias[i % n])));
      CHECK(worst <= tolerance * static_cast<double>(k + 10));
      args.c = added.data();
      args.accumulate = true;
      gemm(elem, args);
      for (int64_t i = 0; i < m * n; ++i) {
        worst = std::max(worst, std::abs(static_cast<double>(added[i]) - (want[i] + before[i] + bias[i % n])));
      }
      CHECK(worst <= tolerance * static_cast<double>(k + 10));
      if (first.empty()) {
        first = c;
        first_added = added;
      }
      CHECK(c == first);  // the bits do not depend on strides
      CHECK(added == first_added);
    }
  }
}

const std::vector<std::vector<int64_t>> kSizes = {
    {1, 1, 1},     {1, 1, 700},    {1, 17, 5},      {3, 1, 40},    {200, 1, 300},  {2, 3, 4},     {6, 16, 256},
    {7, 17, 257},  {13, 33, 512},  {8, 8, 8},       {32, 64, 64},  {1, 300, 600},  {5, 300, 300}, {100, 10, 64},
    {97, 130, 70}, {33, 65, 1025}, {130, 140, 150}, {1, 2000, 3},  {300, 40, 2},   {2, 70, 515},  {40, 3, 300},
    {100, 4, 257}, {1, 37, 1030},  {70, 2, 9},      {90, 48, 300}, {50, 11, 70},   {3, 70, 515},  {4, 37, 300},
    {6, 50, 257},  {7, 300, 33},   {8, 70, 1030},   {9, 26, 40},   {12, 230, 300}, {16, 130, 520}};

}  // namespace

TEST_CASE("products agree with a direct loop whatever the strides", "[gemm]") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_gemm_isa(isa);
    for (const auto& s : kSizes) {
      check_product<float>(Elem::f32, s[0], s[1], s[2], 1e-7);
      check_product<double>(Elem::f64, s[0], s[1], s[2], 2e-16);
    }
  }
}

TEST_CASE("large products take every path and agree", "[gemm]") {
  limit_gemm_isa(Isa::avx512_amx);
  for (const auto& s :
       std::vector<std::vector<int64_t>>{{300, 310, 320}, {20, 30, 5000}, {64, 1500, 300}, {700, 24, 300}}) {
    check_product<float>(Elem::f32, s[0], s[1], s[2], 1e-7);
  }
}

TEST_CASE("a row does not depend on the rows around it", "[gemm][bits]") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512_bf16}) {
    limit_gemm_isa(isa);
    // 1021 columns: with the gap behind them, rows of B are a page apart.
    for (const auto& [n, k] : std::vector<std::pair<int64_t, int64_t>>{
             {1, 64}, {10, 64}, {64, 64}, {65, 300}, {256, 1000}, {600, 257}, {1021, 300}, {3000, 520}, {16, 5000}}) {
      for (const Order order : {Order::rows, Order::columns}) {
        const Matrix<float> a(257, k, Order::rows, 1), b(k, n, order, 2);
        std::vector<float> whole(static_cast<std::size_t>(257 * n));
        gemm(Elem::f32, product_of(a, b, whole.data()));
        for (const int64_t m : {1, 2, 3, 7, 8, 16, 33, 64, 96}) {
          for (const int64_t first : {int64_t{0}, 257 - m}) {
            INFO("n " << n << " k " << k << " m " << m << " from " << first << ", " << name(gemm_isa()));
            std::vector<float> part(static_cast<std::size_t>(m * n));
            Gemm args = product_of(a, b, part.data());
            args.m = m;
            args.a = a.data.data() + first * a.row;
            gemm(Elem::f32, args);
            CHECK(same_bits(part.data(), whole.data() + first * n, m * n));
          }
        }
      }
    }
  }
}

TEST_CASE("an A of whole columns has the bits of one of whole rows, whoever packs it", "[gemm][bits]") {
  limit_gemm_isa(Isa::avx512_amx);
  const int before = num_threads();
  // Few rows, whose A all threads pack; more, whose A each task packs; a B that is packed in two parts.
  for (const auto& s : std::vector<std::vector<int64_t>>{
           {201, 300, 520}, {257, 1001, 300}, {767, 200, 257}, {800, 300, 300}, {200, 600, 30000}}) {
    const Matrix<float> rows(s[0], s[2], Order::rows, 1), columns(s[0], s[2], Order::columns, 1);
    const Matrix<float> b(s[2], s[1], Order::rows, 2);
    std::vector<float> expected(static_cast<std::size_t>(s[0] * s[1])), got(expected);
    set_num_threads(2);
    gemm(Elem::f32, product_of(rows, b, expected.data()));
    for (const int n : {1, 2, 4}) {
      INFO("m " << s[0] << " n " << s[1] << " k " << s[2] << " threads " << n);
      set_num_threads(n);
      std::fill(got.begin(), got.end(), 0.0F);
      gemm(Elem::f32, product_of(columns, b, got.data()));
      CHECK(same_bits(expected.data(), got.data(), s[0] * s[1]));
    }
  }
  set_num_threads(before);
}

TEST_CASE("bits do not depend on the number of threads", "[gemm][bits]") {
  limit_gemm_isa(Isa::avx512_amx);
  const int before = num_threads();
  for (const auto& s : std::vector<std::vector<int64_t>>{
           {300, 310, 320}, {20, 30, 5000}, {64, 1500, 300}, {1, 2000, 700}, {500, 500, 3}, {2000, 1, 600}}) {
    const Matrix<float> a(s[0], s[2], Order::rows, 1), b(s[2], s[1], Order::rows, 2);
    std::vector<float> one(static_cast<std::size_t>(s[0] * s[1])), many(one);
    set_num_threads(1);
    gemm(Elem::f32, product_of(a, b, one.data()));
    for (const int n : {2, 4}) {
      set_num_threads(n);
      gemm(Elem::f32, product_of(a, b, many.data()));
      CHECK(same_bits(one.data(), many.data(), s[0] * s[1]));
    }
  }
  set_num_threads(before);
}

TEST_CASE("batches: stacked, broadcast and permuted", "[gemm]") {
  limit_gemm_isa(Isa::avx512_amx);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{3, 5, 7}, {40, 60, 90}, {9, 1, 30}, {2, 3, 0}}) {
    const int64_t p = 3, q = 20;
    const auto a = values<float>(p * q * m * k + 1, 1), b = values<float>(q * k * n + 1, 2), bias = values<float>(n, 3);
    std::vector<float> c(static_cast<std::size_t>(p * q * m * n)), want(c);
    // a [p, q, m, k] stored with p innermost of the batch; b [q, k, n] broadcast over p.
    const std::vector<BatchDim> batch{{p, m * k, 0, q * m * n}, {q, p * m * k, k * n, m * n}};
    const Gemm args{.m = m,
                    .n = n,
                    .k = k,
                    .a = a.data(),
                    .a_row = k,
                    .a_col = 1,
                    .b = b.data(),
                    .b_row = n,
                    .b_col = 1,
                    .c = c.data(),
                    .c_row = n,
                    .batch = batch,
                    .bias = bias.data()};
    gemm(Elem::f32, args);
    for (int64_t i = 0; i < p; ++i) {
      for (int64_t j = 0; j < q; ++j) {
        Gemm single = args;
        single.batch = {};
        single.a = a.data() + i * m * k + j * p * m * k;
        single.b = b.data() + j * k * n;
        single.c = want.data() + i * q * m * n + j * m * n;
        gemm(Elem::f32, single);
      }
    }
    CHECK(c == want);
    // One B for all of a stacked batch: folded into one tall product.
    const std::vector<BatchDim> stacked{{p, q * m * k, 0, q * m * n}, {q, m * k, 0, m * n}};
    Gemm tall = args;
    tall.batch = stacked;
    gemm(Elem::f32, tall);
    Gemm folded = args;
    folded.batch = {};
    folded.m = p * q * m;
    folded.c = want.data();
    gemm(Elem::f32, folded);
    CHECK(c == want);
  }
}

namespace {

// Products with one in each lane of a vector, against the same products one by one. The batch lies in two dimensions,
// with gaps; `b_steps` is false for one B.
template <class T>
void check_small_batch(Elem elem, int64_t m, int64_t n, int64_t k, int64_t count, Order order, bool b_steps) {
  INFO(m << " x " << n << " x " << k << ", " << count << " products, " << name(gemm_isa()));
  const Matrix<T> a(m * count, k, order, 1), b(k, n * count, order, 2);
  std::vector<T> c(static_cast<std::size_t>(2 * count * m * (n + 1)), T(7)), want = c;
  const int64_t step = m * (n + 1);
  const std::vector<BatchDim> batch{{2, 0, 0, count * step}, {count, m * a.row, b_steps ? n * b.col : 0, step}};
  Gemm args{.m = m,
            .n = n,
            .k = k,
            .a = a.data.data(),
            .a_row = a.row,
            .a_col = a.col,
            .b = b.data.data(),
            .b_row = b.row,
            .b_col = b.col,
            .c = c.data(),
            .c_row = n + 1};
  Gemm all = args;
  all.batch = batch;
  gemm(elem, all);
  for (int64_t i = 0; i < 2 * count; ++i) {
    Gemm one = args;
    one.a = a.data.data() + i % count * m * a.row;
    one.b = b.data.data() + (b_steps ? i % count * n * b.col : 0);
    one.c = want.data() + i * step;
    gemm(elem, one);
  }
  CHECK(same_bits(c.data(), want.data(), static_cast<int64_t>(c.size())));
}

}  // namespace

TEST_CASE("small products of a batch have the bits of single ones", "[gemm][bits]") {
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_gemm_isa(isa);
    for (const auto& [m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1},
                                                                     {1, 1, 63},
                                                                     {1, 1, 300},
                                                                     {1, 1, 700},
                                                                     {3, 3, 3},
                                                                     {4, 4, 1},
                                                                     {4, 1, 4},
                                                                     {1, 5, 9},
                                                                     {2, 2, 16},
                                                                     {8, 8, 8},
                                                                     {2, 1, 70},
                                                                     {1, 1, 0}}) {
      for (const int64_t count : {1, 4, 7, 16, 17, 200}) {
        for (const Order order : {Order::rows, Order::columns, Order::sparse}) {
          check_small_batch<float>(Elem::f32, m, n, k, count, order, count != 7);
          check_small_batch<double>(Elem::f64, m, n, k, count, order, count != 7);
        }
      }
    }
  }
}

TEST_CASE("a single sum over a long k has the bits of one beside another", "[gemm][bits]") {
  const int before = num_threads();
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    limit_gemm_isa(isa);
    for (const int64_t k : {511, 512, 513, 1024, 5000, 70000}) {
      for (const Order order : {Order::rows, Order::columns, Order::sparse}) {
        const Matrix<float> a(2, k, order, 1), b(k, 2, order, 2);
        const float bias[] = {0.3F, 0.7F};
        for (const int way : {0, 1, 2}) {  // plain, with a bias, added to what is there
          float all[] = {5, 6, 7, 8}, one = 5;
          Gemm args = product_of(a, b, all);
          args.bias = way == 1 ? bias : nullptr;
          args.accumulate = way == 2;
          gemm(Elem::f32, args);
          args.m = args.n = 1, args.c = &one;
          for (const int threads : {1, 4}) {
            INFO("k " << k << " way " << way << " threads " << threads << ", " << name(gemm_isa()));
            set_num_threads(threads), one = 5;
            gemm(Elem::f32, args);
            CHECK(one == all[0]);
          }
        }
      }
    }
  }
  set_num_threads(before);
}

TEST_CASE("a batch with one A has the bits of its products, whatever packs A", "[gemm][bits]") {
  limit_gemm_isa(Isa::avx512_amx);
  const int threads = num_threads();
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{130, 230, 600}, {512, 196, 64}, {37, 1100, 300}, {7, 90, 520}}) {
    for (const bool transposed : {false, true}) {
      const int64_t count = 5;
      const auto a = values<float>(m * k, 1), b = values<float>(count * k * n, 2), bias = values<float>(n, 3);
      const auto before = values<float>(count * m * n, 4);
      const std::vector<BatchDim> batch{{count, 0, k * n, m * n}};
      std::vector<float> c = before, want = before;
      Gemm args{.m = m,
                .n = n,
                .k = k,
                .a = a.data(),
                .a_row = transposed ? 1 : k,
                .a_col = transposed ? m : 1,
                .b = b.data(),
                .b_row = n,
                .b_col = 1,
                .c = c.data(),
                .c_row = n,
                .batch = batch,
                .bias = bias.data(),
                .accumulate = true};
      for (int64_t i = 0; i < count; ++i) {
        Gemm single = args;
        single.batch = {};
        single.b = b.data() + i * k * n;
        single.c = want.data() + i * m * n;
        gemm(Elem::f32, single);
      }
      for (const int t : {1, 2, 4}) {
        INFO(m << " " << n << " " << k << " transposed " << transposed << " threads " << t);
        set_num_threads(t);
        c = before;
        gemm(Elem::f32, args);
        CHECK(c == want);
      }
      set_num_threads(threads);
    }
  }
}

TEST_CASE("a stride of zero broadcasts an operand", "[gemm]") {
  limit_gemm_isa(Isa::avx512_amx);
  const auto v = values<float>(40, 1), b = values<float>(40 * 30, 2);
  std::vector<float> c(20 * 30), row(30);
  const Gemm one{.m = 1,
                 .n = 30,
                 .k = 40,
                 .a = v.data(),
                 .a_row = 40,
                 .a_col = 1,
                 .b = b.data(),
                 .b_row = 30,
                 .b_col = 1,
                 .c = row.data(),
                 .c_row = 30};
  gemm(Elem::f32, one);
  Gemm all = one;
  all.m = 20;
  all.a_row = 0;
  all.c = c.data();
  gemm(Elem::f32, all);
  for (int64_t i = 0; i < 20; ++i) CHECK(same_bits(c.data() + i * 30, row.data(), 30));
  Gemm same_columns = all;  // every column of B is its first
  same_columns.b_col = 0;
  gemm(Elem::f32, same_columns);
  CHECK(c[0] == row[0]);
  CHECK(c[599] == row[0]);
}

TEST_CASE("rows of C may lie apart, and nothing between them is touched", "[gemm]") {
  limit_gemm_isa(Isa::avx512_amx);
  for (const int64_t n : {1, 5, 20, 37}) {
    const Matrix<float> a(50, 20, Order::rows, 1), b(20, n, Order::rows, 2);
    std::vector<float> dense(static_cast<std::size_t>(50 * n)), apart(static_cast<std::size_t>(50 * (n + 9)), 5.f);
    gemm(Elem::f32, product_of(a, b, dense.data()));
    Gemm args = product_of(a, b, apart.data());
    args.c_row = n + 9;
    gemm(Elem::f32, args);
    for (int64_t i = 0; i < 50; ++i) {
      CHECK(same_bits(apart.data() + i * (n + 9), dense.data() + i * n, n));
      for (int64_t j = n; j < n + 9; ++j) CHECK(apart[i * (n + 9) + j] == 5.f);
    }
  }
}

TEST_CASE("an empty k gives zeros, the bias, or what was there", "[gemm]") {
  const std::vector<float> bias{1, 2, 3};
  std::vector<float> c(6, 9.f);
  Gemm args{.m = 2,
            .n = 3,
            .k = 0,
            .a = nullptr,
            .a_row = 0,
            .a_col = 1,
            .b = nullptr,
            .b_row = 3,
            .b_col = 1,
            .c = c.data(),
            .c_row = 3};
  gemm(Elem::f32, args);
  CHECK(c == std::vector<float>(6, 0.f));
  args.bias = bias.data();
  gemm(Elem::f32, args);
  CHECK(c == std::vector<float>{1, 2, 3, 1, 2, 3});
  args.accumulate = true;
  gemm(Elem::f32, args);
  CHECK(c == std::vector<float>{2, 4, 6, 2, 4, 6});
  args.m = 0;
  gemm(Elem::f32, args);
  CHECK(c == std::vector<float>{2, 4, 6, 2, 4, 6});
}

TEST_CASE("not-a-number and infinity come through", "[gemm]") {
  limit_gemm_isa(Isa::avx512_amx);
  std::vector<float> a(7 * 9, 1.f), b(9 * 20, 1.f), c(7 * 20);
  a[3 * 9 + 4] = std::numeric_limits<float>::quiet_NaN();
  b[2 * 20 + 11] = std::numeric_limits<float>::infinity();
  gemm(Elem::f32, {.m = 7,
                   .n = 20,
                   .k = 9,
                   .a = a.data(),
                   .a_row = 9,
                   .a_col = 1,
                   .b = b.data(),
                   .b_row = 20,
                   .b_col = 1,
                   .c = c.data(),
                   .c_row = 20});
  for (int64_t i = 0; i < 7; ++i) {
    for (int64_t j = 0; j < 20; ++j) {
      const float v = c[i * 20 + j];
      CHECK((i == 3 ? std::isnan(v) : j == 11 ? std::isinf(v) : v == 9.f));
    }
  }
}

namespace {

template <class T>
void check_integers(Elem elem) {
  const int64_t m = 5, n = 9, k = 30;
  std::mt19937 engine(1);
  std::vector<T> a(m * k), b(k * n), c(m * n, T(1));
  for (T& v : a) v = static_cast<T>(engine());
  for (T& v : b) v = static_cast<T>(engine());
  gemm(elem, {.m = m,
              .n = n,
              .k = k,
              .a = a.data(),
              .a_row = 1,
              .a_col = m,
              .b = b.data(),
              .b_row = 1,
              .b_col = k,
              .c = c.data(),
              .c_row = n});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      std::uint64_t sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += static_cast<std::uint64_t>(a[l * m + i]) * static_cast<std::uint64_t>(b[j * k + l]);
      }
      CHECK(c[i * n + j] == static_cast<T>(sum));
    }
  }
}

template <class T>
void check_complex(Elem elem, double tolerance) {
  using C = std::complex<T>;
  const int64_t m = 4, n = 6, k = 25;
  const auto parts = values<T>(2 * (m * k + k * n), 1);
  std::vector<C> a(m * k), b(k * n), c(m * n, C(1, 1));
  for (int64_t i = 0; i < m * k; ++i) a[i] = C(parts[2 * i], parts[2 * i + 1]);
  for (int64_t i = 0; i < k * n; ++i) b[i] = C(parts[2 * (m * k + i)], parts[2 * (m * k + i) + 1]);
  gemm(elem, {.m = m,
              .n = n,
              .k = k,
              .a = a.data(),
              .a_row = k,
              .a_col = 1,
              .b = b.data(),
              .b_row = n,
              .b_col = 1,
              .c = c.data(),
              .c_row = n,
              .accumulate = true});
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      std::complex<double> sum(1, 1);
      for (int64_t l = 0; l < k; ++l) sum += std::complex<double>(a[i * k + l]) * std::complex<double>(b[l * n + j]);
      CHECK(std::abs(std::complex<double>(c[i * n + j]) - sum) < tolerance);
    }
  }
}

}  // namespace

TEST_CASE("integers wrap around and complex numbers multiply", "[gemm]") {
  check_integers<std::uint8_t>(Elem::u8);
  check_integers<std::int8_t>(Elem::i8);
  check_integers<std::int16_t>(Elem::i16);
  check_integers<std::int32_t>(Elem::i32);
  check_integers<std::int64_t>(Elem::i64);
  check_complex<float>(Elem::c64, 1e-5);
  check_complex<double>(Elem::c128, 1e-14);
}

TEST_CASE("16-bit floats widen exactly and round to nearest even", "[gemm][half]") {
  std::vector<std::uint16_t> all(65536), back(65536);
  for (int i = 0; i < 65536; ++i) all[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(65536), single(65536);
  bf16_to_f32(65536, all.data(), wide.data());
  f32_to_bf16(65536, wide.data(), back.data());
  for (int i = 0; i < 65536; ++i) {
    CHECK((std::isnan(wide[i]) ? (back[i] & 0x7fff) > 0x7f80 : back[i] == i));
  }
  f16_to_f32(65536, all.data(), wide.data());
  f32_to_f16(65536, wide.data(), back.data());
  for (int i = 0; i < 65536; ++i) {
    f16_to_f32(1, &all[i], &single[i]);  // one at a time: the path without vectors
    const bool nan = (i & 0x7fff) > 0x7c00;
    CHECK(std::isnan(wide[i]) == nan);
    CHECK(std::isnan(single[i]) == nan);
    if (nan) continue;
    CHECK(back[i] == i);
    CHECK(std::bit_cast<std::uint32_t>(single[i]) == std::bit_cast<std::uint32_t>(wide[i]));
    const double exponent = (i >> 10) & 31, fraction = i & 1023;
    const double value = exponent == 31  ? std::numeric_limits<double>::infinity()
                         : exponent == 0 ? std::ldexp(fraction, -24)
                                         : std::ldexp(1024 + fraction, static_cast<int>(exponent) - 25);
    CHECK(wide[i] == static_cast<float>((i & 0x8000) != 0 ? -value : value));
  }
  // Halfway cases and limits, one at a time and eight at a time.
  const std::vector<float> in{1.f + 0x1p-11f, 1.f + 0x3p-11f, 65519.f,   65520.f,
                              0x1p-25f,       0x1.8p-24f,     -0x1p-26f, 0x1.ffcp-15f};
  const std::vector<std::uint16_t> want{0x3c00, 0x3c02, 0x7bff, 0x7c00, 0x0000, 0x0002, 0x8000, 0x0400};
  std::vector<std::uint16_t> out(8), one(8);
  f32_to_f16(8, in.data(), out.data());
  for (int i = 0; i < 8; ++i) f32_to_f16(1, &in[i], &one[i]);
  CHECK(out == one);
  CHECK(out[0] == want[0]);
  CHECK(out[1] == want[1]);
  CHECK(out[2] == want[2]);
  CHECK(out[3] == want[3]);
  CHECK(out[4] == want[4]);
  CHECK(out[5] == want[5]);
  CHECK(out[6] == want[6]);
  const std::vector<float> half{1.f + 0x1p-8f, 1.f + 0x3p-8f, 3.4e38f};
  f32_to_bf16(3, half.data(), out.data());
  CHECK(out[0] == 0x3f80);
  CHECK(out[1] == 0x3f82);
  CHECK(out[2] == 0x7f80);
  // eight at a time as one at a time
  std::vector<float> patterns(1 << 20);
  for (std::uint32_t i = 0; i < patterns.size(); ++i)
    patterns[i] = std::bit_cast<float>(i << 12 | (i * 2654435761u & 4095));
  std::vector<std::uint16_t> rounded(patterns.size()), expected(patterns.size());
  f32_to_bf16(static_cast<int64_t>(patterns.size()), patterns.data(), rounded.data());
  for (std::size_t i = 0; i < patterns.size(); ++i) f32_to_bf16(1, &patterns[i], &expected[i]);
  CHECK(rounded == expected);
}

TEST_CASE("16-bit products are the float ones of the widened operands, rounded once", "[gemm][half]") {
  limit_gemm_isa(Isa::avx512);  // bfloat16 has instructions of its own: bfloat16_product_test.cpp
  struct Half {
    Elem elem;
    void (*widen)(int64_t, const std::uint16_t*, float*);
    void (*narrow)(int64_t, const float*, std::uint16_t*);
  };
  for (const Half& half : {Half{Elem::bf16, bf16_to_f32, f32_to_bf16}, Half{Elem::f16, f16_to_f32, f32_to_f16}}) {
    for (const bool transposed : {false, true}) {
      const int64_t batch = 2, m = 37, n = 29, k = 300;
      const auto narrowed = [&](int64_t count, unsigned seed) {
        const auto in = values<float>(count, seed);
        std::vector<std::uint16_t> out(in.size());
        half.narrow(count, in.data(), out.data());
        return out;
      };
      const auto widened = [&](const std::vector<std::uint16_t>& in) {
        std::vector<float> out(in.size());
        half.widen(static_cast<int64_t>(in.size()), in.data(), out.data());
        return out;
      };
      const auto a = narrowed(batch * m * k, 1), b = narrowed(k * n, 2), bias = narrowed(n, 3);
      auto c = narrowed(batch * m * n, 4);
      const std::vector<BatchDim> dims{{batch, m * k, 0, m * n}};
      const auto wide_a = widened(a), wide_b = widened(b), wide_bias = widened(bias);
      auto wide_c = widened(c);
      Gemm args{.m = m,
                .n = n,
                .k = k,
                .a = a.data(),
                .a_row = transposed ? 1 : k,
                .a_col = transposed ? m : 1,
                .b = b.data(),
                .b_row = transposed ? 1 : n,
                .b_col = transposed ? k : 1,
                .c = c.data(),
                .c_row = n,
                .batch = dims,
                .bias = bias.data(),
                .accumulate = true};
      gemm(half.elem, args);
      args.a = wide_a.data();
      args.b = wide_b.data();
      args.bias = wide_bias.data();
      args.c = wide_c.data();
      gemm(Elem::f32, args);
      std::vector<std::uint16_t> want(wide_c.size());
      half.narrow(static_cast<int64_t>(want.size()), wide_c.data(), want.data());
      CHECK(c == want);
    }
  }
  limit_gemm_isa(Isa::avx512_amx);
}

TEST_CASE("16-bit products of few rows or columns have the bits of the float ones, rounded once",
          "[gemm][half][bits]") {
  limit_gemm_isa(Isa::avx512);
  for (const Elem elem : {Elem::bf16, Elem::f16}) {
    const auto widen = elem == Elem::bf16 ? bf16_to_f32 : f16_to_f32;
    const auto narrow = elem == Elem::bf16 ? f32_to_bf16 : f32_to_f16;
    for (const auto& [m, n] : {std::pair{1, 1000}, {1, 7}, {3, 77}, {8, 133}, {5, 16}, {1000, 1}, {77, 3}, {19, 4}}) {
      for (const int64_t k : {1, 100, 256, 700}) {
        for (const bool with_bias : {false, true}) {
          const int64_t line = k + 3;  // lines lie apart
          const auto narrowed = [&](int64_t count, unsigned seed) {
            const auto in = values<float>(count, seed);
            std::vector<std::uint16_t> out(in.size());
            narrow(count, in.data(), out.data());
            return out;
          };
          const auto a = narrowed(m * line, 1), b = narrowed(n * line, 2), bias = narrowed(n, 3);
          const auto widened = [&](const std::vector<std::uint16_t>& in) {
            std::vector<float> out(in.size());
            widen(static_cast<int64_t>(in.size()), in.data(), out.data());
            return out;
          };
          const auto wide_a = widened(a), wide_b = widened(b), wide_bias = widened(bias);
          std::vector<std::uint16_t> c(m * n), want(m * n);
          std::vector<float> wide_c(m * n);
          Gemm args{.m = m,
                    .n = n,
                    .k = k,
                    .a = a.data(),
                    .a_row = line,
                    .a_col = 1,
                    .b = b.data(),
                    .b_row = 1,
                    .b_col = line,
                    .c = c.data(),
                    .c_row = n,
                    .bias = with_bias ? bias.data() : nullptr};
          gemm(elem, args);
          args.a = wide_a.data(), args.b = wide_b.data(), args.c = wide_c.data();
          args.bias = with_bias ? wide_bias.data() : nullptr;
          gemm(Elem::f32, args);
          narrow(m * n, wide_c.data(), want.data());
          CHECK(c == want);
        }
      }
    }
  }
  limit_gemm_isa(Isa::avx512_amx);
}
