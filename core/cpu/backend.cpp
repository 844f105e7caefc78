// The CPU's Backend, and the driver that runs pointwise plans: it cuts the elements into chunks and passes each
// chunk's operands to the loop: contiguous, repeated, or gathered (and converted) into a small buffer.
#include <vesta/core/backend.h>

#include <algorithm>
#include <cstring>

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/convert.h>
#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/isa.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/peaks.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/walker.h>
#include <vesta/core/ops/activation.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/compare.h>
#include <vesta/core/ops/explog.h>
#include <vesta/core/ops/numbers.h>
#include <vesta/core/ops/pointwise_table.h>
#include <vesta/core/ops/select.h>
#include <vesta/core/ops/special.h>
#include <vesta/core/ops/topics.h>
#include <vesta/core/ops/trigonometric.h>

VESTA_DECLARE_ON_ISA(void register_convert(vesta::cpu::Convert (&table)[vesta::kNumDTypes][vesta::kNumDTypes]))
VESTA_DECLARE_ON_ISA(void transpose(const vesta::cpu::Transposition& t))
VESTA_DECLARE_ON_ISA(void copy_plane(const vesta::cpu::CopiedPlane& c))
#define VESTA_X(topic, LIST) VESTA_DECLARE_ON_ISA(void loops_of_##topic(vesta::PointwiseLoops* to))
VESTA_POINTWISE_TOPICS(VESTA_X)
#undef VESTA_X

namespace vesta::cpu {
namespace {

Convert conversions[kNumDTypes][kNumDTypes];

constexpr int64_t kBuffer = 8192;  // bytes of an operand gathered at a time: stays in L1 with its neighbours
constexpr int64_t kRepeated = 128;  // bytes of a number that is repeated
constexpr int64_t kRow = 64, kRowBytes = 256;  // innermost runs at least this long are walked row by row
// Rows of plain elements and numbers are walked from fewer bytes on, where one operand or several would be gathered
// (1000 rows of 8 to 64 floats times a number each, with AVX2).
constexpr int64_t kPlainRowBytes[] = {192, 64};

/// A run of a loop over a range of a plan's elements. An operand whose layout the loop cannot read goes through a
/// buffer.
class Driver {
 public:
  explicit Driver(const PointwisePlan& plan) : p_(plan), loop_(reinterpret_cast<Loop>(plan.kernel)) {
    widest_ = std::max(itemsize(p_.result), itemsize(p_.compute));
    chunk_ = kBuffer / widest_;
    if (p_.second) VESTA_ASSERT(p_.result == p_.out.dtype && is_linear(p_, p_.out));
    out_ready_ = p_.result == p_.out.dtype;
    out_linear_ = out_ready_ && is_linear(p_, p_.out);
    write_ = conversions[int(p_.result)][int(p_.out.dtype)];
    all_linear_ = out_linear_;
    for (int i = 0; i < p_.inputs; ++i) {
      const bool mask = i == 0 && p_.mask_first;
      DType wanted = mask ? DType::bool_ : p_.compute;
      DType repeated = mask ? DType::bool_ : p_.number_type();
      item_[i] = itemsize(wanted);
      repeated_item_[i] = itemsize(repeated);
      read_repeated_[i] = conversions[int(p_.in[i].dtype)][int(repeated)];
      read_[i] = conversions[int(p_.in[i].dtype)][int(wanted)];
      ready_[i] = p_.in[i].dtype == wanted;
      linear_[i] = ready_[i] && is_linear(p_, p_.in[i]);
      constant_[i] = !linear_[i] && is_constant(p_, p_.in[i]);
      all_linear_ = all_linear_ && (linear_[i] || constant_[i]);
    }
    int gathered = 0;
    for (int i = 0; i < p_.inputs; ++i) gathered += !linear_[i] && !constant_[i];
    plain_ = gathered > 1 ? kPlainRowBytes[1] : kPlainRowBytes[0];
    plain_rows_ = p_.ndim > 1 && out_ready_ && p_.out.strides[0] == itemsize(p_.out.dtype);
    for (int i = 0; i < p_.inputs; ++i) {
      const int64_t stride = row_stride(p_, p_.in[i]);
      plain_rows_ = plain_rows_ && (stride == 0 || (ready_[i] && stride == item_[i]));
    }
  }

