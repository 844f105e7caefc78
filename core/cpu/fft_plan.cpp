#include <vesta/core/cpu/fft_plan.h>

#include <algorithm>
#include <cmath>
#include <kissfft/kissfft.hh>
#include <numbers>

namespace vesta::cpu {
namespace {

using Complex = FftPlan::Complex;

/// Returns exp(i pi k / n).
Complex root(int64_t k, int64_t n) { return std::polar(1.0, std::numbers::pi * double(k) / double(n)); }

int64_t largest_prime_factor(int64_t n) {
  int64_t largest = 1;
  for (int64_t p = 2; p * p <= n; ++p) {
    for (; n % p == 0; n /= p) largest = p;
  }
  return n > 1 ? n : largest;
}

// A prime factor p costs p steps per point, Bluestein two transforms of up to 4 n points. They cross at about 40.
constexpr int64_t kLargestDirectFactor = 31;

}  // namespace

/// KissFFT's mixed radices.
struct FftPlan::Direct {
  kissfft<double> fft;
};

/// Bluestein 1970: with w = exp(-+ i pi k^2 / n), which makes j k = (j^2 + k^2 - (k - j)^2) / 2, a transform of any
/// length is w times the convolution of w x with conj(w), done by transforms whose length is a power of two.
struct FftPlan::Bluestein {
  int64_t n, padded;
  kissfft<double> there, back;
  std::vector<Complex> chirp, filter, a, b;

  static int64_t padded_length(int64_t n) {
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    return m;
  }
  Bluestein(int64_t n, bool forward)
      : n(n),
        padded(padded_length(n)),
        there(size_t(padded), false),
        back(size_t(padded), true),
        chirp(size_t(n)),
        filter(size_t(padded)),
        a(size_t(padded)),
        b(size_t(padded)) {
    for (int64_t k = 0; k < n; ++k) {
      const Complex w = root(int64_t((static_cast<unsigned __int128>(k) * uint64_t(k)) % uint64_t(2 * n)), n);
      chirp[size_t(k)] = forward ? std::conj(w) : w;
    }
    for (int64_t k = 0; k < n; ++k) {
      a[size_t(k)] = a[size_t(k ? padded - k : 0)] = std::conj(chirp[size_t(k)]) / double(padded);
    }
    there.transform(a.data(), filter.data());
  }
  void run(const Complex* in, Complex* out) {
    std::fill(a.begin(), a.end(), Complex());
    for (size_t k = 0; k < size_t(n); ++k) a[k] = in[k] * chirp[k];
    there.transform(a.data(), b.data());
    for (size_t k = 0; k < size_t(padded); ++k) b[k] *= filter[k];
    back.transform(b.data(), a.data());
    for (size_t k = 0; k < size_t(n); ++k) out[k] = a[k] * chirp[k];
  }
};

FftPlan::FftPlan(int64_t n, bool forward) {
  if (largest_prime_factor(n) <= kLargestDirectFactor) {
    direct_ = std::make_unique<Direct>(Direct{kissfft<double>(size_t(n), !forward)});
  } else {
    bluestein_ = std::make_unique<Bluestein>(n, forward);
  }
}
FftPlan::FftPlan(const FftPlan& o)
    : direct_(o.direct_ ? std::make_unique<Direct>(*o.direct_) : nullptr),
      bluestein_(o.bluestein_ ? std::make_unique<Bluestein>(*o.bluestein_) : nullptr) {}
FftPlan::~FftPlan() = default;

void FftPlan::run(const Complex* in, Complex* out) {
  if (direct_) direct_->fft.transform(in, out);
  else bluestein_->run(in, out);
}

RealFftPlan::RealFftPlan(int64_t n) : n_(n), plan_(n % 2 ? n : n / 2, true), buffer_(size_t(n)) {
  if (n % 2) return;
  for (int64_t k = 0; k < n / 2; ++k) roots_.push_back(std::conj(root(2 * k, n)));
}

void RealFftPlan::run(const double* in, Complex* out) {
  if (n_ % 2) {
    std::vector<Complex> line(in, in + n_);
    plan_.run(line.data(), buffer_.data());
    std::copy_n(buffer_.begin(), n_ / 2 + 1, out);
    return;
  }
  // Even and odd points are the two parts of half as many complex ones, whose transform z holds both: that of the even
  // ones is (z[k] + conj(z[-k])) / 2, that of the odd ones (z[k] - conj(z[-k])) / 2i.
  const int64_t half = n_ / 2;
  plan_.run(reinterpret_cast<const Complex*>(in), buffer_.data());
  const Complex first = buffer_[0];
  out[0] = first.real() + first.imag(), out[half] = first.real() - first.imag();
  for (int64_t k = 1; k < half; ++k) {
    const Complex z = buffer_[size_t(k)], mirrored = std::conj(buffer_[size_t(half - k)]);
    out[k] = 0.5 * (z + mirrored) + roots_[size_t(k)] * (Complex(0, -0.5) * (z - mirrored));
  }
}

}  // namespace vesta::cpu
