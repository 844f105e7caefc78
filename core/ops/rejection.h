// Random numbers by rejection: an element draws numbers of its own, one block of the generator after another, until a
// draw is accepted. Everything is computed in double, so that devices agree but for the last digits of their functions.
#pragma once
#include <cmath>
#include <cstdint>

#include <vesta/core/base/macros.h>
#include <vesta/core/base/philox.h>

namespace vesta {

/// The numbers that belong to one element: blocks `element`, `element` + 2^40, ... of a stream.
class Draws {
 public:
  VESTA_HD Draws(uint64_t seed, uint64_t offset, uint64_t element) : seed_(seed), offset_(offset), next_(element) {}
  /// Returns the next block.
  VESTA_HD Philox4 block() {
    const Philox4 r = philox_block(seed_, offset_, next_);
    next_ += uint64_t(1) << 40;
    return r;
  }
  /// Returns the next two uniform numbers of [0, 1).
  VESTA_HD void uniform(double (&to)[2]) {
    const Philox4 w = block();
    to[0] = uniform_double(w.word[0], w.word[1]), to[1] = uniform_double(w.word[2], w.word[3]);
  }

 private:
  uint64_t seed_, offset_, next_;
};

/// Returns the logarithm of the probability of a count that is at least 0, for a rate and its logarithm. Large counts
/// take Stirling's series, and differences that lose no digits: counts are near their rate.
VESTA_HD inline double log_poisson(double count, double rate, double log_rate) {
  if (count < 16) {
    double factorial = 1;
    for (double i = 2; i <= count; ++i) factorial *= i;
    return count * log_rate - rate - std::log(factorial);
  }
  const double t = (rate - count) / count, inverse = 1 / count, square = inverse * inverse;
  const double series = inverse * (1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square / 1680)));
  constexpr double kHalfLog = 0.91893853320467274178;  // log(2 pi) / 2
  return count * (std::log1p(t) - t) - 0.5 * std::log(count) - kHalfLog - series;
}

/// Returns a number of the Poisson distribution with a finite rate that is at least 0. Below 10 it counts uniform
/// factors until their product falls below e^-rate (Knuth); above: PTRS of Hoermann, "The transformed rejection method
/// for generating Poisson random variables", 1993.
VESTA_HD inline double draw_poisson(double rate, Draws draws) {
  double u[2];
  if (rate < 10) {
    const double limit = std::exp(-rate);
    double product = 1;
    for (double count = 0;; count += 2) {
      draws.uniform(u);
      product *= u[0];
      if (!(product > limit)) return count;
      product *= u[1];
      if (!(product > limit)) return count + 1;
    }
  }
  const double b = std::sqrt(rate) * 2.53 + 0.931, a = b * 0.02483 - 0.059, log_rate = std::log(rate);
  const double inverse_alpha = 1.1328 / (b - 3.4) + 1.1239, quick = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    draws.uniform(u);
    const double x = u[0] - 0.5, v = u[1], near = 0.5 - std::fabs(x);
    const double k = std::floor((2 * a / near + b) * x + rate + 0.43);
    if (near >= 0.07 && v <= quick) return k;
    if (k < 0 || (near < 0.013 && v > near)) continue;
    if (std::log(v * inverse_alpha / (a / (near * near) + b)) <= log_poisson(k, rate, log_rate)) return k;
  }
}

/// The normal distribution cut off outside of [a, b]: draws that fall outside are made again. They are normal where [a,
/// b] holds a large part of it; uniform over [a, b], kept with probability density(x) / largest density; or, far in a
/// tail, exponential (Robert, "Simulation of truncated normal variables", 1995).
struct TruncatedNormal {
  enum class Way : int { normal, uniform, exponential };
  double mean, std, a, b;
  double mode = 0, rate = 0;  // where the density is largest within [a, b], and how fast it falls from there
  Way way = Way::normal;

  TruncatedNormal(double mean_, double std_, double a_, double b_) : mean(mean_), std(std_), a(a_), b(b_) {
    const double lower = (a - mean) / (std * std::sqrt(2.0)), upper = (b - mean) / (std * std::sqrt(2.0));
    mode = mean < a ? a : mean > b ? b : mean;
    rate = std::fabs(mean - mode) / std / std;
    if (std::erf(upper) - std::erf(lower) <= 0.5) way = rate * (b - a) > 20 ? Way::exponential : Way::uniform;
  }
  /// Draws once: sets x, and returns whether it is accepted.
  VESTA_HD bool draw(const double (&u)[2], double& x) const {
    if (way == Way::exponential) {
      const double step = std::log(u[0]) / -rate, z = step / std;
      x = mean < a ? mode + step : mode - step;
      return u[1] <= std::exp(-0.5 * z * z);
    }
    x = a + u[0] * (b - a);
    const double less = (mode - x) / std, sum = ((mode - mean) + (x - mean)) / std;  // a difference of squares
    return u[1] <= std::exp(0.5 * less * sum);
  }
  /// Returns a number of the distribution after `round`, which rounds to the dtype of the result.
  template <class F>
  VESTA_HD double operator()(Draws draws, F round) const {
    double x = mode;
    for (int i = 0; i < 10000; ++i) {  // more only where no number of the dtype lies within [a, b]
      double pair[2];
      if (way == Way::normal) {
        const NormalPair<double> z = normal_pair(draws.block());
        pair[0] = mean + z.first * std, pair[1] = mean + z.second * std;
        for (double draw : pair) {
          x = round(draw);
          if (x >= a && x <= b) return x;
        }
        continue;
      }
      draws.uniform(pair);
      if (!draw(pair, x)) continue;
      x = round(x);
      if (x >= a && x <= b) return x;
    }
    return round(mode);
  }
};

}  // namespace vesta