  void run(int64_t begin, int64_t end) const {
    alignas(64) char buffers[1 + kMaxInputs][kBuffer];
    LoopArgs args;
    args.params = p_.params;
    for (int i = 0; i < p_.inputs; ++i) {
      if (constant_[i]) repeat(args, i, p_.in[i].data, buffers[1 + i]);
      else args.step[i] = 1;
    }
    if (all_linear_) return linear(args, begin, end);
    Walker w(p_, begin);
    const int64_t row_bytes = p_.ndim ? p_.sizes[0] * widest_ : 0;
    bool rows = p_.ndim == 0 || (p_.sizes[0] >= kRow && row_bytes >= kRowBytes) || (plain_rows_ && row_bytes >= plain_);
    while (begin < end) {
      if (rows && plain_rows_ && w.index[0] == 0 && end - begin >= p_.sizes[0]) {
        const int64_t count = std::min((end - begin) / p_.sizes[0], p_.sizes[1] - w.index[1]);
        whole_rows(args, buffers, w, count);
        begin += count * p_.sizes[0];
        continue;
      }
      args.n = std::min(end - begin, rows ? std::min(chunk_, w.left_in_row()) : chunk_);
      if (rows) row(args, buffers, w);
      else short_rows(args, buffers, w, begin);
      begin += args.n;
    }
  }

