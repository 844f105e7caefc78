// The arguments of the steps of recurrent networks: plain data. Rows are sequences, columns are hidden units; a matrix
// of several gates has them side by side in a row. All matrices are dense, H = `width` columns a gate.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The networks, in the order of recurrence::Kind.
enum class Recurrent : int { lstm, gru, tanh, relu };

/// The operands that both directions of a step have.
struct RecurrentPart {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  Recurrent kind = Recurrent::lstm;
  int64_t rows = 0, width = 0;  // their product is below 2^31, neither is 0
  bool packed = false;          // width is a multiple of four, and rows are aligned for packs of four
};

/// A step: the gates' functions over what inputs and states contribute. Undefined are null.
struct RecurrentStep : RecurrentPart {
  const void* x = nullptr;        // what the inputs contribute, [rows, G H]
  const void* product = nullptr;  // what the states before contribute; null: x has it
  const void* bias = nullptr;     // [G H] or null; is added to the product
  const void* before = nullptr;   // the cells of an LSTM
  void* c = nullptr;              // gets them after the step; may be the same
  void* cells = nullptr;                        // gets the cells before, or null
  void* activations = nullptr;  // gets the gates after their functions [rows, 4 H], or null; a GRU's fourth is its
                                // state's part of the third
  void* out = nullptr;          // gets the states
  void* h = nullptr;            // the states, updated in place; null: of an LSTM, they are not needed twice
};

/// The gradient of a step.
struct RecurrentStepGradient : RecurrentPart {
  const void* later = nullptr;    // the gradient of the states after the step, or null
  const void* grad = nullptr;     // of the outputs, or null
  const void* later_c = nullptr;  // of the cells of an LSTM after the step, or null
  void* of_c = nullptr;           // gets that of the cells before it; may be the same
  void* direct = nullptr;       // what a GRU's states give beside the product, updated in place
  const void *activations = nullptr, *cells = nullptr;  // as the step left them
  const void* h = nullptr;                              // the states before, of a GRU
  const void* y = nullptr;                              // the outputs, of networks without gates
  void* of_x = nullptr;        // gets the gradient of what the inputs contribute
  void* of_product = nullptr;  // gets that of the product, of a GRU
};

/// Queue one launch each.
void run_recurrent_step(const RecurrentStep& step);
void run_recurrent_step(const RecurrentStepGradient& step);

}  // namespace vesta::cuda
