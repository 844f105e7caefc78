// Matrix products. A tour: gemm() picks the element type. Floats go to Product<T>, which folds the batch, turns a
// single column into a row, and chooses between
//   - inline: small products, on this thread, straight from the operands; few rows or columns, whatever the other
//     operand's size, from its lines as they lie in memory;
//   - independent tasks: a grid of (batch, rows, columns), each task packing what it needs;
//   - a batch with one A that is packed: all threads pack it once, tasks are products and columns;
//   - shared panels: one large product; B is packed once by all threads, then row blocks are computed from it; so is
//     A where there are few rows;
//   - split k: few elements and a long k; the blocks of k are computed apart and added in order;
//   - a batch of small products: each is a lane of vectors.
// All give the same bits: Note [One chain of sums] in gemm_kernel.h. 16-bit floats are widened to float, or taken in
// pairs where the machine multiplies those (Note [Pairs of bfloat16]); float sums are rounded in the cache.
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_exact.h>
#include <vesta/core/cpu/gemm_kept.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/gemm_operands.h>
#include <vesta/core/cpu/gemm_tasks.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <type_traits>

namespace vesta::cpu {
namespace {

using std::int64_t;

// Tuned with benchmarks/cpp/dnn_bench (matmul section).
constexpr int64_t kRowsPerBlock = 192;            // a packed block of A, 192 KiB of floats, stays in L2
constexpr int64_t kSerialWork = 512 * 1024;      // m * n * k below which a second thread costs more than it gives
constexpr int64_t kSerialThin = 64 * 1024;       // where lines are read for one or two sums each: memory is slower
constexpr int64_t kCopyGap = 16;                  // elements between copied rows of A: a line of floats
constexpr int64_t kTransposedRows = 8;            // tiles of rows of a transposed product whose sums are kept, in L1
constexpr int64_t kThinColumnsPerRow = 12;  // columns of such a B in a task, which copies the rows, for each row
constexpr int64_t kTransposedColumns = 24;  // columns of a task whose product is transposed: rows of two tiles
constexpr int64_t kRowsPerTask = 32;  // of A, at least
constexpr int64_t kThinLines = 32;  // lines that are read together
constexpr int64_t kKeptElements = 192 * 1024;  // most elements of a block of A, over all of k, that stay in L2
constexpr int64_t kStripPanels = 4;  // panels of B for which the sums of a block of A are kept, over all of k
constexpr int64_t kSharedRows = 768;  // rows of a packed A up to which all threads pack it, and columns are cut
constexpr int64_t kKeptRows = 768;  // up to which the panels of a weight are kept: packing takes 24 rows' time
constexpr int64_t kKeptPanels = 16 * 1024;  // elements of such a weight, at least
constexpr int64_t kSharedElements = 16 << 20;  // most elements of B packed at a time
constexpr int64_t kPartialElements = 4 << 20;  // most elements of partial sums alive when k is split

// Calls compute(p), with floats for a result in 16 bits, which are rounded afterwards.
template <class T, class F>
void with_sums(const Matrices<T>& p, const F& compute) {
  if constexpr (std::is_same_v<T, float>) {
    if (p.half != nullptr) {
      ScratchArray<float> sums(Scratch::output, static_cast<std::size_t>(p.m * p.n));
      Matrices<float> q = p;
      q.half = nullptr;
      q.c = sums.data();
      q.c_row = p.n;
      for (int64_t i = 0; i < p.m && p.accumulate; ++i) p.format->widen(p.n, p.half + i * p.c_row, q.c + i * p.n);
      compute(q);
      for (int64_t i = 0; i < p.m; ++i) p.format->narrow(p.n, q.c + i * p.n, p.half + i * p.c_row);
      return;
    }
  }
  compute(p);
}

// Fills in a Block for the k block starting at k0; operands are set by the caller.
template <class T>
Block<T> block_at(const Matrices<T>& p, int64_t k0) {
  Block<T> block{};
  block.m = p.m;
  block.n = p.n;
  block.k = std::min(kBlockK, p.k - k0);
  block.c = p.c;
  block.c_row = p.c_row;
  block.accumulate = p.accumulate || k0 > 0;
  block.bias = k0 + block.k == p.k ? p.bias : nullptr;
  return block;
}

// Points the block at A in place; A must have a unit stride (or a single row).
template <class T>
void read_a(const GemmKernels<T>& kernels, const Matrices<T>& p, int64_t k0, Block<T>& block) {
  const bool by_rows = p.a_col == 1 || p.k == 1;
  block.a = p.a + k0 * p.a_col;
  block.a_row = by_rows ? p.a_row : 1;
  block.a_col = by_rows ? 1 : p.a_col;
  block.a_tile = kernels.tile_rows * p.a_row;
}

template <class T>
void use_packed_b(const GemmKernels<T>& kernels, const T* packed, Block<T>& block) {
  block.b = packed;
  block.b_row = kernels.tile_cols;
  block.b_tile = kernels.tile_cols * block.k;
}

// Returns the number of elements prepare_a needs for `rows` rows.
template <class T>
int64_t room_for_a(const GemmKernels<T>& kernels, const Matrices<T>& p, int64_t rows) {
  return (std::min(p.k, kBlockK) + kCopyGap) * round_up(rows, kernels.tile_rows);
}

// Points the block at A in place, or at what copy_a wrote to `room`.
template <class T>
void use_a(const GemmKernels<T>& kernels, const Matrices<T>& p, RowsOfA how, int64_t k0, const T* room,
           Block<T>& block) {
  if (how == RowsOfA::in_place) return read_a(kernels, p, k0, block);
  if (how == RowsOfA::packed) return kernels.use_packed_a(room, block);
  block.a = room;
  block.a_row = block.k + kCopyGap;
  block.a_col = 1;
  block.a_tile = kernels.tile_rows * block.a_row;
}

// Copies or packs the block of A from k0 on into `room` if it is not read in place.
template <class T>
void copy_a(const GemmKernels<T>& kernels, const Matrices<T>& p, RowsOfA how, int64_t k0, T* room) {
  const int64_t k = std::min(kBlockK, p.k - k0);
  const T* const from = p.a + k0 * p.a_col;
  if (how == RowsOfA::packed) kernels.pack_a(p.m, k, from, p.a_row, p.a_col, room);
  for (int64_t i = 0; i < p.m && how == RowsOfA::copied; ++i) {
    std::copy_n(from + i * p.a_row, k, room + i * (k + kCopyGap));
  }
}

template <class T>
void prepare_a(const GemmKernels<T>& kernels, const Matrices<T>& p, RowsOfA how, int64_t k0, T* room, Block<T>& block) {
  copy_a(kernels, p, how, k0, room);
  use_a(kernels, p, how, k0, static_cast<const T*>(room), block);
}

// Computes a product with few rows or columns from the lines of the other operand, which are read once, in place.
template <class T>
void multiply_thin(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  const bool rows = has_few_rows(p);
  ThinBlock<T> block = rows ? ThinBlock<T>{p.n, p.m, p.k, p.b, p.b_col, p.a, p.c, 1, p.c_row, p.bias, nullptr}
                            : ThinBlock<T>{p.m, p.n, p.k, p.a, p.a_row, p.b, p.c, p.c_row, 1, nullptr, p.bias};
  const int64_t step = rows ? p.a_col : p.b_row, vector = rows ? p.a_row : p.b_col;
  if (block.few > 1 || step != 1) {
    const int64_t width = thin_width(block.few);
    T* const room = static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * p.k * width));
    for (int64_t k = 0; k < p.k; ++k) {
      for (int64_t f = 0; f < width; ++f)
        room[k * width + f] = f < block.few ? block.vectors[f * vector + k * step] : T(0);
    }
    block.vectors = room;
  }
  kernels.thin(block);
}

