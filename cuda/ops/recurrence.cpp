// A layer of a recurrent network in one direction: two launches a step, a product of the states with the weight and the
// gates' functions over it. States and cells are updated in place, and so are their gradients. The weight's gradient is
// one product over all steps.
//
// Sequences are sorted by length, so that a step has the first rows of the states: those of sequences that have ended,
// or that have not begun, stay what they are.
#include <vesta/core/ops/recurrence.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/matmul.h>
#include <vesta/core/ops/sequence.h>
#include <vesta/core/ops/view.h>
#include <vesta/cuda/kernels/matmul.h>
#include <vesta/cuda/kernels/recurrence.h>
#include <vesta/cuda/lib/cublas_lt.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/ops/row_packs.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

using recurrence::gates_of;
using recurrence::Kind;
static_assert(int(Recurrent::lstm) == int(Kind::lstm) && int(Recurrent::gru) == int(Kind::gru) &&
              int(Recurrent::tanh) == int(Kind::tanh) && int(Recurrent::relu) == int(Kind::relu));

Tensor dense(const Tensor& t) { return t.defined() ? contiguous_values(t) : t; }

/// Returns the address of a row of a dense matrix; null for no tensor.
char* row_of(const Tensor& t, int64_t row) {
  return t.defined() ? static_cast<char*>(t.impl()->data()) + row * t.size(1) * itemsize(t.dtype()) : nullptr;
}

/// The products of a layer's steps with its weight, by what computes any product (cuda/ops/matmul.cpp).
class StepProducts {
 public:
  StepProducts(const Tensor& weight, bool transposed, const OperandDevice& device)
      : weight_(contiguous_values(weight)), gemm_(weight.dtype(), device.index(), device.stream()) {
    const int64_t rows = weight.size(0), columns = weight.size(1);
    desc_.dtype = plain_.dtype = weight.dtype();
    desc_.n = plain_.n = transposed ? rows : columns, desc_.k = plain_.k = transposed ? columns : rows;
    desc_.lda = plain_.a_row = desc_.k, desc_.ldb = columns, desc_.ldc = desc_.n, desc_.b_transposed = transposed;
    plain_.a_col = 1, plain_.b_row = transposed ? 1 : columns, plain_.b_col = transposed ? columns : 1;
    desc_.b = plain_.b = weight_.impl()->data();
    plain_.name = "matmul", plain_.stream = device.stream();
  }
  /// Queues c[rows, n] = a[rows, k] times the weight, or times its transpose. Both are dense.
  void operator()(const void* a, int64_t rows, void* c) {
    desc_.m = plain_.m = rows;
    desc_.a = plain_.a = a, desc_.c = plain_.c = c;
    if (!gemm_(desc_)) run_products(plain_);
  }

 private:
  Tensor weight_;
  RepeatedGemm gemm_;
  GemmDesc desc_;
  ProductLaunch plain_;
};

Tensor matrix(const Tensor& like, int64_t rows, int64_t columns) {
  return empty_tensor({{rows, columns}}, like.dtype(), like.device());
}

/// Returns whether rows of `width` units, of all tensors that are defined, can be loaded in packs.
bool fits_packs(int64_t width, DType dtype, std::initializer_list<const Tensor*> tensors) {
  return width % kPackColumns == 0 && std::ranges::all_of(tensors, [&](const Tensor* t) {
           return !t->defined() || rows_fit_packs(width, dtype, {static_cast<const char*>(t->impl()->data())});
         });
}

class Layer {
 public:
  Layer(const Tensor& x, const Tensor& h, IntSpan sizes, int64_t kind, bool reverse)
      : device_(x), kind_(Kind(kind)), rows_(x.size(0)), width_(h.size(1)), sizes_(sizes), reverse_(reverse) {
    part_.stream = device_.stream(), part_.dtype = x.dtype(), part_.kind = Recurrent(kind), part_.width = width_;
    int64_t row = 0;
    for (int64_t n : sizes) first_.push_back(row), row += n;
  }

  // Operands are dense.
  RecurrenceResults run(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight, const Tensor& bias);
  RecurrenceGradients differentiate(const Tensor& grad_out, const Tensor& grad_h, const Tensor& grad_c, const Tensor& x,
                                    const Tensor& h, const Tensor& weight, bool has_bias, const Tensor& out,
                                    const Tensor& activations, const Tensor& cells);

 private:
  /// Returns which step is the i-th to be taken.
  size_t at(size_t i) const { return reverse_ ? sizes_.size() - 1 - i : i; }
  bool fits_packs(std::initializer_list<const Tensor*> tensors) const {
    return vesta::cuda::fits_packs(width_, part_.dtype, tensors);
  }
  Tensor states_before(const Tensor& h, const Tensor& out) const;

  const OperandDevice device_;
  const Kind kind_;
  const int64_t rows_, width_;
  const IntSpan sizes_;
  const bool reverse_;
  Dims first_;  // rows of steps
  RecurrentPart part_;
};

