// The arguments of a reduction: one stage of it, in which every result, or every piece of a long one, is reduced by
// one team of threads. See Note [Stages of a reduction] in cuda/ops/reduce.cpp.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/kernels/axes.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// Returns the number of columns a thread reduces, from the sizes of an element and of its sum: up to 16 bytes are
/// loaded at once, and sums stay in registers.
constexpr int column_pack(size_t item, size_t accumulator) {
  return item >= 16 ? 1 : item >= 8 ? 2 : item == 2 && accumulator == 4 ? 8 : 4;
}

enum class Reduction : uint8_t {
  sum,
  product,
  maximum,
  minimum,
  any,
  all,
  argmax,
  argmin,
  squares,
  logsumexp,
  loss_terms,
  class_losses
};

struct LossTerms;
struct ClassLosses;

/// One stage. `kept` times `columns` is the number of results, `reduced` the elements of each.
struct ReduceStage {
  const char* name = "";
  StreamHandle stream = nullptr;
  Reduction op = Reduction::sum;
  DType dtype = DType::float32;       // of x
  DType out_dtype = DType::float32;  // of out: the accumulator's or, of 16-bit floats where the op allows it, theirs
  const char* x = nullptr;
  const int64_t* places = nullptr;  // argmax, argmin: the indices of x's elements; null: their own positions
  Axes kept, reduced;  // strides in elements
  int64_t columns = 0;  // results that lie side by side in x beside `kept`; 0: rows are reduced
  bool packed = false;  // packs are aligned: 16 bytes of a row, column_pack() columns
  bool per_thread = false;  // neighbouring results are neighbours in x: a thread each
  int64_t piece = 0;  // elements that one team reduces, a multiple of 16
  int64_t pieces = 1;
  double divisor = -1;  // the result of a sum is divided by it; negative: no division
  const LossTerms* terms = nullptr;      // of loss_terms, beside x
  const ClassLosses* classes = nullptr;  // of class_losses, beside x, which are class numbers
  char* out = nullptr;  // [kept, pieces, columns]
  int64_t* out_places = nullptr;
};

/// Queues a stage.
void reduce_sum(const ReduceStage& s);
void reduce_product(const ReduceStage& s);
void reduce_extremum(const ReduceStage& s);
void reduce_logical(const ReduceStage& s);
void reduce_places(const ReduceStage& s);
void reduce_squares(const ReduceStage& s);
/// Pieces of a logsumexp are pairs of numbers, a complex dtype: the largest element, and the sum relative to it.
void reduce_logsumexp(const ReduceStage& s);
/// The first stage of a sum of terms (loss_sum.h); a further one is that of a sum.
void reduce_loss_terms(const ReduceStage& s);
/// Pieces are pairs of numbers, too: a sum of losses, and of weights.
void reduce_class_losses(const ReduceStage& s);

}  // namespace vesta::cuda
