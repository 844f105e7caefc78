// The arguments of sums of losses: what a stage of the reduction computes its elements from, and the gradients.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/core/ops/loss_terms.h>
#include <vesta/cuda/kernels/fault_record.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// A loss made of terms of x, the elements of the stage, and a target that lies in the same way.
struct LossTerms {
  LossTerm term = LossTerm::squared_difference;
  const char* target = nullptr;
  double params[2] = {};
};

/// The losses of rows and the weights of their classes.
struct ClassLosses {
  DType dtype = DType::float32;  // of the log-probabilities, or of the losses
  const char* losses = nullptr;         // of the rows, or
  const char* probabilities = nullptr;  // their logarithms [outer, classes, inner], of which the rows' are picked
  const char* weight = nullptr;         // of the classes, of `dtype`; null: ones
  int64_t classes = 0, inner = 1, ignore = -100;
  bool mean = false;      // the sum is divided by the weights'
  char* total = nullptr;  // gets the sum of the weights, of the type of the computation, if it is a mean
  Fault* fault = nullptr;  // null: a class out of range has been reported
};

/// The gradients of a sum of n terms. Those that are null are not computed.
struct LossTermsGradient {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  LossTerms terms;
  const char *x = nullptr, *grad = nullptr;  // grad: one number
  double divisor = -1;                       // grad is divided by it, unless it is negative
  char *of_x = nullptr, *of_target = nullptr;
  int64_t n = 0;
  bool packed = false;  // all are aligned for packs of 16 bytes
};
/// Queues the gradients in one launch.
void loss_terms_backward(const LossTermsGradient& l);

/// Rows' losses of log-probabilities, or with `grad` the gradient of these.
struct NllRows {
  StreamHandle stream = nullptr;
  ClassLosses rows;
  const int64_t* target = nullptr;
  int64_t count = 0;           // rows
  const char* grad = nullptr;  // of the rows' losses
  bool one_grad = false;       // the same for all
  const char* total = nullptr;  // grad is divided by it, if it is not null; of the type of the computation
  char* out = nullptr;
};
void nll_rows(const NllRows& l);
void nll_rows_backward(const NllRows& l);

}  // namespace vesta::cuda
