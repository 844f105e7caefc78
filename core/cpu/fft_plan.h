// Discrete Fourier transforms of one line of any length, over KissFFT's class template: for lengths that the kernels of
// fft_lanes.h do not take.
//
// Note [Transforms in double]
// Everything is computed in double, float32 operands too: KissFFT is scalar code, which double does not slow down, and
// its roots of unity in float would cost three digits. Debian's package has the compiled library for float only; the
// template serves both and leaves nothing to link or to ship. It is one pass of n * p steps for a prime factor p, so
// lengths with a large one go through Bluestein's convolution.
#pragma once
#include <complex>
#include <cstdint>
#include <memory>
#include <vector>

namespace vesta::cpu {

/// The transform of n points in one direction, not scaled. Not for several threads at once: each takes a copy.
class FftPlan {
 public:
  using Complex = std::complex<double>;
  using Point = Complex;
  FftPlan(int64_t n, bool forward);
  FftPlan(const FftPlan& other);
  ~FftPlan();
  /// Transforms n points; `in` and `out` do not overlap.
  void run(const Complex* in, Complex* out);

 private:
  struct Direct;
  struct Bluestein;
  std::unique_ptr<Direct> direct_;
  std::unique_ptr<Bluestein> bluestein_;
};

/// The forward transform of n real points to the frequencies 0 to n / 2, not scaled.
class RealFftPlan {
 public:
  using Complex = std::complex<double>;
  using Point = double;
  explicit RealFftPlan(int64_t n);
  /// Transforms n real points into n / 2 + 1.
  void run(const double* in, Complex* out);

 private:
  int64_t n_;
  FftPlan plan_;  // of n / 2 pairs of points where n is even, else of n points
  std::vector<Complex> roots_, buffer_;
};

}  // namespace vesta::cpu
