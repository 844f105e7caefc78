// The gradient of a tensor that was read in pieces: by split, chunk, unbind, or an index after the other.
#pragma once
#include <vector>

#include <vesta/core/tensor.h>

namespace vesta::autograd {

/// The gradients of pieces of a tensor along one dimension, which a backward run keeps until the tensor's gradient is
/// needed. Pieces that tile the tensor are written once, side by side, and never added to zeros.
class Pieces {
 public:
  Pieces(IntSpan sizes, int64_t dim, uint32_t input_nr) : sizes_(sizes), dim_(dim), input_nr_(input_nr) {}

  /// Returns whether the gradient of a piece goes with the others. One that must overlap them does not: these are
  /// summed, so that no more is kept than the tensor's gradient takes.
  bool takes(const Tensor& g, int64_t dim, uint32_t input_nr) const;
  /// Keeps the gradient of elements [start, start + g.size(dim)) along the dimension.
  void add(Tensor g, int64_t start);
  /// Returns the gradient of the tensor: zeros where no piece is, sums where several are.
  Tensor join();
  uint32_t input_nr() const { return input_nr_; }
  Device device() const { return pieces_.empty() ? Device() : pieces_[0].grad.device(); }

 private:
  struct Piece {
    int64_t start;
    Tensor grad;
  };
  Dims sizes_;
  int64_t dim_;
  uint32_t input_nr_;  // of the node that the gradient goes to
  std::vector<Piece> pieces_;  // as they came
  int64_t held_ = 0;  // elements along the dimension
};

}  // namespace vesta::autograd