 private:
  /// Writes `count` values of operand i, `step` bytes apart, in the type of the computation, each repeated over
  /// kRepeated bytes (a vector reads no more).
  void repeat_each(int i, const char* value, int64_t step, int64_t count, char* to) const {
    char values[16 * kBuffer / kRepeated];
    read_repeated_[i](value, step, values, repeated_item_[i], count);
    const auto over = [&]<class W>(const W& word) {
      for (int64_t r = 0; r < count; ++r) {
        W one = word;
        std::memcpy(&one, values + r * int64_t(sizeof(W)), sizeof(W));
        for (size_t k = 0; k < kRepeated; k += sizeof(W)) std::memcpy(to + r * kRepeated + k, &one, sizeof(W));
      }
    };
    switch (repeated_item_[i]) {
      case 1: return over(uint8_t());
      case 2: return over(uint16_t());
      case 4: return over(uint32_t());
      case 8: return over(uint64_t());
      default: return over(std::complex<double>());
    }
  }
  void repeat(LoopArgs& args, int i, const char* value, char* buffer) const {
    repeat_each(i, value, 0, 1, buffer);
    args.in[i] = buffer, args.step[i] = 0;
  }
  /// Processes `count` rows from `w` on, whose elements the loop reads and writes where they lie; numbers of many rows
  /// are repeated before their rows are read, as a vector that was just written in parts is slow to read.
  void whole_rows(LoopArgs& args, char (*buffers)[kBuffer], Walker& w, int64_t count) const {
    constexpr int64_t kMost = kBuffer / kRepeated;
    const int64_t to_next = p_.out.strides[1], item = itemsize(p_.out.dtype);
    args.n = p_.sizes[0];
    for (int64_t rows; count > 0; count -= rows) {
      rows = std::min(kMost, count);
      int64_t next[kMaxInputs] = {};
      for (int i = 0; i < p_.inputs; ++i) {
        if (constant_[i]) continue;
        const char* const from = p_.in[i].data + w.offset[1 + i];
        const bool one = p_.in[i].strides[0] == 0;
        if (one) repeat_each(i, from, p_.in[i].strides[1], rows, buffers[1 + i]);
        args.in[i] = one ? buffers[1 + i] : from, args.step[i] = one ? 0 : 1;
        next[i] = one ? kRepeated : p_.in[i].strides[1];
      }
      args.out = p_.out.data + w.offset[0];
      for (int64_t r = 0; r < rows; ++r) {
        args.second = second_at((w.offset[0] + r * to_next) / item);
        loop_(args);
        args.out += to_next;
        for (int i = 0; i < p_.inputs; ++i) args.in[i] += next[i];
      }
      w.index[1] += rows - 1, w.shift(1, rows - 1);
      w.step(args.n);
    }
  }
  /// Returns where the second result of element number `i` is written.
  char* second_at(int64_t i) const { return p_.second ? p_.second + i * itemsize(p_.second_dtype) : nullptr; }
  void linear(LoopArgs& args, int64_t begin, int64_t end) const {
    for (int i = 0; i < p_.inputs; ++i) {
      if (linear_[i]) args.in[i] = p_.in[i].data + begin * item_[i];
    }
    args.out = p_.out.data + begin * itemsize(p_.out.dtype);
    args.second = second_at(begin);
    args.n = end - begin;
    loop_(args);
  }
  /// Processes a piece of one row, args.n elements at `w`.
  void row(LoopArgs& args, char (*buffers)[kBuffer], Walker& w) const {
    for (int i = 0; i < p_.inputs; ++i) {
      if (constant_[i]) continue;
      const char* at = p_.in[i].data + w.offset[1 + i];
      int64_t stride = row_stride(p_, p_.in[i]);
      if (stride == 0) {
        repeat(args, i, at, buffers[1 + i]);
      } else if (ready_[i] && stride == item_[i]) {
        args.in[i] = at, args.step[i] = 1;
      } else {
        read_[i](at, stride, buffers[1 + i], item_[i], args.n);
        args.in[i] = buffers[1 + i], args.step[i] = 1;
      }
    }
    char* to = p_.out.data + w.offset[0];
    int64_t stride = row_stride(p_, p_.out);
    bool direct = out_ready_ && (p_.ndim == 0 || stride == itemsize(p_.out.dtype));
    args.out = direct ? to : buffers[0];
    args.second = second_at(w.offset[0] / itemsize(p_.out.dtype));
    loop_(args);
    if (!direct) write_(buffers[0], itemsize(p_.result), to, stride, args.n);
    w.step(args.n);
  }
  /// Makes `rows` rows of n elements of operand i, from `w` on, dense in a buffer.
  void gather(int i, const Walker& w, char* buffer, int64_t n, int64_t rows) const {
    const char* const from = p_.in[i].data + w.offset[1 + i];
    const int64_t step = row_stride(p_, p_.in[i]), next = rows > 1 ? p_.in[i].strides[1] : 0, item = item_[i];
    if (ready_[i]) {
      VESTA_ON_AVX2_AT_MOST(copy_plane, {from, buffer, {step, next}, {item, n * item}, {n, rows}, item});
    } else {
      for (int64_t r = 0; r < rows; ++r) read_[i](from + r * next, step, buffer + r * n * item, item, n);
    }
  }
  /// Processes args.n elements from number `begin` on, which span many short rows.
  void short_rows(LoopArgs& args, char (*buffers)[kBuffer], Walker& w, int64_t begin) const {
    for (int i = 0; i < p_.inputs; ++i) {
      if (linear_[i]) args.in[i] = p_.in[i].data + begin * item_[i];
      else if (!constant_[i]) args.in[i] = buffers[1 + i];
    }
    args.out = out_linear_ ? p_.out.data + begin * itemsize(p_.out.dtype) : buffers[0];
    args.second = second_at(begin);
    Walker start = w;
    for (int64_t done = 0; done < args.n;) {
      const int64_t n = std::min(args.n - done, w.left_in_row());
      const bool whole = n == p_.sizes[0] && p_.ndim > 1;
      const int64_t rows = whole ? std::min((args.n - done) / n, p_.sizes[1] - w.index[1]) : 1;
      for (int i = 0; i < p_.inputs; ++i) {
        if (!linear_[i] && !constant_[i]) gather(i, w, buffers[1 + i] + done * item_[i], n, rows);
      }
      if (rows > 1) w.index[1] += rows - 1, w.shift(1, rows - 1);
      w.step(n);
      done += n * rows;
    }
    loop_(args);
    if (out_linear_) return;
    int64_t item = itemsize(p_.result);
    for (int64_t done = 0; done < args.n;) {
      int64_t n = std::min(args.n - done, start.left_in_row());
      write_(buffers[0] + done * item, item, p_.out.data + start.offset[0], row_stride(p_, p_.out), n);
      start.step(n);
      done += n;
    }
  }