template <class T>
void multiply_transposed(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  const int64_t nc = kernels.tile_cols, width = nc / 2, rows = kTransposedRows * kernels.tile_rows;
  const Matrices<T> q = transposed(p, width);
  T* const packed = static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * static_cast<std::size_t>(nc * p.k)));
  for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
    kernels.pack_b(q.n, std::min(kBlockK, p.k - k0), q.b + k0 * q.b_row, q.b_row, q.b_col, packed + k0 * nc);
  }
  T* const sums = static_cast<T*>(thread_scratch(Scratch::pack_a, sizeof(T) * static_cast<std::size_t>(rows * width)));
  for (int64_t i = 0; i < q.m; i += rows) {
    Matrices<T> r = q.rows(i, std::min(q.m, i + rows));
    r.c = sums;
    for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
      Block<T> block = block_at(r, k0);
      read_a(kernels, r, k0, block);
      use_packed_b(kernels, static_cast<const T*>(packed + k0 * nc), block);
      if (p.bias != nullptr && k0 + block.k == p.k) block.row_bias = p.bias + i;
      kernels.block(block);
    }
    for (int64_t f = 0; f < p.m; ++f) {
      for (int64_t l = 0; l < r.m; ++l) p.c[f * p.c_row + i + l] = sums[l * width + f];
    }
  }
}

// Computes one product on this thread.
template <class T>
void multiply(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  if (p.half != nullptr) return with_sums(p, [&](const Matrices<T>& q) { multiply(kernels, q); });
  if (has_few_rows(p) || has_few_columns(p)) return multiply_thin(kernels, p);
  if (has_some_rows(kernels, p)) return multiply_transposed(kernels, p);
  const bool b_in_place = reads_b_in_place(kernels, p);
  RowsOfA how = rows_of_a(kernels, p);
  if (b_in_place && how == RowsOfA::packed && p.a_col == 1) {  // its tiles take rows
    how = page_apart<T>(p.a_row) ? RowsOfA::copied : RowsOfA::in_place;
  }
  const bool a_in_place = how == RowsOfA::in_place;
  const int64_t depth = std::min(p.k, kBlockK), nc = kernels.tile_cols;
  T* const a_room = a_in_place
                        ? nullptr
                        : static_cast<T*>(thread_scratch(
                              Scratch::pack_a, sizeof(T) * room_for_a(kernels, p, std::min(p.m, kRowsPerBlock))));
  // Where A is not packed, a strip of B need only be larger than L1; a packed block of A should serve so many columns
  // that packing it is a tenth of the work.
  const int64_t panels = how != RowsOfA::packed ? 8 : std::clamp<int64_t>(10 * p.m / nc, 8, 64);
  const int64_t strip = std::min(round_up(p.n, nc), panels * nc);
  T* const b_room = b_in_place ? nullptr : static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * depth * strip));
  const int64_t columns = b_in_place ? p.n : strip;
  for (int64_t j = 0; j < p.n; j += columns) {
    const Matrices<T> q = p.columns(j, std::min(p.n, j + columns));
    for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
      const int64_t k_len = std::min(kBlockK, p.k - k0);
      if (!b_in_place) kernels.pack_b(q.n, k_len, q.b + k0 * q.b_row, q.b_row, q.b_col, b_room);
      const int64_t rows = a_in_place ? p.m : kRowsPerBlock;
      for (int64_t i = 0; i < p.m; i += rows) {
        const Matrices<T> r = q.rows(i, std::min(p.m, i + rows));
        Block<T> block = block_at(r, k0);
        prepare_a(kernels, r, how, k0, a_room, block);
        if (b_in_place) {
          block.b = r.b + k0 * r.b_row;
          block.b_row = r.b_row;
          block.b_tile = nc;
        } else {
          use_packed_b(kernels, static_cast<const T*>(b_room), block);
        }
        kernels.block(block);
      }
    }
  }
}