RecurrenceResults Layer::run(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& weight,
                             const Tensor& bias) {
  const bool cell = kind_ == Kind::lstm, gated = cell || kind_ == Kind::gru;
  const bool kept = layer_state.grad_enabled;  // else no gradient will need what is saved for one
  const Tensor out = matrix(x, rows_, width_), last_h = clone(h), last_c = cell ? clone(c) : Tensor(),
               activations = gated && kept ? matrix(x, rows_, 4 * width_) : Tensor(),
               cells = cell && kept ? matrix(x, rows_, width_) : Tensor(), product = matrix(x, h.size(0), x.size(1));
  StepProducts multiply(weight, true, device_);
  RecurrentStep s{part_};
  s.packed = fits_packs({&x, &bias, &out, &last_h, &last_c, &activations, &cells, &product});
  s.product = row_of(product, 0), s.h = row_of(last_h, 0), s.c = row_of(last_c, 0), s.before = s.c;
  s.bias = bias.defined() ? bias.impl()->data() : nullptr;
  for (size_t i = 0; i < sizes_.size(); ++i) {
    const int64_t first = first_[at(i)];
    s.rows = sizes_[at(i)];
    multiply(s.h, s.rows, row_of(product, 0));
    s.x = row_of(x, first), s.out = row_of(out, first);
    s.cells = row_of(cells, first), s.activations = row_of(activations, first);
    run_recurrent_step(s);
  }
  return {out, last_h, last_c, activations, cells};
}

/// Returns the states before all steps, [R, H].
Tensor Layer::states_before(const Tensor& h, const Tensor& out) const {
  struct Run {
    const Tensor* from;
    int64_t first, end;
  };
  std::vector<Run> runs;
  const auto append = [&](const Tensor& from, int64_t first, int64_t end) {
    if (first == end) return;
    if (!runs.empty() && runs.back().from == &from && runs.back().end == first) runs.back().end = end;
    else runs.push_back({&from, first, end});
  };
  for (size_t t = 0; t < sizes_.size(); ++t) {
    const bool starts = reverse_ ? t + 1 == sizes_.size() : t == 0;
    const size_t before = reverse_ ? t + 1 : t - 1;
    const int64_t going = starts ? 0 : std::min(sizes_[t], sizes_[before]);
    if (going > 0) append(out, first_[before], first_[before] + going);
    append(h, going, sizes_[t]);
  }
  TensorVector parts;
  for (const Run& r : runs) parts.push_back(narrow(*r.from, 0, r.first, r.end - r.first));
  return parts.size() == 1 ? parts[0] : cat(parts, 0);
}

RecurrenceGradients Layer::differentiate(const Tensor& grad_out, const Tensor& grad_h, const Tensor& grad_c,
                                         const Tensor& x, const Tensor& h, const Tensor& weight, bool has_bias,
                                         const Tensor& out, const Tensor& activations, const Tensor& cells) {
  const bool cell = kind_ == Kind::lstm, gru = kind_ == Kind::gru;
  const auto started = [&](const Tensor& g) { return g.defined() ? clone(g) : zeros_like(h); };
  const Tensor before = states_before(h, out), of_x = matrix(x, rows_, x.size(1)),
               of_product = gru ? matrix(x, rows_, x.size(1)) : of_x, of_h = started(grad_h),
               of_c = cell ? started(grad_c) : Tensor(), direct = gru ? zeros_like(h) : Tensor();
  StepProducts multiply(weight, false, device_);
  RecurrentStepGradient s{part_};
  s.packed = fits_packs({&grad_out, &before, &of_x, &of_product, &of_h, &of_c, &direct, &out, &activations, &cells});
  s.later = row_of(of_h, 0), s.of_c = row_of(of_c, 0), s.later_c = s.of_c, s.direct = row_of(direct, 0);
  for (size_t i = sizes_.size(); i-- > 0;) {
    const int64_t first = first_[at(i)];
    s.rows = sizes_[at(i)];
    s.grad = row_of(grad_out, first);
    s.activations = row_of(activations, first), s.cells = row_of(cells, first);
    s.h = row_of(before, first), s.y = row_of(out, first);
    s.of_x = row_of(of_x, first), s.of_product = row_of(of_product, first);
    run_recurrent_step(s);
    multiply(s.of_product, s.rows, row_of(of_h, 0));
  }
  if (gru) add_to(of_h, direct);
  if (!has_bias) return {of_x, of_h, of_c, matmul(transpose(of_product, 0, 1), before), Tensor()};
  const auto [of_weight, of_bias] = _linear_backward_weight(of_product, before);
  return {of_x, of_h, of_c, of_weight, of_bias};
}

/// Whether the kernels take a layer. They number the units of a step in 31 bits.
bool has_kernel(const Tensor& x, const Tensor& h) { return x.numel() > 0 && h.numel() <= INT32_MAX; }