  const PointwisePlan& p_;
  Loop loop_;
  int64_t chunk_, widest_;  // elements in a buffer, and bytes of the widest
  int64_t plain_;  // bytes of the shortest row that whole_rows() takes
  Convert write_;
  Convert read_[kMaxInputs], read_repeated_[kMaxInputs];
  int64_t item_[kMaxInputs], repeated_item_[kMaxInputs];
  bool ready_[kMaxInputs], linear_[kMaxInputs], constant_[kMaxInputs];
  bool out_ready_, out_linear_, all_linear_, plain_rows_;
};

/// A plan with operands that are dense along another dimension than the result, such as x + y.t(). It is cut into
/// blocks of two dimensions; of each, such an operand is transposed into a buffer that stays in L2, and the loop reads
/// rows.
class TransposedBlocks {
 public:
  explicit TransposedBlocks(const PointwisePlan& plan) : p_(plan) {
    constexpr int64_t kLeast = 16384, kLeastSide = 16;  // elements; below, the first cache holds what is read again
    if (p_.ndim < 2 || p_.numel < kLeast || p_.second || p_.sizes[0] < kLeastSide) return;
    if (p_.out.strides[0] != itemsize(p_.out.dtype)) return;
    for (int d = 1; d < p_.ndim && !any(); ++d) {
      if (p_.sizes[d] < kLeastSide) continue;
      for (int i = 0; i < p_.inputs; ++i) {
        const int64_t item = itemsize(p_.in[i].dtype), along = p_.in[i].strides[0];
        transposed_[i] = p_.in[i].strides[d] == item && along != item && along != 0;
      }
      across_ = d;
    }
  }
  /// Returns whether there is such an operand.
  bool any() const {
    return std::any_of(transposed_, transposed_ + kMaxInputs, [](bool t) { return t; });
  }

  void run() const {
    PointwisePlan outer = p_;  // all dimensions but the two
    int64_t sizes[kMaxDims], strides[1 + kMaxInputs][kMaxDims];
    outer.ndim = 0, outer.numel = 1;
    for (int d = 1; d < p_.ndim; ++d) {
      if (d == across_) continue;
      for (int i = 0; i <= p_.inputs; ++i) strides[i][outer.ndim] = operand(i).strides[d];
      outer.numel *= sizes[outer.ndim++] = p_.sizes[d];
    }
    outer.sizes = sizes, outer.out.strides = strides[0];
    for (int i = 0; i < p_.inputs; ++i) outer.in[i].strides = strides[1 + i];
    const int64_t columns = (p_.sizes[0] + kColumns - 1) / kColumns, rows = (p_.sizes[across_] + kRows - 1) / kRows;
    const int64_t size = std::min(kColumns, p_.sizes[0]) * std::min(kRows, p_.sizes[across_]);
    parallel_for(
        outer.numel * columns * rows, std::max<int64_t>(1, kElementGrain / size), [&](int64_t begin, int64_t end) {
          char* const buffers = static_cast<char*>(thread_scratch(Scratch::input, size_t(kMaxInputs * kBufferBytes)));
          for (int64_t i = begin; i < end; ++i) {
            block(Walker(outer, i / (columns * rows)), i % columns * kColumns, i / columns % rows * kRows, buffers);
          }
        });
  }

