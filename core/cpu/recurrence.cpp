// A layer of a recurrent network in one direction, all steps in one call. A tour: the weight is packed once. A step is
// cut into tasks, each some sequences and some hidden units: a product of the states before with the weights of those
// units, whose result stays in the cache, and the gates' functions over it. Backward is the same from the last step to
// the first, and leaves the gradients of all steps side by side, so that the weight's is one product.
//
// Threads share the tasks of a step and wait for each other after it. Sequences do not depend on each other, though:
// where there are enough of them and the weight fits a core's cache, each thread takes groups of sequences through all
// steps, and nobody waits.
//
// States go from step to step in two buffers, read and written in turn, whose rows lie a line more than their length
// apart: rows a multiple of a page apart compete for the same lines of L1.
#include <algorithm>

#include <vesta/core/cpu/allocator.h>
#include <vesta/core/cpu/gemm.h>
#include <vesta/core/cpu/gemm_kernel.h>
#include <vesta/core/cpu/interruption.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/recurrence_kernels.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/recurrence.h>
#include <vesta/core/ops/reduce.h>

namespace vesta::cpu {

namespace {

using recurrence::gates_of;
using recurrence::Kind;

constexpr int64_t kRowsOfTask = 64, kUnitsOfTask = 64;
constexpr int64_t kGap = 16;              // elements between rows of states
constexpr int64_t kRowsOfGroup = 8;       // the least sequences that a thread takes through all steps
constexpr int64_t kWeightOfGroup = 512 << 10;  // the most bytes of a weight for that: half of a core's L2

template <class T>
RecurrenceKernels<T> steps_of;  // of the instruction set in use

/// A matrix b[k, n] packed for products with it: by chunks of columns, each in blocks of k, each in panels.
template <class T>
class PackedMatrix {
 public:
  /// Columns come in groups (gates) of `n`; chunk c of group g holds its columns from c * chunk on.
  PackedMatrix(const T* b, int64_t k, int64_t n, int64_t groups, int64_t row, int64_t column, int64_t chunk)
      : k_(k), n_(n), groups_(groups), chunk_(chunk), data_(size_t(k * groups * ceil_div(n, chunk) * chunk)) {
    const GemmKernels<T>& kernels = gemm_kernels<T>();
    parallel_for(chunks() * groups, std::max<int64_t>(1, kTaskWork / (k * chunk)), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t c = i / groups * chunk, g = i % groups;
        for (int64_t k0 = 0; k0 < k; k0 += kBlockK) {
          kernels.pack_b(std::min(chunk, n - c), std::min(kBlockK, k - k0), b + (g * n + c) * column + k0 * row, row,
                         column, data_.data() + i * k * chunk + k0 * chunk);
        }
      }
    });
  }
  int64_t chunks() const { return ceil_div(n_, chunk_); }

  /// Computes out[rows, groups * chunk] = a[rows, k] times the columns of a chunk, plus a bias if there is one.
  void multiply(const T* a, int64_t a_row, int64_t rows, int64_t chunk, const T* bias, T* out) const {
    const GemmKernels<T>& kernels = gemm_kernels<T>();
    const int64_t first = chunk * chunk_, units = std::min(chunk_, n_ - first);
    for (int64_t g = 0; g < groups_; ++g) {
      for (int64_t k0 = 0; k0 < k_; k0 += kBlockK) {
        Block<T> block{};
        block.m = rows, block.n = units, block.k = std::min(kBlockK, k_ - k0);
        block.a = a + k0, block.a_row = a_row, block.a_col = 1, block.a_tile = kernels.tile_rows * a_row;
        block.b = data_.data() + (chunk * groups_ + g) * k_ * chunk_ + k0 * chunk_;
        block.b_row = kernels.tile_cols, block.b_tile = kernels.tile_cols * block.k;
        block.c = out + g * chunk_, block.c_row = groups_ * chunk_;
        block.accumulate = k0 > 0;
        block.bias = bias && k0 + block.k == k_ ? bias + g * n_ + first : nullptr;
        kernels.block(block);
      }
    }
  }

 private:
  int64_t k_, n_, groups_, chunk_;
  HostArray<T> data_;
};