// Computes one large product: all threads pack B, then all compute row blocks from it. `kept` is B, packed before.
template <class T>
void multiply_shared(const GemmKernels<T>& kernels, const Matrices<T>& p, const T* kept = nullptr) {
  const int64_t nc = kernels.tile_cols, k_blocks = ceil_div(p.k, kBlockK);
  const int64_t padded_rows = round_up(p.m, kernels.tile_rows);
  const int64_t width =
      kept != nullptr ? round_up(p.n, nc) : std::max(nc, std::min(round_up(p.n, nc), kSharedElements / p.k / nc * nc));
  const RowsOfA how = rows_of_a(kernels, p);
  // What is packed of A should serve many columns: where there are few, only the rows are cut. Cut too low, a block of
  // rows would fetch all of B for a few tiles: of few rows, A is packed once for tasks that cut the columns as well.
  const bool low = how == RowsOfA::packed && (p.n <= 4 * p.m || kept != nullptr);
  const bool shares_a = low && p.m < kSharedRows && p.m * p.k <= kSharedElements;
  const Cut rows =
      Cut::into(p.m, kernels.tile_rows, low && !shares_a ? std::min(kRowsPerBlock, ceil_div(p.m, 8)) : kRowsPerBlock);
  const int64_t packs = kept != nullptr ? 0 : width;
  ScratchArray<T> packed(Scratch::operand_b, static_cast<std::size_t>((packs + (shares_a ? padded_rows : 0)) * p.k));
  const T* const b_panels = kept != nullptr ? kept : packed.data();
  for (int64_t j = 0; j < p.n; j += width) {
    const Matrices<T> q = p.columns(j, std::min(p.n, j + width));
    const int64_t padded = round_up(q.n, nc);
    T* const a_tiles = shares_a ? packed.data() + packs * p.k : nullptr;
    const SharedPanels<T> panels{kernels, a_tiles, packed.data(), padded, kept != nullptr};
    panels.pack(q, j == 0);
    // Strips of columns whose sums stay in L2 over all of k, if a block of rows does, too.
    const int64_t size = room_for_a(kernels, p, rows.highest());
    const bool keeps_a = shares_a || rows.highest() * p.k <= kKeptElements;
    // Few row blocks: cut the columns as well, so that there is work for more threads.
    const int64_t least = kept != nullptr ? 1 : shares_a ? 2 : 8;  // what is packed for a task should serve some panels
    const int64_t most = rows.count >= 8 ? q.n : std::max<int64_t>(least * nc, ceil_div(q.n, 4));
    const Cut columns = Cut::into(q.n, nc, most);
    parallel_for(rows.count * columns.count, 1, [&](int64_t begin, int64_t end) {
      const std::size_t bytes = sizeof(T) * static_cast<std::size_t>((keeps_a ? k_blocks : 1) * size);
      const bool in_room = how != RowsOfA::in_place && !shares_a;
      T* const room = in_room ? static_cast<T*>(thread_scratch(Scratch::pack_a, bytes)) : nullptr;
      for (int64_t t = begin; t < end; ++t) {
        const int64_t row = rows.begin(t / columns.count), j0 = t % columns.count, c0 = columns.begin(j0);
        const Matrices<T> part = q.rows(row, rows.end(t / columns.count)).columns(c0, columns.end(j0));
        for (int64_t b = 0; b < k_blocks && keeps_a && !shares_a; ++b) {
          copy_a(kernels, part, how, b * kBlockK, room + b * size);
        }
        const int64_t strip = keeps_a ? kStripPanels * nc : part.n;
        for (int64_t s = 0; s < part.n; s += strip) {
          with_sums(part.columns(s, std::min(part.n, s + strip)), [&](const Matrices<T>& r) {
            for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
              Block<T> block = block_at(r, k0);
              if (shares_a) kernels.use_packed_a(panels.a + k0 * padded_rows + row * block.k, block);
              else if (keeps_a) use_a(kernels, r, how, k0, static_cast<const T*>(room + k0 / kBlockK * size), block);
              else prepare_a(kernels, r, how, k0, room, block);
              use_packed_b(kernels, b_panels + k0 * padded + (c0 + s) * block.k, block);
              kernels.block(block);
            }
          });
        }
      }
    });
  }
}

