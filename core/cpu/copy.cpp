#include <vesta/core/cpu/copy.h>

#include <cstring>

#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/walker.h>

VESTA_DECLARE_ON_ISA(void transpose(const vesta::cpu::Transposition& t))
VESTA_DECLARE_ON_ISA(void copy_lines(const vesta::cpu::CopiedLines& l))
VESTA_DECLARE_ON_ISA(void copy_plane(const vesta::cpu::CopiedPlane& c))
VESTA_DECLARE_ON_ISA(void fill(char* to, const char* value, int64_t item, int64_t n))

namespace vesta::cpu {
namespace {

/// Converts n elements to dense ones that bypass the caches, a buffer at a time: a conversion knows only plain stores,
/// and, unlike the element-wise ops that non_temporal.h speaks of, does little enough that memory stays the limit
/// (build/bin/bandwidth half: 1.1 of a plain loop).
void convert_non_temporal(Convert run, const char* from, int64_t from_step, char* to, int64_t item, int64_t n) {
  constexpr int64_t kBuffer = 8192;
  alignas(64) char buffer[kBuffer];
  for (int64_t i = 0; i < n; i += kBuffer / item) {
    const int64_t count = std::min(kBuffer / item, n - i);
    run(from + i * from_step, from_step, buffer, item, count);
    write_non_temporal(to + i * item, buffer, count * item);
  }
  finish_non_temporal();
}

/// Copies a range of elements, a conversion per row, or rows of the same dtype as they lie; `non_temporal`: past the
/// caches.
void copy_rows(const PointwisePlan& p, int64_t begin, int64_t end, bool non_temporal) {
  Convert run = convert(p.in[0].dtype, p.out.dtype);
  Walker w(p, begin);
  int64_t from = row_stride(p, p.in[0]), to = row_stride(p, p.out);
  const int64_t item = itemsize(p.out.dtype);
  const bool dense = from == item && to == item;
  if (p.in[0].dtype == p.out.dtype && p.ndim > 1 && (dense || !non_temporal)) {
    while (begin < end) {
      const int64_t n = std::min(end - begin, w.left_in_row());
      const int64_t rows = n == p.sizes[0] ? std::min((end - begin) / n, p.sizes[1] - w.index[1]) : 1;
      const char* const x = p.in[0].data + w.offset[1];
      char* const y = p.out.data + w.offset[0];
      const int64_t down[2] = {p.in[0].strides[1], p.out.strides[1]};
      if (dense) VESTA_ON_AVX2_AT_MOST(copy_lines, {x, y, down[0], down[1], rows, n * item, non_temporal});
      else VESTA_ON_AVX2_AT_MOST(copy_plane, {x, y, {from, down[0]}, {to, down[1]}, {n, rows}, item});
      w.index[1] += rows - 1, w.shift(1, rows - 1);
      w.step(n);
      begin += rows * n;
    }
    return;
  }
  while (begin < end) {
    int64_t n = std::min(end - begin, w.left_in_row());
    const char* const x = p.in[0].data + w.offset[1];
    char* const y = p.out.data + w.offset[0];
    if (non_temporal && to == item) convert_non_temporal(run, x, from, y, item, n);
    else run(x, from, y, to, n);
    w.step(n);
    begin += n;
  }
}

void run_fill(const PointwisePlan& p) {
  alignas(16) char value[16];
  convert(p.in[0].dtype, p.out.dtype)(p.in[0].data, 0, value, 0, 1);
  int64_t item = itemsize(p.out.dtype);
  parallel_for(p.numel, 4 * kElementGrain, [&](int64_t begin, int64_t end) {
    VESTA_ON_AVX2_AT_MOST(fill, p.out.data + begin * item, value, item, end - begin);
  });
}

/// Finds the dimension along which the input is dense while the destination is dense along dimension 0; 0 if none. Of
/// few lines, either side must be dense in both dimensions: others are copied row by row.
int transposed_dim(const PointwisePlan& p) {
  int64_t item = itemsize(p.out.dtype);
  if (p.ndim < 2 || p.in[0].dtype != p.out.dtype || p.out.strides[0] != item) return 0;
  if (p.in[0].strides[0] == item || p.in[0].strides[0] == 0) return 0;
  for (int d = 1; d < p.ndim; ++d) {
    if (p.in[0].strides[d] != item || p.sizes[d] < 2) continue;
    const bool many = p.sizes[0] >= kFewLines && p.sizes[d] >= kFewLines;
    const bool joined = p.sizes[0] < kFewLines && p.out.strides[d] == p.sizes[0] * item;
    const bool split = p.sizes[d] < kFewLines && p.in[0].strides[0] == p.sizes[d] * item;
    if (many || joined || split) return d;
  }
  return 0;
}

/// Copies with dimensions 0 (dense in the destination) and d (dense in the input) cut into blocks.
void run_transposed(const PointwisePlan& p, int d) {
  constexpr int64_t kColumns = 1024;  // of a block; both are multiples of the kernel's tile
  const int64_t rows_of_block = p.sizes[d] < kFewLines ? 16384 : 64;
  PointwisePlan outer = p;  // all dimensions but the two
  int64_t sizes[kMaxDims], strides[2][kMaxDims];
  outer.ndim = 0, outer.numel = 1;
  for (int k = 1; k < p.ndim; ++k) {
    if (k == d) continue;
    sizes[outer.ndim] = p.sizes[k];
    strides[0][outer.ndim] = p.out.strides[k];
    strides[1][outer.ndim++] = p.in[0].strides[k];
    outer.numel *= p.sizes[k];
  }
  outer.sizes = sizes, outer.out.strides = strides[0], outer.in[0].strides = strides[1];
  int64_t across = (p.sizes[d] + kColumns - 1) / kColumns, down = (p.sizes[0] + rows_of_block - 1) / rows_of_block;
  int64_t item = itemsize(p.out.dtype);
  // Lines of a non_temporal result would be read before they are written (build/bin/bandwidth 't()', 64 MiB: 0.25 of a
  // plain loop's speed, 0.43 so).
  const bool non_temporal = p.numel * item > last_level_bytes();
  int64_t grain =
      std::max<int64_t>(1, kElementGrain / (std::min(kColumns, p.sizes[d]) * std::min(rows_of_block, p.sizes[0])));
  parallel_for(outer.numel * across * down, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Walker w(outer, i / (across * down));
      int64_t column = i % across * kColumns, row = i / across % down * rows_of_block;
      Transposition t;
      t.from = p.in[0].data + w.offset[1] + column * item + row * p.in[0].strides[0];
      t.to = p.out.data + w.offset[0] + column * p.out.strides[d] + row * item;
      t.from_row = p.in[0].strides[0], t.to_row = p.out.strides[d];
      t.rows = std::min(rows_of_block, p.sizes[0] - row), t.columns = std::min(kColumns, p.sizes[d] - column),
      t.item = item;
      t.non_temporal = non_temporal;
      VESTA_ON_AVX2_AT_MOST(transpose, t);
    }
  });
}

}  // namespace

void transpose_matrix(const Transposition& t) { VESTA_ON_AVX2_AT_MOST(transpose, t); }

void run_copy(const PointwisePlan& p) {
  if (is_linear(p, p.out) && is_constant(p, p.in[0])) return run_fill(p);
  if (int d = transposed_dim(p)) return run_transposed(p, d);
  constexpr int64_t kNonTemporalRow = 1024;  // bytes of a row that are mostly whole lines
  const int64_t item = itemsize(p.out.dtype);
  const bool non_temporal = p.ndim > 0 && p.sizes[0] * item >= kNonTemporalRow && bypasses_caches(p.numel * item);
  parallel_for(p.numel, kElementGrain, [&](int64_t begin, int64_t end) { copy_rows(p, begin, end, non_temporal); });
}

}  // namespace vesta::cpu