 private:
  static constexpr int64_t kColumns = 1024, kRows = 32;  // of a block: rows as in a tile of the transposition
  static constexpr int64_t kGap = 64;  // bytes behind a row: rows a page apart would share a set of the first cache
  static constexpr int64_t kBufferBytes = (kColumns * 16 + kGap) * kRows;

  const PointwisePlan::Operand& operand(int i) const { return i == 0 ? p_.out : p_.in[i - 1]; }

  void block(const Walker& w, int64_t column, int64_t row, char* buffers) const {
    PointwisePlan b = p_;
    const int64_t sizes[2] = {std::min(kColumns, p_.sizes[0] - column), std::min(kRows, p_.sizes[across_] - row)};
    int64_t strides[1 + kMaxInputs][2];
    b.ndim = 2, b.sizes = sizes, b.numel = sizes[0] * sizes[1];
    for (int i = 0; i <= p_.inputs; ++i) {
      const PointwisePlan::Operand& from = operand(i);
      PointwisePlan::Operand& to = i == 0 ? b.out : b.in[i - 1];
      strides[i][0] = from.strides[0], strides[i][1] = from.strides[across_];
      to.strides = strides[i];
      to.data = from.data + w.offset[i] + column * from.strides[0] + row * from.strides[across_];
      if (i == 0 || !transposed_[i - 1]) continue;
      const int64_t item = itemsize(from.dtype);
      Transposition t;
      t.item = item, t.rows = sizes[0], t.columns = sizes[1];
      t.from = to.data, t.from_row = from.strides[0];
      t.to = to.data = buffers + (i - 1) * kBufferBytes, t.to_row = sizes[0] * item + kGap;
      VESTA_ON_AVX2_AT_MOST(transpose, t);
      strides[i][0] = item, strides[i][1] = t.to_row;
    }
    Driver(b).run(0, b.numel);
  }

  const PointwisePlan& p_;
  bool transposed_[kMaxInputs] = {};
  int across_ = 0;
};

class CpuBackend final : public Backend {
 public:
  const char* name() const override { return "cpu"; }
  int device_count() const override { return 1; }
  Memory allocate(size_t nbytes, Device) override { return cpu::allocate(nbytes); }
  void copy_bytes(void* to, const void* from, size_t nbytes, Device) override {
    if (nbytes) std::memcpy(to, from, nbytes);
  }
  void run(const PointwisePlan& plan) override {
    if (!plan.kernel) return run_copy(plan);
    if (const TransposedBlocks blocks(plan); blocks.any()) return blocks.run();
    Driver driver(plan);
    parallel_for(plan.numel, kElementGrain, [&](int64_t begin, int64_t end) { driver.run(begin, end); });
  }
  void synchronize(Device) override {}
};

}  // namespace

namespace {
void enter(PointwiseInfo& info, const PointwiseLoops& loops) {
  for (int variant = 0; variant < 4; ++variant) {
    for (int d = 0; d < kNumDTypes; ++d) {
      info.kernels[int(DeviceType::cpu)][variant][d] = reinterpret_cast<AnyKernel>(loops.at[variant][d]);
    }
  }
}
}  // namespace

Convert convert(DType from, DType to) { return conversions[int(from)][int(to)]; }

void register_pointwise() {
  VESTA_ON_AVX2_AT_MOST(register_convert, conversions);
#define VESTA_X(topic, LIST)                                                         \
  {                                                                                  \
    PointwiseInfo* const infos[] = {VESTA_POINTWISE_INFOS(LIST)};                    \
    PointwiseLoops loops[std::size(infos)];                                          \
    VESTA_ON_ISA_OVER_AVX2(loops_of_##topic, loops);                                 \
    for (size_t i = 0; i < std::size(infos); ++i) enter(*infos[i], loops[i]);        \
  }
  VESTA_POINTWISE_TOPICS(VESTA_X)
#undef VESTA_X
}

void register_backend() {
  static CpuBackend cpu;
  set_backend(DeviceType::cpu, &cpu);
  profiler::port.measure_peaks = &measure_peaks;
}

}  // namespace vesta::cpu
