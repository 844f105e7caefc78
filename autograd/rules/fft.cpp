// Fourier transforms are linear: the gradient is that of the adjoint, the transform in the other direction with the
// same scale. Half of a spectrum stands for its mirror image too, all but the frequency 0 and, of an even length, the
// last: the adjoint of reading such a half back counts those in between twice, that of keeping it only half.
#include <vesta/autograd/record.h>
#include <vesta/autograd/rules/rules.h>
#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/fft.h>
#include <vesta/core/ops/view.h>

namespace vesta::autograd::rules {
namespace {

/// Multiplies the frequencies of half a spectrum that have a mirror image by `factor`; `n`: the length of the whole.
Tensor weighted(const Tensor& half, int64_t dim, int64_t n, double factor) {
  const int64_t d = wrap_dim(dim, half.dim(), "fft"), count = half.size(d);
  Tensor weights = full(count, factor, real_type(half.dtype()), half.device());
  fill_(select(weights, 0, 0), 1.0);
  if (n % 2 == 0) fill_(select(weights, 0, count - 1), 1.0);
  Dims shape(size_t(half.dim()), 1);
  shape[size_t(d)] = count;
  return half * view(weights, shape);
}

struct R2cRule {
  Dims dim;
  int64_t normalization = 0, n = 0;
  bool onesided = true;
  static R2cRule save(const Tensor&, const Tensor& x, IntList dim, int64_t normalization, bool onesided, Needs) {
    return {Dims(dim), normalization, x.size(dim.back()), onesided};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    if (!onesided) return _fft_c2c(g, dim, normalization, false);  // the engine takes the real part
    return _fft_c2r(weighted(g, dim.back(), n, 0.5), dim, normalization, n);
  }
};

struct C2rRule {
  Dims dim;
  int64_t normalization = 0, n = 0;
  static C2rRule save(const Tensor&, const Tensor&, IntList dim, int64_t normalization, int64_t n, Needs) {
    return {Dims(dim), normalization, n};
  }
  Tensor operator()(const Tensor& g, Needs) const {
    return weighted(_fft_r2c(g, dim, normalization, true), dim.back(), n, 2);
  }
};

struct C2cRule {
  Dims dim;
  int64_t normalization = 0;
  bool forward = true;
  static C2cRule save(const Tensor&, const Tensor&, IntList dim, int64_t normalization, bool forward, Needs) {
    return {Dims(dim), normalization, forward};
  }
  Tensor operator()(const Tensor& g, Needs) const { return _fft_c2c(g, dim, normalization, !forward); }
};

}  // namespace

void register_fft() {
  record<ops::_fft_r2c, R2cRule>();
  record<ops::_fft_c2r, C2rRule>();
  record<ops::_fft_c2c, C2cRule>();
}

}  // namespace vesta::autograd::rules
