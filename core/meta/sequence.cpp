// The step of an LSTM: shapes.
#include <vesta/core/ops/sequence.h>

#include <vesta/core/meta/register.h>
#include <vesta/core/meta/result.h>

namespace vesta::meta {
namespace {

TensorTriple lstm_cell(const Tensor& gates, const Tensor& cx) {
  check_lstm_cell(gates, cx);
  return {like(cx), like(cx), like(gates)};
}

TensorPair lstm_cell_backward(const Tensor& gates, const Tensor& cx, const Tensor& activations, MaybeTensor,
                              MaybeTensor) {
  check_lstm_cell(gates, cx);
  check_lstm_cell(activations, cx);
  return {like(gates), like(cx)};
}

}  // namespace

void register_sequence() {
  ops::_lstm_cell.set_kernel(DeviceType::meta, lstm_cell);
  ops::_lstm_cell_backward.set_kernel(DeviceType::meta, lstm_cell_backward);
}

}  // namespace vesta::meta
