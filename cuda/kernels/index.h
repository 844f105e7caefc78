// The arguments of the indexing kernels. A tour: x[i, j], index_put_, index_select, index_add_ and embedding move or
// add whole slices between positions of one tensor and a run of the other (Moves). gather and scatter_add_ have one
// per element (ElementMoves). Writes to positions that may be equal use keys (the position's number), which are sorted
// together with the numbers of the slices: equal positions then lie side by side, in the order of the indices.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/kernels/in_place.h>
#include <vesta/cuda/kernels/walk.h>

#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The elements that index tensors select: element j lies at the sum over k of index[k][j] * stride[k] bytes. An index
/// out of range is reported, and its element skipped.
struct Places {
  int n = 0;
  bool wraps = false;  // negative indices count from the end
  FaultKind kind = FaultKind::index;
  const char* op = "";
  Fault* fault = nullptr;
  const int64_t* index[kWalkDims] = {};
  int64_t size[kWalkDims] = {}, stride[kWalkDims] = {};
  int dim[kWalkDims] = {};  // for messages
};

/// A set of moves between positions of `self` and `other`. The walk's operand 0 is self (0 along `marked`, the
/// dimension that counts positions), operand 1 other.
struct Moves {
  const char* name = "";
  StreamHandle stream = nullptr;
  int64_t total = 0;  // elements of the walk
  WalkDims walk;
  int marked = 0;
  char* self = nullptr;
  char* other = nullptr;
  Places places;
  bool wide = false;  // element numbers, or keys, need 64 bits

  // for sorted writes
  const void* keys = nullptr;   // sorted: a position's number is its offset / unit
  const void* order = nullptr;  // the numbers of the positions with these keys; null: position j has key j
  int64_t count = 0, unit = 1;
  uint64_t bad_key = 0;  // of positions out of range
};

/// Queues other = self[places], elements of 1, 2, 4, 8 or 16 bytes; 0 where a position is out of range.
void run_take(const Moves& m, int64_t item);
/// Queues self[keys] = other; of equal keys the last one writes.
void run_put(const Moves& m, int64_t item);
/// Queues self[keys] += alpha * other, one by one in order of equal keys; 16-bit floats are summed in float. The walk's
/// elements are units of so many bytes: one element, or added_together(its bytes) if keys have 32 bits.
void run_add(const Moves& m, DType dtype, double alpha, int64_t unit);
constexpr int64_t added_together(int64_t item) { return item == 1 ? 4 : 16; }
/// Queues self[places] += alpha * other in any order, without keys: equal positions get different bits from run to run.
void run_add_in_any_order(const Moves& m, DType dtype, double alpha);
/// Queues keys[j] = (offset of position j) / unit, or bad_key.
void run_keys(const Moves& m, void* keys);

/// A gather or scatter_add_. Operands of the walk: self (0 along the indexed dimension), index (int64), other.
struct ElementMoves {
  const char* name = "";
  StreamHandle stream = nullptr;
  int64_t total = 0;
  WalkDims walk;
  char* self = nullptr;
  const char* index = nullptr;
  char* other = nullptr;
  int64_t size = 0, stride = 0;  // of self, along the indexed dimension
  int dim = 0;
  Fault* fault = nullptr;
  bool wide = false;

  // for scatter by lines: the walk leaves out the indexed dimension
  int64_t length = 1, index_step = 0, other_step = 0;
  int64_t unit = 1;  // for scatter's keys
  uint64_t bad_key = 0;
};

/// Queues other = self at index, elements of 1 to 16 bytes.
void run_gather(const ElementMoves& m, int64_t item);
/// Queues self at index += other, one thread per line.
void run_scatter_lines(const ElementMoves& m, DType dtype);
/// Queues self at index += other, one warp per line, whose sums fit into kScatterRoom bytes.
void run_scatter_rows(const ElementMoves& m, DType dtype);
inline constexpr int64_t kScatterRoom = 46 << 10;
/// Queues self at index = other in the same way, elements of 1 to 16 bytes; of equal positions the last one stays.
void run_put_rows(const ElementMoves& m, int64_t item);
/// Queues the same, one thread per line.
void run_put_lines(const ElementMoves& m, int64_t item);
/// Queues self at index += other in any order.
void run_scatter_in_any_order(const ElementMoves& m, DType dtype);
/// The way in which values are combined with an element.
enum class Combine : uint8_t { product, larger, smaller };
/// Queues self at index = combined with other, one thread per line, for real dtypes and bool.
void run_combine_lines(const ElementMoves& m, DType dtype, Combine how);
/// Queues keys[i] = (offset of element i's position in self) / unit, or bad_key.
void run_scatter_keys(const ElementMoves& m, void* keys);

/// A search for the true elements of a contiguous mask.
struct NonzeroLaunch {
  StreamHandle stream = nullptr;
  const uint8_t* mask = nullptr;
  int64_t n = 0;
  uint64_t* counts = nullptr;  // of nonzero_tiles(n) tiles: true elements before each in its group
  uint64_t* groups = nullptr;  // of nonzero_groups(n) groups: those before each; followed by the total
  int64_t* out = nullptr;  // [ndim][total]
  int64_t total = 0;
  int ndim = 0;
  int64_t sizes[64] = {};
};
inline constexpr int64_t kNonzeroTile = 2048;
inline constexpr int64_t kNonzeroGroup = 16;  // tiles that a block counts
constexpr int64_t nonzero_tiles(int64_t n) { return (n + kNonzeroTile - 1) / kNonzeroTile; }
constexpr int64_t nonzero_groups(int64_t n) { return (nonzero_tiles(n) + kNonzeroGroup - 1) / kNonzeroGroup; }
/// Queues the counts of tiles and groups.
void run_nonzero_count(const NonzeroLaunch& l);
/// Queues the writing of the indices, in order.
void run_nonzero_write(const NonzeroLaunch& l);
/// Queues to = those of the contiguous elements `from` where the mask is true, of 1, 2, 4, 8 or 16 bytes.
void run_masked_take(const NonzeroLaunch& l, const void* from, void* to, int64_t item);

}  // namespace vesta::cuda
