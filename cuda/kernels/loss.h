// The arguments of cross-entropy: rows of logits, or columns, and a class number for each.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Cross-entropy over rows, or with `grad` its gradient.
struct CrossEntropyLaunch {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;  // of x and its gradient
  bool wide_loss = false;        // weight, grad and the losses are of the dtype of statistics, not x's
  const char* x = nullptr;
  const int64_t* target = nullptr;
  const char* weight = nullptr;  // of the classes; null: ones
  const char* grad = nullptr;    // of the rows' losses
  bool one_grad = false;         // the same for all: of their mean or sum
  const char* total = nullptr;   // grad is divided by it, of the dtype of statistics; null: by nothing
  char* out = nullptr;           // the losses, or the gradient of x
  char* exp_sums = nullptr;      // of the rows, of the dtype of statistics: written, or read for the gradient
  int64_t rows = 0, classes = 0, ignore = -100;
  double smoothing = 0;
  bool packed = false;  // rows consist of aligned packs; of columns, neighbours do
  int64_t inner = 1;    // columns that lie side by side; `rows` is the number of all
  bool pixels = false;  // columns lie one behind the other instead, each as a row does, and are read as columns are
  Fault* fault = nullptr;
};

/// Queues the launch.
void cross_entropy(const CrossEntropyLaunch& l);
/// Queues it over columns instead: of [outer, classes, inner].
void cross_entropy_columns(const CrossEntropyLaunch& l);

}  // namespace vesta::cuda
