// The interface between the drivers of softmax, cross-entropy, normalisation and LSTMs and their kernels, per dtype.
#pragma once
#include <cstdint>

#include <vesta/core/dtype.h>

namespace vesta::cpu {

/// The kernels that work on one contiguous row of n elements. Statistics are double for float64, else float, passed as
/// double.
struct RowKernels {
  void (*softmax)(const char* x, char* y, int64_t n, bool log) = nullptr;
  /// gx = y * (g - sum(g * y)), or for log-softmax g - exp(y) * sum(g).
  void (*_softmax_backward)(const char* g, const char* y, char* gx, int64_t n, bool log) = nullptr;
  /// Returns log(sum(exp(x))); `sum` gets sum(w * x) (w may be null: ones) for label smoothing.
  double (*logsumexp)(const char* x, int64_t n) = nullptr;
  double (*dot)(const char* x, const char* w, int64_t n) = nullptr;
  /// gx[j] = scale * exp(x[j] - lse) - smooth * w[j] (w may be null: ones).
  void (*exp_minus)(const char* x, double lse, double scale, double smooth, const char* w, char* gx,
                    int64_t n) = nullptr;
  /// Returns sum(x - shift) and sum((x - shift)^2) of a run.
  void (*moments)(const char* x, int64_t n, double shift, double* sum, double* squares) = nullptr;
  /// y = x * scale + shift.
  void (*affine)(const char* x, double scale, double shift, char* y, int64_t n) = nullptr;
  /// Returns sum(g) and sum(g * (x - mean)).
  void (*gradient_sums)(const char* g, const char* x, double mean, int64_t n, double* sum, double* dot) = nullptr;
  /// gx = g * a + x * b + c.
  void (*combine)(const char* g, const char* x, double a, double b, double c, char* gx, int64_t n) = nullptr;
  /// The same for each of n pixels, whose channels lie side by side; a, b and c have one number per channel, of the
  /// dtype of statistics.
  void (*affine_pixels)(const char* x, const char* a, const char* b, char* y, int64_t n, int64_t channels) = nullptr;
  void (*combine_pixels)(const char* g, const char* x, const char* a, const char* b, const char* c, char* gx, int64_t n,
                         int64_t channels) = nullptr;
  /// Elements of a row that `moments` and `gradient_sums` sum at once: a longer row's sums add up such pieces, in
  /// order. A piece has `slots` sums, to which its elements are added in turn.
  int64_t chain = 0, slots = 0;
  /// Returns the sums of moments() for each of `count` channels over n <= chain pixels, `channels` elements apart;
  /// shift has one number per channel, of the dtype of statistics. `squares` may be null. `room` is for 2 * slots *
  /// count numbers of that dtype.
  void (*moments_pixels)(const char* x, int64_t n, int64_t channels, int64_t count, const char* shift, double* sum,
                         double* squares, char* room) = nullptr;
  /// Returns the sums of gradient_sums() in the same way.
  void (*gradient_sums_pixels)(const char* g, const char* x, int64_t n, int64_t channels, int64_t count,
                               const char* mean, double* sum, double* dot, char* room) = nullptr;
  /// y = (x - mean) * rstd * w + b (w and b of the dtype of statistics, or null).
  void (*normalize)(const char* x, double mean, double rstd, const char* w, const char* b, char* y,
                    int64_t n) = nullptr;
  /// Returns sum(g * w) and sum(g * w * (x - mean)); adds g * (x - mean) * rstd to gw and g to gb.
  void (*normalize_sums)(const char* g, const char* x, double mean, double rstd, const char* w, char* gw, char* gb,
                         int64_t n, double* sum, double* dot) = nullptr;
  /// gx = (g * w - a - (x - mean) * b) * rstd.
  void (*normalize_gradient)(const char* g, const char* x, double mean, double rstd, const char* w, double a, double b,
                             char* gx, int64_t n) = nullptr;
  /// A step of an LSTM: gates and activations [4 n], states [n].
  void (*lstm_cell)(const char* gates, const char* cx, char* h, char* c, char* activations, int64_t n) = nullptr;
  void (*_lstm_cell_backward)(const char* activations, const char* cx, const char* gh, const char* gc, char* ggates,
                              char* gcx, int64_t n) = nullptr;  // gh or gc may be null: zeros
};

/// Returns the kernels of a floating dtype for the instruction set in use; Error(type) for any other dtype.
const RowKernels& row_kernels(DType d);

}  // namespace vesta::cpu
