// The step of an LSTM in one pass (Hochreiter and Schmidhuber 1997).
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/sequence.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kStateGrain =
    1024;  // elements of a state that a thread takes at a time (cases.py, lstm with backward)

TensorTriple lstm_cell_kernel(const Tensor& gates, const Tensor& cx) {
  check_lstm_cell(gates, cx);
  const Tensor x = contiguous_values(gates), before = contiguous_values(cx);
  const Tensor h = empty_tensor(cx.sizes(), cx.dtype()), c = empty_tensor(cx.sizes(), cx.dtype()),
               activations = empty_tensor(gates.sizes(), gates.dtype());
  const int64_t rows = cx.sizes()[0], n = cx.sizes()[1], bytes = n * itemsize(cx.dtype());
  const RowKernels& k = row_kernels(cx.dtype());
  parallel_for(rows, std::max<int64_t>(1, kStateGrain / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      k.lstm_cell(x.impl()->data() + 4 * i * bytes, before.impl()->data() + i * bytes, h.impl()->data() + i * bytes,
                  c.impl()->data() + i * bytes, activations.impl()->data() + 4 * i * bytes, n);
    }
  });
  return {h, c, activations};
}

TensorPair lstm_cell_backward_kernel(const Tensor& gates, const Tensor& cx, const Tensor& activations,
                                     MaybeTensor grad_h, MaybeTensor grad_c) {
  check_lstm_cell(gates, cx);
  check_lstm_cell(activations, cx);
  const Tensor before = contiguous_values(cx), a = contiguous_values(activations);
  const auto gradient = [&](const Tensor& g) { return g.defined() ? contiguous_values(g.to(cx.dtype())) : Tensor(); };
  const Tensor gh = gradient(grad_h), gc = gradient(grad_c);
  for (const Tensor* g : {&gh, &gc}) {
    VESTA_CHECK(!g->defined() || g->numel() == cx.numel(), runtime, "lstm: expected gradients of the sizes ",
                cx.sizes(), " of the states, got ", g->sizes(), ".");
  }
  const Tensor ggates = empty_tensor(gates.sizes(), gates.dtype()), gcx = empty_tensor(cx.sizes(), cx.dtype());
  const int64_t rows = cx.sizes()[0], n = cx.sizes()[1], bytes = n * itemsize(cx.dtype());
  const RowKernels& k = row_kernels(cx.dtype());
  const auto row = [&](const Tensor& t, int64_t i) { return t.defined() ? t.impl()->data() + i * bytes : nullptr; };
  parallel_for(rows, std::max<int64_t>(1, kStateGrain / std::max<int64_t>(n, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      k._lstm_cell_backward(row(a, 4 * i), row(before, i), row(gh, i), row(gc, i), row(ggates, 4 * i), row(gcx, i), n);
    }
  });
  return {ggates, gcx};
}

}  // namespace

void register_sequence() {
  ops::_lstm_cell.set_kernel(DeviceType::cpu, lstm_cell_kernel);
  ops::_lstm_cell_backward.set_kernel(DeviceType::cpu, lstm_cell_backward_kernel);
}

}  // namespace vesta::cpu
