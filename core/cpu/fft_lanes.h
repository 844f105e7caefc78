// Fourier transforms of many lines at once.
//
// Note [Lines in lanes]
// A line is a run of points to be transformed. The kernels (kernels/fft.cpp) transform as many lines at once as a
// vector has lanes, each in its own: they read the lines into a buffer of vectors (rows are transposed in registers,
// columns lie as they should), every point to its position for decimation in time, combine blocks in place by
// radices 8, 4, 2, 3, 5, 7, 11 and 13, and write the results in order. So nothing is shuffled within a transform, roots
// of unity are the same for all lanes, and a line's bits depend neither on its neighbours nor on strides or threads.
// Real lines of even length are pairs of half as many points. Numbers are computed in their own type, with roots of
// unity that are rounded once, from double: in the mean an error of float32 is 1e-7 of the results for a thousand
// points and 1.6e-7 for a million, less than PyTorch's, and at most 2.3e-7 of the largest one
// (tests/python/test_fft.py).
//
// A line that no buffer in the second cache would hold is a matrix of n1 rows and n2 columns: its columns are
// transformed, multiplied by roots of unity, then its rows (Bailey 1990, "FFTs in external or hierarchical memory"),
// all of them groups of lines again. What has larger prime factors goes through the plans of fft_plan.h.
#pragma once
#include <cstdint>

#include <vesta/core/cpu/fft_kernels.h>
#include <vesta/core/tensor.h>

namespace vesta::cpu {

/// Sets the kernels of this machine's instruction set.
void choose_fft_kernels();

/// Tensors whose lines along one dimension are transformed, as numbers: strides count these. Complex numbers are two,
/// `imaginary` apart; those of a real tensor are pairs of neighbours if FftKind says so.
template <class P>
struct FftSide {
  P* data;
  int64_t step, imaginary;
  Dims strides;  // of the other dimensions
};

/// The lines of a tensor to be transformed, `n` points each (kinds of pairs: half as many as numbers).
template <class T>
struct FftJob {
  FftKind kind;
  bool forward;
  int64_t n, out;  // `out`: points written
  Dims sizes;  // of the dimensions other than that of the lines
  FftSide<const T> from;
  FftSide<T> to;
  T scale;
};

/// Returns where line `number` begins, of lines in the given dimensions.
int64_t offset_of_line(const Dims& sizes, const Dims& strides, int64_t number);

/// Returns whether transform_lines() takes this length: that its prime factors are small.
bool has_small_factors(int64_t n);

/// Transforms all lines. `from` and `to` may be the same memory.
void transform_lines(const FftJob<float>& job);
void transform_lines(const FftJob<double>& job);

}  // namespace vesta::cpu
