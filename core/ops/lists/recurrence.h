// The op list of recurrent networks over whole sequences. It is no topic: its ops are not called by name. See
// README.md.
#pragma once

// clang-format off
#define VESTA_OPS_RECURRENCE(OP)                                                                                       \
  OP(FUNCTION, RecurrenceResults, _recurrence,                                                                         \
     (const Tensor& x, const Tensor& h, MaybeTensor c, const Tensor& weight, MaybeTensor bias, IntList sizes,          \
      int64_t kind, bool reverse), (x, h, c, weight, bias, sizes, kind, reverse), composite, hidden)                   \
  OP(FUNCTION, RecurrenceGradients, _recurrence_backward,                                                              \
     (MaybeTensor grad_out, MaybeTensor grad_h, MaybeTensor grad_c, const Tensor& x, const Tensor& h, MaybeTensor c,   \
      const Tensor& weight, MaybeTensor bias, const Tensor& out, MaybeTensor activations, MaybeTensor cells,           \
      IntList sizes, int64_t kind, bool reverse),                                                                      \
     (grad_out, grad_h, grad_c, x, h, c, weight, bias, out, activations, cells, sizes, kind, reverse),                 \
     composite, hidden)
