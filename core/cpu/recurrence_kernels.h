// The interface between the driver of recurrent layers and the functions of their steps, which are compiled for each
// instruction set.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/isa.h>

namespace vesta::cpu {

/// A matrix in memory: `step` elements from row to row; from gate to gate where it has gates.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t step = 0, gate = 0;
  Rows from(std::int64_t row, std::int64_t unit) const {
    return data ? Rows{data + row * step + unit, step, gate} : Rows{};
  }
};

/// The part of a step that concerns some sequences (rows) and hidden units.
template <class T>
struct StepForward {
  std::int64_t rows, units;
  Rows<const T> x, product;  // what the input and the state before contribute to the gates
  Rows<const T> h;           // the state before (of a GRU)
  Rows<T> c;                 // the cell, updated in place (of an LSTM)
  Rows<T> cells;             // gets the cell before
  Rows<T> activations;  // gets the gates after their functions; a GRU's fourth is its state's part of the third.
                        // These two may be null.
  Rows<T> out, state;  // both get the new state
};

/// The gradient of such a part. What is null is zero, or of no interest.
template <class T>
struct StepBackward {
  std::int64_t rows, units;
  Rows<const T> later, out;  // gradients of the new state: from the next step, and as an output
  Rows<T> of_c;  // gradient of the cell, updated in place (of an LSTM)
  Rows<T> direct;  // what the next step's state gives beside its product, updated in place (of a GRU)
  Rows<const T> activations, cells;  // as the step left them
  Rows<const T> h, y;  // the states before (of a GRU) and after (of networks without gates)
  Rows<T> of_x, of_product, copy;  // gradients of the gates' parts; `copy` gets that of the product once more
};

/// The steps of the four networks (recurrence::Kind) for T = float or double.
template <class T>
struct RecurrenceKernels {
  void (*forward[4])(const StepForward<T>&);
  void (*backward[4])(const StepBackward<T>&);
};

}  // namespace vesta::cpu

VESTA_DECLARE_ON_ISA(void register_steps(RecurrenceKernels<float>&, RecurrenceKernels<double>&))