// Computes one number: whole blocks of k are a batch of products, which are added in the order of k.
template <class T>
void multiply_long_dot(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  const int64_t whole = p.k / kBlockK, blocks = ceil_div(p.k, kBlockK);
  ScratchArray<T> sums(Scratch::partial, static_cast<std::size_t>(blocks));
  const auto add = [&](int64_t first, int64_t count, int64_t k) {
    const int64_t at = first * kBlockK;
    kernels.small_batch({count, 1, 1, k, p.a + at * p.a_col, 0, p.a_col, kBlockK * p.a_col, p.b + at * p.b_row, p.b_row,
                         0, kBlockK * p.b_row, sums.data() + first, 0, 1});
  };
  constexpr int64_t kBlocks = kElementGrain / kBlockK;  // a thread's, at a time
  parallel_for(ceil_div(whole, kBlocks), 1, [&](int64_t begin, int64_t end) {
    add(begin * kBlocks, std::min(whole, end * kBlocks) - begin * kBlocks, kBlockK);
  });
  if (whole < blocks) add(whole, 1, p.k - whole * kBlockK);
  T sum = p.accumulate ? p.c[0] + sums.data()[0] : sums.data()[0];
  for (int64_t i = 1; i < blocks; ++i) sum = sum + sums.data()[i];
  p.c[0] = p.bias != nullptr ? sum + p.bias[0] : sum;
}

// Computes few elements with a long k: every block of k is a product of its own, and they are added in the order of k.
template <class T>
void multiply_split(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  if (p.half != nullptr) return with_sums(p, [&](const Matrices<T>& q) { multiply_split(kernels, q); });
  const int64_t k_blocks = ceil_div(p.k, kBlockK), size = p.m * p.n;
  const int64_t wave = std::max<int64_t>(1, std::min(k_blocks, kPartialElements / size));
  ScratchArray<T> partial(Scratch::partial, static_cast<std::size_t>(wave * size));
  for (int64_t first = 0; first < k_blocks; first += wave) {
    const int64_t count = std::min(wave, k_blocks - first);
    parallel_for(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        Matrices<T> part = p;
        const int64_t k0 = (first + t) * kBlockK;
        part.k = std::min(kBlockK, p.k - k0);
        part.a += k0 * p.a_col;
        part.b += k0 * p.b_row;
        part.c = partial.data() + t * size;
        part.c_row = p.n;
        part.bias = nullptr;
        part.accumulate = false;
        multiply(kernels, part);
      }
    });
    const bool last = first + count == k_blocks;
    parallel_for(p.m, std::max<int64_t>(1, 16384 / p.n / count), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* const c = p.c + i * p.c_row;
        for (int64_t t = 0; t < count; ++t) {
          const T* const in = partial.data() + t * size + i * p.n;
          if (first + t == 0 && !p.accumulate) {
            std::copy(in, in + p.n, c);
          } else {
            for (int64_t j = 0; j < p.n; ++j) c[j] = c[j] + in[j];
          }
        }
        if (last && p.bias != nullptr) {
          for (int64_t j = 0; j < p.n; ++j) c[j] = c[j] + p.bias[j];
        }
      }
    });
  }
}

// The tasks of each product of a batch: cuts of its rows and columns.
template <class T>
struct TaskGrid {
  Cut rows, columns;
  int64_t tasks() const { return rows.count * columns.count; }
  int64_t grain(const Matrices<T>& p) const {
    return std::max<int64_t>(1, kSerialWork / 8 * tasks() / std::max<int64_t>(p.m * p.n * p.k, 1));
  }
};

// Returns whether multiply() would pack B.
template <class T>
bool packs_b_in_tasks(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  return !has_few_rows(p) && !has_few_columns(p) && !has_some_rows(kernels, p) && !reads_b_in_place(kernels, p);
}

template <class T>
TaskGrid<T> cut_grid(const GemmKernels<T>& kernels, int64_t batch, const Matrices<T>& shape) {
  const int64_t work = shape.m * shape.n * shape.k;
  const bool is_transposed = has_some_rows(kernels, shape);
  const int64_t tile_columns = is_transposed ? kTransposedColumns : kernels.tile_cols;
  int64_t down = 1, across = 1;
  if (num_threads() > 1 && batch < kTasks && work > kSerialWork / 8) {
    const int64_t pieces = std::min(ceil_div(kTasks, batch), std::max<int64_t>(1, work / (kSerialWork / 8)));
    across = std::min(pieces, ceil_div(shape.n, tile_columns));
    if (has_few_rows(shape)) across = std::min(across, ceil_div(shape.n, kThinColumnsPerRow * shape.m));
    // Few rows stay together, if the columns give each thread a task: what a task reads of B serves more of them.
    const int64_t most = across * batch >= num_threads() ? std::max<int64_t>(1, shape.m / kRowsPerTask)
                                                         : ceil_div(shape.m, 4 * kernels.tile_rows);
    down = std::min(ceil_div(pieces, across), most);
    if (down > 1 && packs_b_in_tasks(kernels, shape)) down = cheapest_rows(batch * across, shape.m, down);
  }
  // Rows that are the lanes of vectors come in whole ones (compare_torch.py, mv 1024).
  const int64_t tile_rows = has_few_columns(shape) ? kernels.tile_cols : kernels.tile_rows;
  return {Cut(shape.m, tile_rows, down), Cut(shape.n, tile_columns, across)};
}

// Computes a batch of products: `at(index)` gives the matrices of one. Cuts each into enough pieces for the threads.
template <class T, class At>
void multiply_grid(const GemmKernels<T>& kernels, int64_t batch, const Matrices<T>& shape, const At& at) {
  const TaskGrid<T> grid = cut_grid(kernels, batch, shape);
  parallel_for(batch * grid.tasks(), grid.grain(shape), [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t % grid.tasks() / grid.columns.count, j = t % grid.columns.count;
      multiply(kernels, at(t / grid.tasks())
                            .rows(grid.rows.begin(i), grid.rows.end(i))
                            .columns(grid.columns.begin(j), grid.columns.end(j)));
    }
  });
}

