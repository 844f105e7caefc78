// The arguments of connectionist temporal classification: plain data.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The losses of a batch of sequences, or their gradient.
struct CtcLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const char* log_probs = nullptr;               // [T, N, C]
  int64_t strides[3] = {};                       // its, in elements
  int64_t steps = 0, batch = 0, classes = 0;     // T, N, C
  const int64_t* targets = nullptr;              // class numbers
  const int64_t* lengths = nullptr;              // [3, N]: steps, labels, and where the labels begin in targets
  int64_t longest = 0, blank = 0;                // labels of the longest target; the number of the blank
  char* alpha = nullptr;                         // [N, T, states() + 1]: written, or read for the gradient
  char* loss = nullptr;                          // [N]
  Fault* fault = nullptr;

  // for the gradient
  const char* grad = nullptr;  // of the losses
  int64_t grad_stride = 1;     // in elements: 0, one for all
  char* shares = nullptr;      // [N, T, states()]: scratch, what part of the alignments is in a state
  char* rows = nullptr;        // [N, 2, states()]: scratch, unless rows_in_shared()
  int32_t* chain = nullptr;    // [N, longest]: scratch, the next label of the same class
  char* out = nullptr;         // [T, N, C]

  /// Returns the labels of the longest target with blanks before, between and behind them.
  int64_t states() const { return 2 * longest + 1; }
  /// Returns whether two rows of states fit into a block's shared memory, beside a reduction.
  bool rows_in_shared() const { return 2 * states() * itemsize(dtype) <= 46 * 1024; }
};

/// Queues the losses.
void ctc_loss(const CtcLaunch& l);
/// Queues the gradient.
void ctc_loss_backward(const CtcLaunch& l);

}  // namespace vesta::cuda
