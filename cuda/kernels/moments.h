// The arguments of means and squares around them: contiguous rows.
#pragma once
#include <vesta/core/dtype_set.h>
#include <vesta/cuda/runtime.h>

namespace vesta::cuda {

/// The mean and the sum of squared deviations of `rows` contiguous rows of n elements, in the type of the computation.
/// If `piece` is set, those of each piece of that many elements (the last of a row may be shorter): [rows, pieces].
struct MomentsLaunch {
  const char* name = "";
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;
  const char* x = nullptr;
  char* mean = nullptr;  // of rows
  double* piece_mean = nullptr;  // of pieces
  char* squares = nullptr;
  int64_t rows = 0, n = 0, piece = 0;
  bool packed = false;  // rows consist of aligned packs
};

/// Queues the launch.
void moments(const MomentsLaunch& l);

/// The moments of rows, joined from those of their pieces.
struct JoinedMoments {
  StreamHandle stream = nullptr;
  DType dtype = DType::float32;  // of all numbers but the means of pieces
  const double* piece_mean = nullptr;
  const char* piece_squares = nullptr;
  char *mean = nullptr, *squares = nullptr;
  int64_t rows = 0, n = 0, piece = 0;  // elements of a row, and of a piece but for the last
};
/// Queues the launch.
void join_moments(const JoinedMoments& l);

}  // namespace vesta::cuda