// Returns whether products of a batch that share their A are computed by multiply_common: where each task would pack A.
template <class T>
bool packs_common(const GemmKernels<T>& kernels, int64_t batch, const Matrices<T>& p) {
  if (p.half != nullptr || has_few_rows(p) || has_few_columns(p) || has_some_rows(kernels, p)) return false;
  const Cut columns = cut_grid(kernels, batch, p).columns;
  const Matrices<T> part = p.columns(0, columns.highest());
  return p.m * p.k <= kSharedElements && rows_of_a(kernels, part) == RowsOfA::packed &&
         !reads_b_in_place(kernels, part);
}

// Computes a batch of products that share their A, which is packed once.
template <class T, class At>
void multiply_common(const GemmKernels<T>& kernels, int64_t batch, const Matrices<T>& shape, const At& at) {
  const int64_t mr = kernels.tile_rows, nc = kernels.tile_cols, padded = round_up(shape.m, mr);
  const int64_t k_blocks = ceil_div(shape.k, kBlockK), tall = 8 * mr, talls = ceil_div(shape.m, tall);
  ScratchArray<T> packed(Scratch::operand_b, static_cast<std::size_t>(padded * shape.k));
  parallel_for(talls * k_blocks, std::max<int64_t>(1, kElementGrain / (tall * kBlockK)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   pack_rows(kernels, shape, t % talls * tall, tall, t / talls * kBlockK, packed.data());
                 }
               });
  const TaskGrid<T> grid = cut_grid(kernels, batch, shape);
  const int64_t strip = std::min(grid.columns.highest(), 64 * nc), high = kRowsPerBlock / mr * mr;
  parallel_for(batch * grid.tasks(), grid.grain(shape), [&](int64_t begin, int64_t end) {
    T* const room = static_cast<T*>(thread_scratch(Scratch::pack_b, sizeof(T) * std::min(shape.k, kBlockK) * strip));
    for (int64_t t = begin; t < end; ++t) {
      const int64_t i = t % grid.tasks() / grid.columns.count, j = t % grid.columns.count, row = grid.rows.begin(i);
      const Matrices<T> p = at(t / grid.tasks()).rows(row, grid.rows.end(i));
      for (int64_t c = grid.columns.begin(j); c < grid.columns.end(j); c += strip) {
        const Matrices<T> q = p.columns(c, std::min(grid.columns.end(j), c + strip));
        for (int64_t k0 = 0; k0 < q.k; k0 += kBlockK) {
          Block<T> block = block_at(q, k0);
          kernels.pack_b(q.n, block.k, q.b + k0 * q.b_row, q.b_row, q.b_col, room);
          use_packed_b(kernels, static_cast<const T*>(room), block);
          kernels.use_packed_a(packed.data() + k0 * padded + row * block.k, block);
          for (int64_t r = 0; r < q.m; r += high) {  // of these rows A stays in L2 while panels pass
            Block<T> part = block;
            part.m = std::min(high, q.m - r);
            part.a += r * block.k;
            part.c += r * q.c_row;
            kernels.block(part);
          }
        }
      }
    }
  });
}

template <class T>
void multiply_one(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  const int64_t work = p.m * p.n * p.k;
  const int64_t serial = has_few_rows(p)      ? kSerialThin * std::max<int64_t>(1, p.m / 2)
                         : has_few_columns(p) ? kSerialThin
                                              : kSerialWork;
  if (p.m * p.n == 1 && p.k >= 2 * kBlockK && p.half == nullptr && kernels.small_batch != nullptr) {
    return multiply_long_dot(kernels, p);
  }
  if (work <= serial) return multiply(kernels, p);
  const int64_t wide = std::min<int64_t>(4 * kernels.tile_cols, 512 / sizeof(T));  // eight vectors of AVX-512 at most
  // Lines are read as they lie in memory, whole where there are enough of them.
  const int64_t tiles = has_few_rows(p)      ? ceil_div(p.n, kThinLines)
                        : has_few_columns(p) ? ceil_div(p.m, kThinLines)
                                             : ceil_div(p.m, 8 * kernels.tile_rows) * ceil_div(p.n, wide);
  const bool long_k = tiles < 8 && p.k >= 4 * kBlockK && p.m * p.n <= kPartialElements / 4;
  if (long_k && num_threads() > 1 && !in_parallel_region()) return multiply_split(kernels, p);
  if (p.m > kRowsPerBlock && !has_few_columns(p)) return multiply_shared(kernels, p);
  multiply_grid(kernels, 1, p, [&](int64_t) { return p; });
}

// A batch whose matrices of A and C follow each other, with one B, is one taller product.
template <class T>
bool fold_batch(std::span<const BatchDim>& batch, Matrices<T>& p) {
  while (!batch.empty()) {
    const BatchDim& inner = batch.back();
    if (inner.size != 1) {
      const bool stacked = inner.b == 0 && inner.c == p.m * p.c_row && inner.a == p.m * p.a_row;
      if (!stacked) return false;
      p.m *= inner.size;
    }
    batch = batch.first(batch.size() - 1);
  }
  return true;
}