/// Two buffers of rows for the sequences of a batch, read and written in turn.
template <class T>
class Turns {
 public:
  Turns(int64_t rows, int64_t width) : rows_(rows), step_(width + kGap), data_(size_t(2 * rows * step_)) {}
  /// Returns the buffer that turn i reads: what turn i - 1 has written.
  Rows<T> read(int64_t i) const { return {data_.data() + (i & 1) * rows_ * step_, step_, 0}; }
  Rows<T> write(int64_t i) const { return read(i + 1); }

 private:
  int64_t rows_, step_;
  HostArray<T> data_;
};

template <class T>
Rows<const T> read_only(const Rows<T>& r) {
  return {r.data, r.step, r.gate};
}
/// The rows of a contiguous matrix of `width` columns per gate; none for no tensor.
template <class T>
Rows<T> rows_of(const Tensor& t, int64_t gates, int64_t width) {
  if (!t.defined()) return {};
  return {reinterpret_cast<T*>(t.impl()->data()), gates * width, width};
}

template <class T>
void copy_rows(const Rows<const T>& from, const Rows<T>& to, int64_t rows, int64_t width) {
  for (int64_t i = 0; i < rows; ++i) std::copy_n(from.data + i * from.step, width, to.data + i * to.step);
}

template <class T>
class Layer {
 public:
  Layer(const Tensor& x, const Tensor& h, IntSpan sizes, int64_t kind, bool reverse)
      : kind_(Kind(kind)),
        gates_(gates_of(kind_)),
        batch_(h.size(0)),
        width_(h.size(1)),
        rows_(x.size(0)),
        sizes_(sizes),
        reverse_(reverse) {
    const int64_t unit = gemm_kernels<T>().tile_cols;
    const int64_t tasks = ceil_div(batch_, kRowsOfTask) * ceil_div(width_, kUnitsOfTask);
    chunk_ = tasks < 4 ? unit : std::max(unit, kUnitsOfTask / unit * unit);
    int64_t row = 0;
    for (int64_t n : sizes) first_.push_back(row), row += n;
  }

  RecurrenceResults run(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias);
  RecurrenceGradients differentiate(const Tensor& grad_out, const Tensor& grad_h, const Tensor& grad_c, const Tensor& h,
                                    const Tensor& weight, bool has_bias, const Tensor& out, const Tensor& activations,
                                    const Tensor& cells);

 private:
  size_t steps() const { return sizes_.size(); }
  /// Returns which step is the i-th to be taken.
  size_t at(size_t i) const { return reverse_ ? steps() - 1 - i : i; }
  /// Returns the number of sequences of the i-th step to be taken; none before the first and after the last.
  int64_t size_at(int64_t i) const { return i < 0 || i >= int64_t(steps()) ? 0 : sizes_[at(size_t(i))]; }

  /// Calls f(begin, end) for groups of sequences that threads take through all steps, or once for all sequences, whose
  /// steps have tasks for all threads.
  template <class F>
  void each_group(F f) const {
    const int64_t threads = num_threads(), weight = int64_t(sizeof(T)) * gates_ * width_ * width_;
    if (threads == 1 || batch_ < threads * kRowsOfGroup || weight > kWeightOfGroup) return f(0, batch_);
    const int64_t rows = std::max(kRowsOfGroup, ceil_div(batch_, 2 * threads));
    parallel_for(ceil_div(batch_, rows), 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) f(i * rows, std::min(batch_, (i + 1) * rows));
    });
  }
  /// Calls f(first row, rows, chunk, room for a task's product) for all tasks of a step of sequences [begin, end).
  template <class F>
  void each_task(int64_t begin_row, int64_t end_row, int64_t k, int64_t groups, F f) const {
    const int64_t rows = end_row - begin_row;
    if (rows <= 0) return;
    const int64_t chunks = ceil_div(width_, chunk_), blocks = ceil_div(rows, kRowsOfTask);
    const int64_t work = std::min(rows, kRowsOfTask) * k * groups * chunk_;
    parallel_for(chunks * blocks, std::max<int64_t>(1, kTaskWork / work), [&](int64_t begin, int64_t end) {
      T* const room = static_cast<T*>(
          thread_scratch(Scratch::result, sizeof(T) * size_t(std::min(rows, kRowsOfTask) * groups * chunk_)));
      for (int64_t i = begin; i < end; ++i) {
        const int64_t row = i / chunks * kRowsOfTask;
        f(begin_row + row, std::min(kRowsOfTask, rows - row), i % chunks, room);
      }
    });
  }
  int64_t units_of(int64_t chunk) const { return std::min(chunk_, width_ - chunk * chunk_); }
  Tensor matrix(int64_t rows, int64_t columns, DType d) const { return empty_tensor({{rows, columns}}, d); }

  /// Returns the states before all steps, [R, H].
  Tensor states_before(const Tensor& h, const Tensor& out) const;

  const Kind kind_;
  const int64_t gates_, batch_, width_, rows_;
  const IntSpan sizes_;
  const bool reverse_;
  int64_t chunk_ = 0;
  Dims first_;  // rows of steps
};

