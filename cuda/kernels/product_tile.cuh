// The plain matrix product: a block computes a tile of C from tiles of A and B in shared memory. The operands define A
// and B: strided matrices (matmul.cu), or an image read as the matrix of its windows (conv.cu).
//
// Each element of C is one chain of sums in the order of k: its bits do not depend on the tile's size, the grid or the
// other elements.
#pragma once
#include <type_traits>

#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {

/// The type in which products of T are summed: float for 16-bit floats, unsigned for integers (they wrap around).
template <class T>
using sum_of =
    std::conditional_t<std::is_integral_v<T>, std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>, compute_of<T>>;

constexpr int kTileThreads = 256;  // 16 x 16
constexpr int kTileDepth = 16;     // of k, per step

/// Loads a tile of `rows` x kTileDepth elements, element (row, k) to `to[k * (rows + 1) + row]`. `along_k`: neighbours
/// in memory are neighbours along k.
template <class S, int rows, class Load>
VESTA_DEVICE void load_tile(S* to, bool along_k, int64_t first_row, int64_t first_k, int64_t end_row, int64_t end_k,
                            Load load) {
  for (int i = int(threadIdx.x); i < rows * kTileDepth; i += kTileThreads) {
    const int row = along_k ? i / kTileDepth : i % rows, k = along_k ? i % kTileDepth : i / rows;
    const bool inside = first_row + row < end_row && first_k + k < end_k;
    to[k * (rows + 1) + row] = inside ? load(first_row + row, first_k + k) : S(0);
  }
}

/// Computes tile after tile. Operands O have `m`, `n`, `k`, `count` products, `a_along_k`, `b_along_k`, and `at(i)`,
/// which returns product i: `a(row, k)`, `b(k, col)` and `store(row, col, sum)`.
template <class S, int edge, class O>
VESTA_KERNEL void product_kernel(O o) {
  constexpr int each = edge / 16;  // rows and columns of a thread, 16 apart
  VESTA_SHARED(S, a_tile, kTileDepth * (edge + 1));
  VESTA_SHARED(S, b_tile, kTileDepth * (edge + 1));
  const int tx = int(threadIdx.x % 16), ty = int(threadIdx.x / 16);
  const int64_t columns = (o.n + edge - 1) / edge, tiles = (o.m + edge - 1) / edge * columns;
  for (int64_t number = blockIdx.y; number < o.count; number += gridDim.y) {
    const auto product = o.at(number);
    for (int64_t tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
      const int64_t row = tile / columns * edge, column = tile % columns * edge;
      S sum[each][each];
      for (int i = 0; i < each; ++i)
        for (int j = 0; j < each; ++j) sum[i][j] = S(0);
      for (int64_t first = 0; first < o.k; first += kTileDepth) {
        load_tile<S, edge>(a_tile, o.a_along_k, row, first, o.m, o.k,
                           [&](int64_t r, int64_t k) { return product.a(r, k); });
        load_tile<S, edge>(b_tile, o.b_along_k, column, first, o.n, o.k,
                           [&](int64_t c, int64_t k) { return product.b(k, c); });
        block_barrier();
        const int depth = o.k - first < kTileDepth ? int(o.k - first) : kTileDepth;
        for (int k = 0; k < depth; ++k) {
          S x[each], y[each];
          for (int i = 0; i < each; ++i) x[i] = a_tile[k * (edge + 1) + ty + 16 * i];
          for (int j = 0; j < each; ++j) y[j] = b_tile[k * (edge + 1) + tx + 16 * j];
          for (int i = 0; i < each; ++i)
            for (int j = 0; j < each; ++j) sum[i][j] = sum[i][j] + x[i] * y[j];
        }
        block_barrier();
      }
      for (int i = 0; i < each; ++i) {
        for (int j = 0; j < each; ++j) {
          const int64_t r = row + ty + 16 * i, c = column + tx + 16 * j;
          if (r < o.m && c < o.n) product.store(r, c, sum[i][j]);
        }
      }
    }
  }
}

template <class S, int edge, class O>
void queue_product(const char* name, StreamHandle stream, const O& o) {
  const int64_t tiles = ((o.m + edge - 1) / edge) * ((o.n + edge - 1) / edge), most = INT32_MAX;
  LaunchShape shape;
  shape.grid[0] = unsigned(tiles < most ? tiles : most);
  shape.grid[1] = unsigned(o.count < 65535 ? o.count : 65535);
  shape.block[0] = kTileThreads;
  shape.stream = stream;
  launch_block(name, product_kernel<S, edge, O>, shape, o);
}

/// Queues the products with tiles that suit their size. None of `m`, `n`, `count` is 0.
template <class S, class O>
void run_product(const char* name, StreamHandle stream, const O& o) {
  if (o.m <= 16 || o.n <= 16) queue_product<S, 16>(name, stream, o);
  else queue_product<S, sizeof(S) < 16 ? 64 : 32>(name, stream, o);
}

}  // namespace vesta::cuda