// c[m, 1] = a @ b is the row b^T @ a^T: its vectors run along m instead of holding one column each. Not for an A of
// whole rows, which has_few_columns.
template <class T>
void multiply_column(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  if (p.half != nullptr) return with_sums(p, [&](const Matrices<T>& q) { multiply_column(kernels, q); });
  Matrices<T> row = p;
  row.m = 1;
  row.n = p.m;
  row.a = p.b;
  row.a_row = p.b_col;
  row.a_col = p.b_row;
  row.b = p.a;
  row.b_row = p.a_col;
  row.b_col = p.a_row;
  row.bias = nullptr;
  if (p.c_row == 1 && p.bias == nullptr) return multiply_one(kernels, row);
  ScratchArray<T> out(Scratch::result, static_cast<std::size_t>(p.m));
  row.c = out.data();
  if (p.accumulate) {
    for (int64_t i = 0; i < p.m; ++i) out.data()[i] = p.c[i * p.c_row];
  }
  multiply_one(kernels, row);
  for (int64_t i = 0; i < p.m; ++i) {
    p.c[i * p.c_row] = p.bias != nullptr ? out.data()[i] + p.bias[0] : out.data()[i];
  }
}

// Handles k = 0: there is nothing to add up.
template <class T>
void fill_empty(const Matrices<T>& p) {
  if (p.half != nullptr) return with_sums(p, [](const Matrices<T>& q) { fill_empty(q); });
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      T& c = p.c[i * p.c_row + j];
      if (!p.accumulate) c = T(0);
      if (p.bias != nullptr) c = c + p.bias[j];
    }
  }
}

// Computes products so small that vectors hold a product in each lane; returns false if they are not.
template <class T>
bool multiply_small(const GemmKernels<T>& kernels, const Matrices<T>& p, std::span<const BatchDim> batch) {
  constexpr int64_t kFewest = 4;  // products for which that pays
  BatchDim inner = batch.back();
  batch = batch.first(batch.size() - 1);
  while (!batch.empty() && batch.back().a == inner.size * inner.a && batch.back().b == inner.size * inner.b &&
         batch.back().c == inner.size * inner.c) {
    inner.size *= batch.back().size;
    batch = batch.first(batch.size() - 1);
  }
  const SmallBatch<T> all{inner.size, p.m,     p.n,     p.k,     p.a, p.a_row, p.a_col, inner.a,
                          p.b,        p.b_row, p.b_col, inner.b, p.c, p.c_row, inner.c};
  const bool plain = p.half == nullptr && p.bias == nullptr && !p.accumulate;
  if (kernels.small_batch == nullptr || !plain || !all.fits() || inner.size < kFewest) return false;
  const BatchSteps steps{batch};
  // A piece is products of one step of the outer dimensions.
  const int64_t size = std::max<int64_t>(64, kSerialWork / 16 / (p.m * p.n * p.k) / 64 * 64);
  const int64_t pieces = ceil_div(inner.size, size);
  parallel_for(steps.count() * pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % pieces * size;
      const auto at = steps.at(t / pieces);
      SmallBatch<T> part = all;
      part.count = std::min(size, inner.size - first);
      part.a += at.a + first * inner.a;
      part.b += at.b + first * inner.b;
      part.c += at.c + first * inner.c;
      kernels.small_batch(part);
    }
  });
  return true;
}

template <class T>
void multiply_batch(const GemmKernels<T>& kernels, Matrices<T> p, std::span<const BatchDim> batch) {
  const bool one = fold_batch(batch, p);
  const bool column = p.n == 1 && p.m > 1 && !has_few_columns(p);
  if (one && p.k != 0) return column ? multiply_column(kernels, p) : multiply_one(kernels, p);
  const BatchSteps steps{batch};
  const int64_t count = steps.count();
  const auto at = [&](int64_t index) { return shifted(p, steps.at(index)); };
  if (p.k == 0) {
    for (int64_t i = 0; i < count; ++i) fill_empty(at(i));
  } else if (multiply_small(kernels, p, batch)) {
    return;
  } else if (column) {
    parallel_for(count, std::max<int64_t>(1, kSerialWork / 8 / (p.m * p.k)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) multiply_column(kernels, at(i));
    });
  } else if (count < 4 && p.m * p.n * p.k > kSerialWork) {
    for (int64_t i = 0; i < count; ++i) multiply_one(kernels, at(i));
  } else if (std::all_of(batch.begin(), batch.end(), [](const BatchDim& d) { return d.a == 0; }) &&
             packs_common(kernels, count, p)) {
    multiply_common(kernels, count, p, at);
  } else {
    multiply_grid(kernels, count, p, at);
  }
}

// Returns whether the panels of a weight B are worth keeping: more rows would make nothing of the time they take, and
// a single one takes as long as the weight's lines do, which memory limits.
template <class T>
bool keeps_panels(const GemmKernels<T>& kernels, const Matrices<T>& p) {
  return p.m > 1 && p.m <= kKeptRows && p.n * p.k >= kKeptPanels && !has_few_columns(p) &&
         (p.half != nullptr || !needs_no_packing(kernels, p));
}

template <class T>
void float_gemm(const Gemm& args) {
  const GemmKernels<T>& kernels = gemm_kernels<T>();
  Matrices<T> p = typed<T>(args);
  if (std::span<const BatchDim> batch = args.batch; args.weight && fold_batch(batch, p) && keeps_panels(kernels, p)) {
    KeptPanels<T> kept(kernels, p.n, p.k, args.weight, p.b_row, p.b_col);
    kept.settle(p);
    if (kept.data() != nullptr) return multiply_shared(kernels, p, kept.data());
    return multiply_one(kernels, p);
  }
  multiply_batch(kernels, typed<T>(args), args.batch);
}