template <class T>
RecurrenceResults Layer<T>::run(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight,
                                const Tensor& bias) {
  const bool cell = kind_ == Kind::lstm, gated = cell || kind_ == Kind::gru;
  const bool kept = layer_state.grad_enabled;  // else no gradient will need what is saved for one
  const DType d = x.dtype();
  const Tensor out = matrix(rows_, width_, d), last_h = matrix(batch_, width_, d), last_c = cell ? clone(c) : Tensor(),
               activations = gated && kept ? matrix(rows_, 4 * width_, d) : Tensor(),
               cells = cell && kept ? matrix(rows_, width_, d) : Tensor();
  const PackedMatrix<T> packed(elements<T>(weight), width_, width_, gates_, weight.strides()[1], weight.strides()[0],
                               chunk_);
  Turns<T> state(batch_, width_);
  copy_rows(rows_of<const T>(h, 1, width_), state.read(0), batch_, width_);
  copy_rows(rows_of<const T>(h, 1, width_), state.write(0), batch_, width_);  // of sequences that have not begun
  const T* const added = bias.defined() ? elements<T>(bias) : nullptr;
  const auto step = steps_of<T>.forward[size_t(kind_)];
  const auto take_step = [&](int64_t i, int64_t begin, int64_t end) {
    const int64_t first = first_[at(size_t(i))], last = std::min(end, size_at(i));
    each_task(begin, last, width_, gates_, [&](int64_t row, int64_t rows, int64_t chunk, T* product) {
      const Rows<const T> before = read_only(state.read(i));
      const int64_t unit = chunk * chunk_;
      packed.multiply(before.from(row, 0).data, before.step, rows, chunk, added, product);
      step({.rows = rows,
            .units = units_of(chunk),
            .x = rows_of<const T>(x, gates_, width_).from(first + row, unit),
            .product = {product, gates_ * chunk_, chunk_},
            .h = before.from(row, unit),
            .c = rows_of<T>(last_c, 1, width_).from(row, unit),
            .cells = rows_of<T>(cells, 1, width_).from(first + row, unit),
            .activations = rows_of<T>(activations, 4, width_).from(first + row, unit),
            .out = rows_of<T>(out, 1, width_).from(first + row, unit),
            .state = state.write(i).from(row, unit)});
    });
  };
  StepsOfPieces pieces;
  each_group([&](int64_t begin, int64_t end) {
    for (int64_t i = 0; i < int64_t(steps()) && pieces.go_on(); ++i) take_step(i, begin, end);
  });
  // A sequence's last state is its output at its last step.
  for (size_t i = 0; i < steps(); ++i) {
    const int64_t ended = reverse_ ? 0 : size_at(int64_t(i) + 1), n = size_at(int64_t(i));
    if (reverse_ && i + 1 < steps()) continue;
    copy_rows(rows_of<const T>(out, 1, width_).from(first_[at(i)] + ended, 0),
              rows_of<T>(last_h, 1, width_).from(ended, 0), n - ended, width_);
  }
  const int64_t begun = *std::ranges::max_element(sizes_);
  copy_rows(rows_of<const T>(h, 1, width_).from(begun, 0), rows_of<T>(last_h, 1, width_).from(begun, 0), batch_ - begun,
            width_);
  return {out, last_h, last_c, activations, cells};
}

