// The inner block of a matrix product, compiled once per instruction set. Internal to gemm.cpp and convolution.cpp.
#pragma once

#include <vesta/core/cpu/isa.h>

#include <cstdint>

namespace vesta::cpu {

struct Gemm;
enum class Elem : unsigned char;

/// Note [One chain of sums]
/// Element (i, j) of a product is the same sequence of operations however it is computed: k is cut into blocks of
/// kBlockK, each block is one chain of fused multiply-adds from zero in the order of k, and the blocks are added in
/// order. Tile shapes, packing, the path chosen, the number of threads and the rows around it change only which
/// register an element is in. So rows do not depend on M, results do not depend on threads or on strides, and paths
/// may be chosen by speed alone. (The baseline without FMA rounds the products too: other bits, same invariance.)
/// Rejected: asking oneDNN for the same; it splits k by M and by the number of threads.
constexpr std::int64_t kBlockK = 256;  // benchmarks/cpp/dnn_bench: a panel of B, 16 KiB, stays in a 32 KiB L1

/// A block c[m, n] (+)= a[m, k] @ b[k, n] for k <= kBlockK. Strides count elements.
template <class T>
struct Block {
  std::int64_t m, n, k;
  const T* a;  ///< element (i, k) at a[i * a_row + k * a_col]; one of the strides is 1
  std::int64_t a_row, a_col;
  std::int64_t a_tile;  ///< step between tiles of `tile_rows` rows: tile_rows * a_row, or that of a packed buffer
  const std::int32_t* a_table = nullptr;  ///< if set, row i starts at a[a_table[i]] and a_col is 1 (a_row is unused)
  const T* b;  ///< element (k, j) at b[k * b_row + j]
  std::int64_t b_row;
  std::int64_t b_tile;  ///< step between panels of `tile_cols` columns: tile_cols where b is a plain matrix
  const std::int32_t* b_table = nullptr;  ///< if set, row k starts at b[b_table[k]] (b_row is unused)
  T* c;
  std::int64_t c_row;
  bool accumulate = false;  ///< add to c instead of overwriting it
  const T* bias = nullptr;  ///< [n], added after everything else
  const T* row_bias = nullptr;  ///< [m], likewise
};

constexpr int kThin = 8;

/// Returns how many vectors lie side by side where `few` are needed; those past `few` hold zeros. There is one loop for
/// each such number, and a loop for each of 1 to kThin would take the compiler a tenth longer.
constexpr std::int64_t thin_width(std::int64_t few) { return few <= 2 ? few : few + few % 2; }

/// A product of lines that are read in place along k with up to kThin vectors, for any k:
/// out(l, f) = sum over k of in[l * line + k] * vectors[k * thin_width(few) + f]. Strides count elements.
template <class T>
struct ThinBlock {
  std::int64_t lines, few, k;
  const T* in;
  std::int64_t line;
  const T* vectors;
  T* out;  ///< element (l, f) at out[l * out_line + f * out_few]
  std::int64_t out_line, out_few;
  const T* line_bias = nullptr;  ///< [lines], added after everything else
  const T* few_bias = nullptr;  ///< [few], likewise
};

/// `count` small products c[m, n] = a[m, k] @ b[k, n], each a step further in every operand than the one before. They
/// lie side by side in the lanes of vectors. Strides count elements.
template <class T>
struct SmallBatch {
  std::int64_t count, m, n, k;
  const T* a;
  std::int64_t a_row, a_col, a_step;
  const T* b;
  std::int64_t b_row, b_col, b_step;
  T* c;
  std::int64_t c_row, c_step;

  /// The elements of the operands that a vector of products holds side by side, at most.
  static constexpr std::int64_t kMost = 256;
  /// True for products that are small enough: for any k where the result is one number.
  bool fits() const { return (m == 1 && n == 1) || (m * k + k * n + 2 * m * n <= kMost && k <= kBlockK); }
};

/// The kernels of one instruction set for T = float or double.
template <class T>
struct GemmKernels {
  int tile_rows, tile_cols;  ///< register tile: height of a packed tile of a, width of a packed panel of b
  void (*block)(const Block<T>&);
  void (*thin)(const ThinBlock<T>&);
  /// Packs a[m, k] into tiles of tile_rows rows, each k-major; rows past m stay undefined.
  void (*pack_a)(std::int64_t m, std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_col, T* out);
  /// Packs b[k, n] into panels of tile_cols columns, each k-major; columns past n stay undefined.
  void (*pack_b)(std::int64_t n, std::int64_t k, const T* b, std::int64_t b_row, std::int64_t b_col, T* out);
  /// Packs the matrix whose element (k, j) is base[table[k] + columns[j]] like pack_b, but columns past n are undefined
  /// and up to tile_cols elements behind the last panel are overwritten.
  void (*pack_columns)(std::int64_t n, std::int64_t k, const T* base, const std::int32_t* table,
                       const std::int32_t* columns, T* out);
  void (*small_batch)(const SmallBatch<T>&) = nullptr;  ///< null: there is none
  bool packs_rows = false;  ///< whether pack_a leaves rows as they are, k elements long, instead of k-major tiles

