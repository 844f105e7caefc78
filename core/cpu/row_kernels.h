// The interface between the drivers of softmax, cross-entropy, normalisation and LSTMs and their kernels, per dtype.
#pragma once
#include <cmath>
#include <cstdint>

#include <vesta/core/base/macros.h>
#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// The statistics of some elements: how many, their mean, and the sum of the squared deviations from it.
struct Statistics {
  double count = 0, mean = 0, squares = 0;
  /// Adds those of other elements (Chan, Golub and LeVeque 1979): nothing is subtracted that could cancel. The mean of
  /// infinities of one sign is that infinity.
  void add(const Statistics& o) {
    const double all = count + o.count, apart = o.mean - mean, part = o.count / all;
    if (count == 0) {
      *this = o;
      return;
    }
    mean += std::isinf(mean) ? o.mean : apart * part;
    squares += o.squares + apart * apart * count * part;
    count = all;
  }
};

/// A row's sum of exponentials: of exp(x - top), where top is the largest number, 0 if that is -inf.
struct ExpSum {
  double top, sum;
};

/// The statistics of columns that cross-entropy needs: the ExpSum of each, the logarithm of its sum, and sum(w * (x -
/// top)).
struct ColumnSums {
  double *tops, *sums, *logs, *dots;
};

/// The numbers of columns' gradients of cross-entropy, of the dtype of statistics; a class below 0 is ignored.
struct ColumnSlopes {
  const int64_t* classes;
  const char* weights;  // of the classes, or null: ones
  const char *tops, *scales, *less, *direct;
  bool smooths;  // whether `less` counts
};

/// The prefetch distances of a kernel that works on a row in the cache: the bytes at these distances from the row will
/// be read or written soon; 0 for no prefetch.
struct Expected {
  int64_t to_read = 0, to_write = 0;
  template <class T>
  VESTA_INLINE void read(const T* row, int64_t i) const {
    if (begins_line<T>(i)) __builtin_prefetch(reinterpret_cast<const char*>(row + i) + to_read, 0, 2);
  }
  template <class T>
  VESTA_INLINE void write(const T* row, int64_t i) const {
    if (begins_line<T>(i)) __builtin_prefetch(reinterpret_cast<const char*>(row + i) + to_write, 1, 2);
  }

 private:
  template <class T>
  VESTA_INLINE static bool begins_line(int64_t i) {
    return i % (64 / int64_t(sizeof(T))) == 0;
  }
};

/// Consecutive rows of n elements, one to a channel: row r belongs to channel (channel + r) % channels.
struct ChannelRows {
  int64_t channel, channels, count, n;
};