template <class T>
Tensor Layer<T>::states_before(const Tensor& h, const Tensor& out) const {
  Tensor before = matrix(rows_, width_, out.dtype());
  const Rows<T> to = rows_of<T>(before, 1, width_);
  const Rows<const T> outputs = rows_of<const T>(out, 1, width_), start = rows_of<const T>(h, 1, width_);
  for (size_t i = 0; i < steps(); ++i) {
    const int64_t n = size_at(int64_t(i)), going = std::min(n, size_at(int64_t(i) - 1)), first = first_[at(i)];
    if (going > 0) copy_rows(outputs.from(first_[at(i - 1)], 0), to.from(first, 0), going, width_);
    copy_rows(start.from(going, 0), to.from(first + going, 0), n - going, width_);
  }
  return before;
}

template <class T>
RecurrenceGradients Layer<T>::differentiate(const Tensor& grad_out, const Tensor& grad_h, const Tensor& grad_c,
                                            const Tensor& h, const Tensor& weight, bool has_bias, const Tensor& out,
                                            const Tensor& activations, const Tensor& cells) {
  const bool cell = kind_ == Kind::lstm, gru = kind_ == Kind::gru;
  const DType d = h.dtype();
  const int64_t wide = gates_ * width_;
  const Tensor before = states_before(h, out), of_x = matrix(rows_, wide, d), of_h = matrix(batch_, width_, d),
               of_product = gru ? matrix(rows_, wide, d) : of_x;
  const auto started = [&](const Tensor& g) { return g.defined() ? clone(g) : zeros(h.sizes(), d); };
  const Tensor of_c = cell ? started(grad_c) : Tensor(), direct = gru ? zeros(h.sizes(), d) : Tensor();
  const PackedMatrix<T> packed(elements<T>(weight), wide, width_, 1, weight.strides()[0], weight.strides()[1], chunk_);
  Turns<T> products(batch_, wide);
  const auto step = steps_of<T>.backward[size_t(kind_)];
  // What the product of the step after gives to the states before it: of this step, or, of sequences that begin with
  // that step, of the network's.
  const auto step_back = [&](int64_t i, int64_t begin_row, int64_t end_row) {
    const int64_t n = size_at(i), after = size_at(i + 1), going = std::min(n, after);
    const int64_t first = i < 0 ? 0 : first_[at(size_t(i))];
    each_task(
        begin_row, std::min(end_row, std::max(n, after)), wide, 1,
        [&](int64_t row, int64_t rows, int64_t chunk, T* product) {
          const int64_t unit = chunk * chunk_, units = units_of(chunk);
          const Rows<const T> later = read_only(products.read(i));
          if (row < after) {
            packed.multiply(later.from(row, 0).data, later.step, std::min(rows, after - row), chunk, nullptr, product);
          }
          // Takes the step for some of the rows; `given` holds the gradients of their new states.
          const auto take = [&](int64_t begin, int64_t end, const Rows<const T>& given) {
            if (begin >= end) return;
            Rows<T> copy = products.write(i).from(begin, unit);
            copy.gate = width_;
            step({.rows = end - begin,
                  .units = units,
                  .later = given,
                  .out = rows_of<const T>(grad_out, 1, width_).from(first + begin, unit),
                  .of_c = rows_of<T>(of_c, 1, width_).from(begin, unit),
                  .direct = rows_of<T>(direct, 1, width_).from(begin, unit),
                  .activations = rows_of<const T>(activations, 4, width_).from(first + begin, unit),
                  .cells = rows_of<const T>(cells, 1, width_).from(first + begin, unit),
                  .h = rows_of<const T>(before, 1, width_).from(first + begin, unit),
                  .y = rows_of<const T>(out, 1, width_).from(first + begin, unit),
                  .of_x = rows_of<T>(of_x, gates_, width_).from(first + begin, unit),
                  .of_product = rows_of<T>(gru ? of_product : Tensor(), gates_, width_).from(first + begin, unit),
                  .copy = copy});
          };
          const int64_t end = row + rows, fresh = std::max(row, going);  // the first row to which no step has followed
          take(row, std::min(going, end), {product, chunk_, 0});
          take(fresh, std::min(n, end), rows_of<const T>(grad_h, 1, width_).from(fresh, unit));
          for (int64_t r = fresh; r < std::min(after, end); ++r) {
            T* const to = elements<T>(of_h) + r * width_ + unit;
            const T* const more = gru ? elements<T>(direct) + r * width_ + unit : nullptr;
            for (int64_t j = 0; j < units; ++j) to[j] = product[(r - row) * chunk_ + j] + (more ? more[j] : T(0));
          }
        });
  };
  StepsOfPieces pieces;
  each_group([&](int64_t begin, int64_t end) {
    for (int64_t i = int64_t(steps()) - 1; i >= -1 && pieces.go_on(); --i) step_back(i, begin, end);
  });
  const int64_t begun = *std::ranges::max_element(sizes_);
  for (int64_t r = begun; r < batch_; ++r) {  // sequences without a step
    T* const to = elements<T>(of_h) + r * width_;
    if (grad_h.defined()) std::copy_n(elements<T>(grad_h) + r * width_, width_, to);
    else std::fill_n(to, width_, T(0));
  }
  const Tensor of_weight = matrix(wide, width_, d);
  gemm(std::is_same_v<T, float> ? Elem::f32 : Elem::f64, {.m = wide,
                                                          .n = width_,
                                                          .k = rows_,
                                                          .a = of_product.impl()->data(),
                                                          .a_row = 1,
                                                          .a_col = wide,
                                                          .b = before.impl()->data(),
                                                          .b_row = width_,
                                                          .b_col = 1,
                                                          .c = of_weight.impl()->data(),
                                                          .c_row = width_});
  return {of_x, of_h, of_c, of_weight, has_bias ? sum(of_product, IntList{0}) : Tensor()};
}