// ---- 16-bit floats --------------------------------------------------------------------------------------------------

// `lines` lines of an operand along k, as floats: element (line l, k) at data[l * line + k * step].
struct Operand {
  const float* data;
  int64_t line, step;
};

constexpr int64_t kTaskMoved = 16384;  // elements that a task widens or moves, at least

float* operand_room(Scratch slot, int64_t elements) {
  return static_cast<float*>(thread_scratch(slot, sizeof(float) * static_cast<std::size_t>(elements)));
}

// Widens an operand of any strides to a dense one, whose unit stride is that of the source.
Operand widen_operand(const HalfFormat& format, Scratch slot, int64_t lines, int64_t k_end, const std::uint16_t* in,
                      int64_t line, int64_t step) {
  float* const room = operand_room(slot, lines * k_end);
  const bool across = step != 1 && line == 1;  // the unit stride lies across the lines
  const int64_t rows = across ? k_end : lines, cols = across ? lines : k_end;
  const int64_t row = across ? step : line, col = across ? line : step;
  parallel_for(rows, std::max<int64_t>(1, kTaskMoved / std::max<int64_t>(cols, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if (col == 1) {
        format.widen(cols, in + i * row, room + i * cols);
      } else {
        for (int64_t j = 0; j < cols; ++j) format.widen(1, in + i * row + j * col, room + i * cols + j);
      }
    }
  });
  return across ? Operand{room, 1, lines} : Operand{room, k_end, 1};
}

// Takes an operand in pairs: in place where it is whole along k and pairs of all lines lie at whole floats.
Operand pair_operand(const PairKernels& kernels, Scratch slot, int64_t lines, int64_t k_end, const std::uint16_t* in,
                     int64_t line, int64_t step) {
  const int64_t pairs = ceil_div(k_end, 2);
  const bool whole = k_end % 2 == 0 && (lines == 1 || line % 2 == 0) && reinterpret_cast<std::uintptr_t>(in) % 4 == 0;
  if (step == 1 && whole) return {reinterpret_cast<const float*>(in), line / 2, 1};
  float* const room = operand_room(slot, lines * pairs);
  if (step != 1 && line == 1) {
    parallel_for(pairs, std::max<int64_t>(1, kTaskMoved / lines), [&](int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t) {
        const std::uint16_t* const low = in + 2 * t * step;
        kernels.interleave(lines, low, 2 * t + 1 < k_end ? low + step : nullptr, room + t * lines);
      }
    });
    return {room, 1, lines};
  }
  parallel_for(lines, std::max<int64_t>(1, kTaskMoved / pairs), [&](int64_t begin, int64_t end) {
    for (int64_t l = begin; l < end; ++l) {
      const std::uint16_t* const from = in + l * line;
      char* const to = reinterpret_cast<char*>(room + l * pairs);
      if (k_end % 2 != 0) std::memset(to + 2 * (k_end - 1), 0, 4);
      if (step == 1) {
        std::memcpy(to, from, 2 * static_cast<std::size_t>(k_end));
      } else {
        for (int64_t k = 0; k < k_end; ++k) std::memcpy(to + 2 * k, from + k * step, 2);
      }
    }
  });
  return {room, pairs, 1};
}

// Computes a product with few rows or columns: lines of the other operand are widened in the first cache, a few at a
// time, and never in memory. The same sums as multiply_thin's of the widened operand.
void half_thin(const HalfFormat& format, const Matrices<std::uint16_t>& p) {
  const GemmKernels<float>& kernels = gemm_kernels<float>();
  const bool rows = has_few_rows(p);
  const int64_t few = rows ? p.m : p.n, lines = rows ? p.n : p.m, line = rows ? p.b_col : p.a_row;
  const int64_t width = thin_width(few), group = kernels.tile_cols, row = kBlockK + kCopyGap;
  ScratchArray<float> vectors(Scratch::operand_a, static_cast<std::size_t>(p.k * width));
  const std::uint16_t* const from = rows ? p.a : p.b;
  const int64_t step = rows ? p.a_col : p.b_row, vector = rows ? p.a_row : p.b_col;
  std::fill_n(vectors.data(), p.k * width, 0.0f);
  for (int64_t f = 0; f < few; ++f) {
    if (width == 1 && step == 1) format.widen(p.k, from, vectors.data());
    else
      for (int64_t k = 0; k < p.k; ++k) format.widen(1, from + f * vector + k * step, vectors.data() + k * width + f);
  }
  const int64_t grain = std::max<int64_t>(1, kSerialThin / 2 / (group * p.k));
  parallel_for(ceil_div(lines, group), grain, [&](int64_t begin, int64_t end) {
    float* const wide = operand_room(Scratch::pack_a, group * row);
    float* const sums = operand_room(Scratch::pack_b, (2 * few + 1) * group);
    float *const parts = sums + few * group, *const bias = parts + few * group;
    std::uint16_t narrow[64];
    for (int64_t l0 = begin * group; l0 < std::min(lines, end * group); l0 += group) {
      const int64_t count = std::min(group, lines - l0);
      const std::uint16_t* const in = (rows ? p.b : p.a) + l0 * line;
      for (int64_t k0 = 0; k0 < p.k; k0 += kBlockK) {
        const int64_t depth = std::min(kBlockK, p.k - k0);
        for (int64_t l = 0; l < count; ++l) format.widen(depth, in + l * line + k0, wide + l * row);
        kernels.thin({count, few, depth, wide, row, vectors.data() + k0 * width, k0 == 0 ? sums : parts, 1, group});
        for (int64_t f = 0; f < few && k0 > 0; ++f) {
          for (int64_t i = f * group; i < f * group + count; ++i) sums[i] += parts[i];
        }
      }
      if (p.bias != nullptr) format.widen(rows ? count : few, rows ? p.bias + l0 : p.bias, bias);
      for (int64_t f = 0; f < few; ++f) {
        float* const sum = sums + f * group;
        for (int64_t l = 0; p.bias != nullptr && l < count; ++l) sum[l] += bias[rows ? l : f];
        if (rows) {
          format.narrow(count, sum, p.c + f * p.c_row + l0);
        } else {
          format.narrow(count, sum, narrow);
          for (int64_t l = 0; l < count; ++l) p.c[(l0 + l) * p.c_row + f] = narrow[l];
        }
      }
    }
  });
}