RecurrenceResults layer_kernel(const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                               IntList sizes, int64_t kind, bool reverse) {
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  if (!has_kernel(x, h)) return _recurrence_composite(x, h, c, weight, bias, sizes, kind, reverse);
  return Layer(x, h, sizes, kind, reverse)
      .run(contiguous_values(x), contiguous_values(h), dense(*c), weight, dense(*bias));
}

RecurrenceGradients layer_backward_kernel(MaybeTensor grad_out, MaybeTensor grad_h, MaybeTensor grad_c, const Tensor& x,
                                          const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias,
                                          const Tensor& out, MaybeTensor activations, MaybeTensor cells, IntList sizes,
                                          int64_t kind, bool reverse) {
  check_one_device("_recurrence_backward", {&*grad_out, &*grad_h, &*grad_c, &x, &h, &*c, &weight, &*bias, &out});
  recurrence::check(x, h, c, weight, bias, sizes, kind);
  const bool gated = Kind(kind) == Kind::lstm || Kind(kind) == Kind::gru;
  if (!has_kernel(x, h) || (gated && !activations.defined())) {
    return _recurrence_backward_composite(grad_out, grad_h, grad_c, x, h, c, weight, bias, out, activations, cells,
                                          sizes, kind, reverse);
  }
  return Layer(x, h, sizes, kind, reverse)
      .differentiate(dense(*grad_out), dense(*grad_h), dense(*grad_c), x, contiguous_values(h), weight, bias.defined(),
                     contiguous_values(out), dense(*activations), dense(*cells));
}

/// Returns the part of a step that is one call's, of an LSTM with states of the shape of cx.
RecurrentPart part_of_cell(const Tensor& cx, std::initializer_list<const Tensor*> rows) {
  RecurrentPart part;
  part.stream = stream_of(cx), part.dtype = cx.dtype(), part.kind = Recurrent::lstm;
  part.rows = cx.size(0), part.width = cx.size(1);
  part.packed = fits_packs(part.width, part.dtype, rows);
  return part;
}

TensorTriple cell_kernel(const Tensor& gates, const Tensor& cx) {
  check_lstm_cell(gates, cx);
  if (cx.numel() == 0 || cx.numel() > INT32_MAX) return ops::_lstm_cell.body()(gates, cx);
  DeviceGuard guard(cx.device().index());
  const Tensor x = contiguous_values(gates), before = contiguous_values(cx);
  const Tensor h = matrix(x, cx.size(0), cx.size(1)), c = matrix(x, cx.size(0), cx.size(1)),
               activations = matrix(x, x.size(0), x.size(1));
  RecurrentStep s{part_of_cell(before, {&x, &before, &h, &c, &activations})};
  s.x = row_of(x, 0), s.before = row_of(before, 0), s.c = row_of(c, 0), s.out = row_of(h, 0);
  s.activations = row_of(activations, 0);
  run_recurrent_step(s);
  return {h, c, activations};
}

TensorPair cell_backward_kernel(const Tensor& gates, const Tensor& cx, const Tensor& activations, MaybeTensor grad_h,
                                MaybeTensor grad_c) {
  check_one_device("_lstm_cell_backward", {&gates, &cx, &activations, &*grad_h, &*grad_c});
  check_lstm_cell(gates, cx);
  check_lstm_cell(activations, cx);
  if (cx.numel() == 0 || cx.numel() > INT32_MAX) {
    return ops::_lstm_cell_backward.body()(gates, cx, activations, grad_h, grad_c);
  }
  DeviceGuard guard(cx.device().index());
  const Tensor before = contiguous_values(cx), made = contiguous_values(activations);
  const auto gradient = [&](const Tensor& g) {
    VESTA_CHECK(!g.defined() || std::ranges::equal(g.sizes(), cx.sizes()), runtime, "lstm: expected gradients of the ",
                "sizes ", cx.sizes(), " of the states, got ", g.sizes(), ".");
    return g.defined() ? contiguous_values(g.dtype() == cx.dtype() ? g : _to_copy(g, cx.dtype())) : g;
  };
  const Tensor of_h = gradient(*grad_h), later_c = gradient(*grad_c),
               of_gates = matrix(made, made.size(0), made.size(1)), of_cx = matrix(made, cx.size(0), cx.size(1));
  RecurrentStepGradient s{part_of_cell(before, {&before, &made, &of_h, &later_c, &of_gates, &of_cx})};
  s.activations = row_of(made, 0), s.cells = row_of(before, 0), s.later = row_of(of_h, 0);
  s.later_c = row_of(later_c, 0), s.of_c = row_of(of_cx, 0), s.of_x = row_of(of_gates, 0);
  run_recurrent_step(s);
  return {of_gates, of_cx};
}

}  // namespace

void register_recurrence() {
  ops::_lstm_cell.set_kernel(DeviceType::cuda, cell_kernel);
  ops::_lstm_cell_backward.set_kernel(DeviceType::cuda, cell_backward_kernel);
  ops::_recurrence.set_kernel(DeviceType::cuda, layer_kernel);
  ops::_recurrence_backward.set_kernel(DeviceType::cuda, layer_backward_kernel);
}

}  // namespace vesta::cuda