bool has_kernel(const Tensor& x) {
  return (x.dtype() == DType::float32 || x.dtype() == DType::float64) && x.numel() > 0;
}

Tensor dense(MaybeTensor t) { return t.defined() ? contiguous_values(*t) : Tensor(); }

RecurrenceResults layer_kernel(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                               IntList sizes, int64_t kind, bool reverse) {
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  if (!has_kernel(x)) return _recurrence_composite(x, h, c, weight, bias, sizes, kind, reverse);
  RecurrenceResults r;
  const auto run = [&]<class T>(T) {
    r = Layer<T>(x, h, sizes, kind, reverse)
            .run(contiguous_values(x), contiguous_values(h), dense(c), weight, dense(bias));
  };
  if (x.dtype() == DType::float32) run(float());
  else run(double());
  return r;
}

RecurrenceGradients layer_backward_kernel(MaybeTensor grad_out, MaybeTensor grad_h, MaybeTensor grad_c, const Tensor& x,
                                          const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                                          const Tensor& out, MaybeTensor activations, MaybeTensor cells, IntList sizes,
                                          int64_t kind, bool reverse) {
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  const bool gated = Kind(kind) == Kind::lstm || Kind(kind) == Kind::gru;
  if (!has_kernel(x) || (gated && !activations.defined())) {
    return _recurrence_backward_composite(grad_out, grad_h, grad_c, x, h, c, weight, bias, out, activations, cells,
                                          sizes, kind, reverse);
  }
  RecurrenceGradients r;
  const auto run = [&]<class T>(T) {
    r = Layer<T>(x, h, sizes, kind, reverse)
            .differentiate(dense(grad_out), dense(grad_h), dense(grad_c), contiguous_values(h), weight, bias.defined(),
                           contiguous_values(out), dense(activations), dense(cells));
  };
  if (x.dtype() == DType::float32) run(float());
  else run(double());
  return r;
}

}  // namespace

void register_recurrence() {
  VESTA_ON_ISA(register_steps, steps_of<float>, steps_of<double>);
  ops::_recurrence.set_kernel(DeviceType::cpu, layer_kernel);
  ops::_recurrence_backward.set_kernel(DeviceType::cpu, layer_backward_kernel);
}

}  // namespace vesta::cpu