// Computes one product of 16-bit floats as one of floats, or of pairs. `weight` is B's, if it may be kept.
void half_product(const HalfFormat& format, const PairKernels* pairs, const Matrices<std::uint16_t>& p,
                  const Weight& weight = {}) {
  if (pairs == nullptr && p.k > 0 && (has_few_rows(p) || has_few_columns(p))) return half_thin(format, p);
  const auto operand = [&](Scratch slot, int64_t lines, const std::uint16_t* in, int64_t line, int64_t step) {
    return pairs != nullptr ? pair_operand(*pairs, slot, lines, p.k, in, line, step)
                            : widen_operand(format, slot, lines, p.k, in, line, step);
  };
  ScratchArray<float> bias(Scratch::bias, static_cast<std::size_t>(p.n));
  if (p.bias != nullptr) format.widen(p.n, p.bias, bias.data());
  Matrices<float> wide{};
  wide.m = p.m, wide.n = p.n, wide.k = pairs != nullptr ? ceil_div(p.k, 2) : p.k;
  wide.half = p.c, wide.c_row = p.c_row, wide.format = &format;
  wide.bias = p.bias != nullptr ? bias.data() : nullptr;
  wide.accumulate = p.accumulate;
  const GemmKernels<float>& kernels = pairs != nullptr ? pairs->products : gemm_kernels<float>();
  KeptPanels<float> kept(kernels, wide.n, wide.k, pairs != nullptr && keeps_panels(kernels, wide) ? weight : Weight{},
                         p.b_row, p.b_col);
  if (p.k > 0) {
    // Scratch::operand_b belongs to multiply_shared.
    const Operand a = operand(Scratch::operand_a, p.m, p.a, p.a_row, p.a_col);
    wide.a = a.data, wide.a_row = a.line, wide.a_col = a.step;
  }
  if (p.k > 0 && kept.data() == nullptr) {
    const Operand b = operand(Scratch::weights, p.n, p.b, p.b_col, p.b_row);
    wide.b = b.data, wide.b_row = b.step, wide.b_col = b.line;
    kept.settle(wide);
  }
  if (kept.data() != nullptr) multiply_shared(kernels, wide, kept.data());
  else multiply_batch(kernels, wide, {});
  trim_scratch(Scratch::operand_a);
  trim_scratch(Scratch::weights);
}

void half_gemm(Elem elem, const Gemm& args) {
  const HalfFormat format = half_format(elem);
  const PairKernels* const pairs = elem == Elem::bf16 ? pair_kernels() : nullptr;
  Matrices<std::uint16_t> p = typed<std::uint16_t>(args);
  std::span<const BatchDim> batch = args.batch;
  fold_batch(batch, p);
  const BatchSteps steps{batch};
  const int64_t count = steps.count(), work = p.m * p.n * std::max<int64_t>(p.k, 1);
  if (batch.empty()) return half_product(format, pairs, p, args.weight);
  const int64_t grain = work > 8 * kSerialWork && count < 16 ? count : std::max<int64_t>(1, kSerialWork / 8 / work);
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) half_product(format, pairs, shifted(p, steps.at(i)));
  });
}

}  // namespace

HalfFormat half_format(Elem elem) {
  if (elem == Elem::f16) return {f16_to_f32, f32_to_f16};
  const PairKernels* const pairs = pair_kernels();
  return {bf16_to_f32, pairs != nullptr ? pairs->narrow : f32_to_bf16};
}

void pair_gemm(const Gemm& args) { multiply_batch(pair_kernels()->products, typed<float>(args), args.batch); }

void gemm(Elem elem, const Gemm& args) {
  if (args.m <= 0 || args.n <= 0) return;
  for (const BatchDim& dim : args.batch) {
    if (dim.size <= 0) return;
  }
  switch (elem) {
    case Elem::f32: return float_gemm<float>(args);
    case Elem::f64: return float_gemm<double>(args);
    case Elem::bf16:
    case Elem::f16: return half_gemm(elem, args);
    case Elem::c64: return exact_gemm<std::complex<float>>(args);
    case Elem::c128: return exact_gemm<std::complex<double>>(args);
    case Elem::u8: return exact_gemm<std::uint8_t>(args);
    case Elem::i8: return exact_gemm<std::int8_t>(args);
    case Elem::i16: return exact_gemm<std::int16_t>(args);
    case Elem::i32: return exact_gemm<std::int32_t>(args);
    case Elem::i64: return exact_gemm<std::int64_t>(args);
  }
}

}  // namespace vesta::cpu