/// The kernels that work on one contiguous row of n elements. Statistics are double for float64, else float, passed as
/// double. `non_temporal` results bypass the caches, if they are as wide as their statistics (non_temporal.h); rows are
/// whole lines then.
struct RowKernels {
  void (*softmax)(const char* x, char* y, int64_t n, bool log, bool non_temporal) = nullptr;
  /// Computes gx = y * (g - sum(g * y)), or for log-softmax g - exp(y) * sum(g).
  void (*_softmax_backward)(const char* g, const char* y, char* gx, int64_t n, bool log) = nullptr;
  /// Compute softmax, its gradient, and the logarithm of the sum of exponentials, with the bits of rows, for `count`
  /// columns that lie side by side, of n rows that are `step` elements apart; `room` is for count * (slots + 6 + n)
  /// numbers of the dtype of statistics, for the gradient (slots + 6 + 2 n).
  void (*softmax_columns)(const char* x, char* y, int64_t n, int64_t step, int64_t count, bool log, bool non_temporal,
                          char* room) = nullptr;
  void (*softmax_backward_columns)(const char* g, const char* y, char* gx, int64_t n, int64_t step, int64_t count,
                                   bool log, char* room) = nullptr;
  void (*logsumexp_columns)(const char* x, int64_t n, int64_t step, int64_t count, double* out, char* room) = nullptr;
  /// Writes the results of exp_sum() and, if requested, dot() for columns; `room` as for softmax.
  void (*exp_sum_columns)(const char* x, int64_t n, int64_t step, int64_t count, const char* w, bool wants_dots,
                          const ColumnSums& out, char* room) = nullptr;
  /// Computes gx[j] = scale * exp(x[j] - top) - less * w[j], and `direct` less for the class, down columns.
  void (*exp_minus_columns)(const char* x, int64_t n, int64_t step, int64_t count, const ColumnSlopes& slopes,
                            char* gx) = nullptr;
  /// Writes the logarithms of sums of exponentials, as softmax computes them.
  void (*logs)(const double* sums, int64_t n, double* out) = nullptr;
  /// Returns the sum of exponentials of a row.
  ExpSum (*exp_sum)(const char* x, int64_t n) = nullptr;
  /// Turns a row of the dtype of statistics into its softmax, in place, and returns the sum of exponentials. Where that
  /// is 0, all become 0.
  ExpSum (*weights)(char* x, int64_t n) = nullptr;
  /// Returns sum(w * (x - shift)) (w of the dtype of statistics, or null: ones).
  double (*dot)(const char* x, const char* w, double shift, int64_t n) = nullptr;
  /// Computes gx[j] = scale * exp(x[j] - top) - smooth * w[j] (w of the dtype of statistics, or null: ones).
  void (*exp_minus)(const char* x, double top, double scale, double smooth, const char* w, char* gx,
                    int64_t n) = nullptr;
  /// Returns sum(x - shift) and sum((x - shift)^2) of a run.
  void (*moments)(const char* x, int64_t n, double shift, double* sum, double* squares) = nullptr;
  /// Returns the mean, and the sum of the squared deviations from it, of each of `rows` consecutive rows of n >= 1
  /// elements.
  void (*statistics)(const char* x, int64_t rows, int64_t n, double* mean, double* squares,
                     const Expected& next) = nullptr;
  /// Adds, channel by channel, the statistics of `more` elements to those of `count` > 0, as Statistics::add does. Of
  /// float64 alone.
  void (*add_statistics)(double count, double* mean, double* squares, double more, const double* more_mean,
                         const double* more_squares, int64_t channels) = nullptr;
  /// Computes y = (x - center) * scale + shift: with a center near x, large numbers cost no digits.
  void (*affine)(const char* x, double center, double scale, double shift, char* y, int64_t n) = nullptr;
  /// Returns sum(g) and sum(g * (x - mean)).
  void (*gradient_sums)(const char* g, const char* x, double mean, int64_t n, double* sum, double* dot) = nullptr;
  /// Computes gx = g * a + (x - center) * b + c.
  void (*combine)(const char* g, const char* x, double center, double a, double b, double c, char* gx,
                  int64_t n) = nullptr;
  /// Compute affine(), combine() and gradient_sums() of rows, with the numbers of each row's channel; sums and products
  /// are of each row.
  void (*affine_rows)(const char* x, const ChannelRows& rows, const double* center, const double* scale,
                      const double* shift, char* y, bool non_temporal) = nullptr;
  void (*combine_rows)(const char* g, const char* x, const ChannelRows& rows, const double* center, const double* a,
                       const double* b, const double* c, char* gx, bool non_temporal) = nullptr;
  void (*gradient_sums_rows)(const char* g, const char* x, const ChannelRows& rows, const double* mean, double* sum,
                             double* dot) = nullptr;
  /// Do the same for each of n pixels, whose channels lie side by side; center, a, b and c have one number per channel,
  /// of the dtype of statistics.
  void (*affine_pixels)(const char* x, const char* center, const char* a, const char* b, char* y, int64_t n,
                        int64_t channels, bool non_temporal) = nullptr;
  void (*combine_pixels)(const char* g, const char* x, const char* center, const char* a, const char* b, const char* c,
                         char* gx, int64_t n, int64_t channels, bool non_temporal) = nullptr;
  /// Elements of a row that `moments`, `statistics` and `gradient_sums` sum at once: a longer row is made of such
  /// pieces, in order. A piece has `slots` sums, to which its elements are added in turn.
  int64_t chain = 0, slots = 0;
  /// Returns what `statistics` does for each of `count` channels over n <= chain pixels, `channels` elements apart.
  void (*statistics_pixels)(const char* x, int64_t n, int64_t channels, int64_t count, double* mean,
                            double* squares) = nullptr;
  /// Returns the sums of gradient_sums() in the same way; mean has one number per channel, of the dtype of statistics.
  void (*gradient_sums_pixels)(const char* g, const char* x, int64_t n, int64_t channels, int64_t count,
                               const char* mean, double* sum, double* dot) = nullptr;
  /// Computes y = (x - mean) * rstd * w + b (w and b of the dtype of statistics, or null).
  void (*normalize)(const char* x, double mean, double rstd, const char* w, const char* b, char* y, int64_t n,
                    bool non_temporal) = nullptr;
  /// Returns sum(g * w) and sum(g * w * (x - mean)); adds g * (x - mean) * rstd to gw and g to gb.
  void (*normalize_sums)(const char* g, const char* x, double mean, double rstd, const char* w, char* gw, char* gb,
                         int64_t n, double* sum, double* dot) = nullptr;
  /// Computes gx = (g * w - a - (x - mean) * b) * rstd.
  void (*normalize_backward)(const char* g, const char* x, double mean, double rstd, const char* w, double a, double b,
                             char* gx, int64_t n) = nullptr;
  /// Compute a step of an LSTM, and its gradient: gates and activations [4 n], states [n].
  void (*lstm_cell)(const char* gates, const char* cx, char* h, char* c, char* activations, int64_t n) = nullptr;
  void (*_lstm_cell_backward)(const char* activations, const char* cx, const char* gh, const char* gc, char* ggates,
                              char* gcx, int64_t n) = nullptr;  // gh or gc may be null: zeros
};

/// Returns the kernels of a floating dtype for the instruction set in use; Error(type) for any other dtype.
const RowKernels& row_kernels(DType d);

}  // namespace vesta::cpu
