// The arguments of the kernels of running sums and extrema.
#pragma once
#include <vesta/core/dtype_set.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// What a running sum combines elements by: a + b, a * b, log(e^a + e^b), or what the gradient of the last adds up.
enum class ScanKind : uint8_t { sums, products, log_sums, log_sums_backward };

/// Running sums along the middle dimension of [outer, length, inner], contiguous. A block takes a piece of a line at a
/// time. Sums are kept in int64, float, double for float64, or complex numbers, the type of `totals` and `offsets` too;
/// those of a gradient of log_sums are pairs of numbers, as complex ones.
struct ScanLaunch {
  DType dtype = DType::float32;  // a real one; of products, a complex one too; of log_sums, a floating-point one
  ScanKind kind = ScanKind::sums;
  StreamHandle stream = nullptr;
  int64_t outer = 1, length = 1, inner = 1;
  bool reverse = false;  // lines begin at their end
  const void* in = nullptr;  // of a gradient, that of the result
  const void *input = nullptr, *result = nullptr;  // of a gradient: of the op that has it
  void* out = nullptr;  // null: only the totals are needed
  void* totals = nullptr;  // [outer, pieces, inner], of each piece alone; null: not needed
  const void* offsets = nullptr;  // [outer, pieces, inner], the sums up to the end of each piece; null: one piece
};
inline constexpr int64_t kScanPiece = 8192;  // elements of a line; results depend on it, never on the GPU
inline int64_t scan_pieces(int64_t length) { return (length + kScanPiece - 1) / kScanPiece; }

/// Returns whether a thread per line is enough: lines are short, or many lie side by side.
template <class Launch>
bool scans_lines(const Launch& l) {
  return l.length <= 32 || (l.inner >= 32 && l.outer * l.inner >= 4096);
}
/// Queues in -> out, a thread per line.
void run_scan_lines(const ScanLaunch& l);
/// Queues in -> out or totals, a block per piece of a line. `out` may be `in`. Of products, those of integers alone.
void run_scan_pieces(const ScanLaunch& l);

/// Elements and their indices in a line.
struct Placed {
  void* values = nullptr;
  int64_t* places = nullptr;
};
/// Running extrema, in the same geometry; of equals, or of several NaNs, the last one.
struct ExtremaLaunch {
  DType dtype = DType::float32;  // a real one or bool
  StreamHandle stream = nullptr;
  int64_t outer = 1, length = 1, inner = 1;
  bool smallest = false;
  Placed in;  // places are null where element i has index i
  Placed out;  // may be `in`; null: only the totals are needed
  Placed totals;  // [outer, pieces, inner], of each piece alone; null: not needed
  Placed offsets;  // [outer, pieces, inner], up to the end of each piece; null: one piece
};
/// Queues in -> out, a thread per line.
void run_extrema_lines(const ExtremaLaunch& l);
/// Queues in -> out or totals, a block per piece of a line.
void run_extrema_pieces(const ExtremaLaunch& l);

}  // namespace vesta::cuda