  /// Points a block of depth block.k at what pack_a wrote.
  void use_packed_a(const T* packed, Block<T>& block) const {
    block.a = packed;
    block.a_row = packs_rows ? block.k : 1;
    block.a_col = packs_rows ? 1 : tile_rows;
    block.a_tile = tile_rows * block.k;
  }
};

/// Note [Pairs of bfloat16]
/// VDPBF16PS multiplies pairs of bfloat16 and adds to a float, twice as many a cycle as a fused multiply-add: c +=
/// a[1] * b[1], then c += a[0] * b[0], each rounded once. Where the machine has it, a product of bfloat16 is a product
/// of pairs: two numbers that follow each other in k travel as one float, k counts pairs, and tiles, packing and paths
/// are those of float with this one operation exchanged. So [One chain of sums] holds for it as it stands, with blocks
/// of kBlockK pairs and, in each pair, the second number first. An odd k is filled up with a zero.
/// The instruction treats subnormal numbers as zeros and flushes subnormal sums to zero, in every mode of the CPU:
/// an element may be off by 2^-126 per multiplication (times the other factor, if one is subnormal). Every path of a
/// product takes the instruction or none does, so the bits depend on the machine, but on nothing else.
/// Rejected: pairs in the order of the plain chain. An operand that is whole along k could not be read in place.
///
/// Note [Tiles of pairs]
/// With AMX, TDPBF16PS multiplies 16 rows of 16 pairs by 16 columns of them: 16 times as many a cycle as a fused
/// multiply-add of vectors. Where the machine has it, all products of pairs take it, and within a block of kBlockK
/// pairs the chain is one of steps of kTileSteps pairs, from zero: the second numbers of the step's pairs are one chain
/// of fused multiply-adds from zero, the first numbers another; the two sums are added, then added to the block's. A
/// last step is filled up with zeros. Subnormal numbers are treated as zeros as above, and the same invariance holds.
/// The kernel may refuse a process tiles (a signal handler with a small stack): its products are then those of vectors.
/// Rows of a are read where they are whole along k, so pack_a leaves them rows (GemmKernels::packs_rows).
constexpr std::int64_t kTileSteps = 16;

/// The kernels for pairs of bfloat16 of one instruction set.
struct PairKernels {
  GemmKernels<float> products;
  /// Writes n pairs (low[i], high[i]); (low[i], 0) if `high` is null.
  void (*interleave)(std::int64_t n, const std::uint16_t* low, const std::uint16_t* high, float* out);
  /// Does what f32_to_bf16 does.
  void (*narrow)(std::int64_t n, const float* in, std::uint16_t* out);
};

/// The conversions of 16-bit floats to floats and back, rounded to nearest even.
struct HalfFormat {
  void (*widen)(std::int64_t n, const std::uint16_t* in, float* out);
  void (*narrow)(std::int64_t n, const float* in, std::uint16_t* out);
};

/// Returns that of bf16, the fastest of the instruction set in use, or of f16.
HalfFormat half_format(Elem elem);

/// Computes products of pairs, which must be at hand: operands and strides count pairs, C and the bias are floats.
void pair_gemm(const Gemm& args);

/// Returns the kernels for pairs of bfloat16, or null if the instruction set in use has none.
VESTA_API const PairKernels* pair_kernels();

/// Returns the kernels of the instruction set in use, T = float or double.
template <class T>
const GemmKernels<T>& gemm_kernels();
template <>
const GemmKernels<float>& gemm_kernels();
template <>
const GemmKernels<double>& gemm_kernels();

/// Returns the instruction set that gemm_kernels uses.
VESTA_API Isa gemm_isa();

/// Keeps gemm_kernels at or below `isa`, so that a test can compare instruction sets. No product may be running.
VESTA_API void limit_gemm_isa(Isa isa);

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(const GemmKernels<float>& float_kernels(); const GemmKernels<double>& double_kernels())
namespace vesta::cpu::avx512_bf16 { const PairKernels& pair_kernels(); }
namespace vesta::cpu::avx512_amx { const PairKernels& pair_kernels(); }
