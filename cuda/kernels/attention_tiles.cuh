// The arithmetic of fused attention on tiles in shared memory: products of rows with rows, and weights times rows. A
// thread has rows ty * R + i and columns tx * N + j of a tile of scores, of 16 x 16 threads; of a tile of sums, groups
// of four columns 64 apart.
#pragma once
#include <vesta/cuda/kernels/attention_parts.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr int kAttentionThreads = 256;
constexpr int kDepth = 32;  // of the size of a head, per step
constexpr int kPad = 4;  // keeps columns of shared memory apart, and 16-byte accesses aligned
template <class C>
constexpr int kScores = sizeof(C) == 8 ? 32 : 64;  // rows and columns of a tile of scores

/// Reads n neighbours at an aligned place of shared memory.
template <int n, class C>
VESTA_DEVICE void read_shared(const C* from, C* to) {
  constexpr int step = n < 4 ? n : 4;
  VESTA_UNROLL
  for (int i = 0; i < n; i += step) {
    const auto pack = *reinterpret_cast<const Elements<C, step>*>(from + i);
    VESTA_UNROLL
    for (int j = 0; j < step; ++j) to[i + j] = pack.v[j];
  }
}

/// The tiles of a block whose result has m rows and `wide` columns.
template <class T, int m, int wide>
struct AttentionTiles {
  using C = compute_of<T>;
  static constexpr int n = kScores<C>, R = m / 16, N = n / 16;
  static constexpr int kLength = 16;  // rows that weights are multiplied with, per step
  static constexpr int kProducts = kDepth * (m + n + 2 * kPad), kRows = kLength * (wide + kPad);
  struct Memory {
    alignas(16) C pieces[kProducts > kRows ? kProducts : kRows];
    alignas(16) C weights[n * (m + kPad)];  // weight (row, column) at column * (m + kPad) + row
  };
  Memory& memory;

  VESTA_DEVICE void set_weight(int row, int column, C weight) const {
    memory.weights[column * (m + kPad) + row] = weight;
  }

  /// Adds the products of m rows of `a` with n rows of `b`.
  VESTA_DEVICE void add_products(C (&sum)[R][N], const HeadRows<T>& a, int64_t a_row, const HeadRows<T>& b,
                                 int64_t b_row) const {
    C *of_a = memory.pieces, *of_b = memory.pieces + kDepth * (m + kPad);
    const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
    for (int64_t first = 0; first < a.columns; first += kDepth) {
      block_barrier();  // what was there before has been read
      load_turned<m>(of_a, a, a_row, first);
      load_turned<n>(of_b, b, b_row, first);
      block_barrier();
      const int depth = a.columns - first < kDepth ? int(a.columns - first) : kDepth;
      for (int k = 0; k < depth; ++k) {
        C x[R], y[N];
        read_shared<R>(of_a + k * (m + kPad) + ty * R, x);
        read_shared<N>(of_b + k * (n + kPad) + tx * N, y);
        VESTA_UNROLL
        for (int i = 0; i < R; ++i) {
          VESTA_UNROLL
          for (int j = 0; j < N; ++j) sum[i][j] = sum[i][j] + x[i] * y[j];
        }
      }
    }
  }

  /// Adds the weights times `count` rows of `of`, columns `first` and on.
  VESTA_DEVICE void add_weighted(C (&sum)[R][wide / 16], const HeadRows<T>& of, int64_t first_row, int count,
                                 int64_t first) const {
    constexpr int packs = wide / kPack;
    const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
    for (int done = 0; done < count; done += kLength) {
      block_barrier();  // what was there before has been read, and the weights are written
      for (int i = int(threadIdx.x); i < kLength * packs; i += kAttentionThreads) {
        const int row = i / packs, column = i % packs * kPack;
        Elements<C, kPack> pack;
        of.load(first_row + done + row, first + column, pack.v);
        *reinterpret_cast<Elements<C, kPack>*>(memory.pieces + row * (wide + kPad) + column) = pack;
      }
      block_barrier();
      const int length = count - done < kLength ? count - done : kLength;
      for (int k = 0; k < length; ++k) {
        C x[R], y[4];
        read_shared<R>(memory.weights + (done + k) * (m + kPad) + ty * R, x);
        VESTA_UNROLL
        for (int g = 0; g < wide / 64; ++g) {
          read_shared<4>(memory.pieces + k * (wide + kPad) + g * 64 + tx * 4, y);
          VESTA_UNROLL
          for (int i = 0; i < R; ++i) {
            VESTA_UNROLL
            for (int j = 0; j < 4; ++j) sum[i][4 * g + j] = sum[i][4 * g + j] + x[i] * y[j];
          }
        }
      }
    }
  }

 private:
  /// Loads kDepth columns of `rows` rows, element (row, k) to `to[k * (rows + kPad) + row]`.
  template <int rows>
  VESTA_DEVICE static void load_turned(C* to, const HeadRows<T>& from, int64_t first_row, int64_t first_k) {
    constexpr int packs = kDepth / kPack;
    for (int i = int(threadIdx.x); i < rows * packs; i += kAttentionThreads) {
      const int row = i / packs, k = i % packs * kPack;
      C v[kPack];
      from.load(first_row + row, first_k + k, v);
      VESTA_UNROLL
      for (int j = 0; j < kPack; ++j) to[(k + j) * (rows + kPad) + row] = v[j];
    }
  }
};

/// Stores a tile of sums; `value(i, sum)` is what becomes of the sums of a thread's row i.
template <int m, int wide, class T, class C, class F>
VESTA_DEVICE void store_sums(const C (&sum)[m / 16][wide / 16], const HeadRows<T>& to, int64_t row, int64_t column,
                             F value) {
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  VESTA_UNROLL
  for (int i = 0; i < m / 16; ++i) {
    const int64_t r = row + ty * (m / 16) + i;
    if (r >= to.rows) continue;
    VESTA_UNROLL
    for (int g = 0; g < wide / 64; ++g) {
      C v[4];
      VESTA_UNROLL
      for (int j = 0; j < 4; ++j) v[j] = value(i, sum[i][4 * g + j]);
      store_columns(to.data + r * to.stride, column + g * 64 + tx * 4, to.columns, to.packed, v);
    }
  }
}

}  // namespace
}  // namespace vesta::cuda
