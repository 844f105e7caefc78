#include <vesta/nn/init.h>

#include <cmath>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/random.h>

namespace vesta::nn::init {

namespace { thread_local int skipped = 0; }  // namespace

Skip::Skip() { ++skipped; }
Skip::~Skip() { --skipped; }

std::pair<int64_t, int64_t> fans(const Tensor& w) {
  VESTA_CHECK(w.dim() >= 2, value,
              "init: Fan in and fan out can not be computed for tensor with fewer than 2 dimensions, got ", w.sizes(),
              ".");
  int64_t window = 1;
  for (int64_t d = 2; d < w.dim(); ++d) window *= w.size(d);
  return {w.size(1) * window, w.size(0) * window};
}

double calculate_gain(Text nonlinearity, double slope) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid") return 1;
  if (nonlinearity == "tanh") return 5.0 / 3;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  VESTA_CHECK(nonlinearity == "leaky_relu", value,
              "calculate_gain: expected linear, sigmoid, tanh, relu or leaky_relu, got '", nonlinearity, "'.");
  return std::sqrt(2.0 / (1 + slope * slope));
}

namespace {
double kaiming_std(const Tensor& t, double a, Fan mode, Text nonlinearity) {
  auto [in, out] = fans(t);
  return calculate_gain(nonlinearity, a) / std::sqrt(double(mode == Fan::in ? in : out));
}
double xavier_std(const Tensor& t, double gain) {
  auto [in, out] = fans(t);
  return gain * std::sqrt(2.0 / double(in + out));
}
}  // namespace

Tensor uniform_(const Tensor& t, double low, double high) {
  if (skipped) return t;
  NoGrad off;
  return vesta::uniform_(t, low, high);
}
Tensor normal_(const Tensor& t, double mean, double std) {
  if (skipped) return t;
  NoGrad off;
  return vesta::normal_(t, mean, std);
}
Tensor constant_(const Tensor& t, double value) {
  if (skipped) return t;
  NoGrad off;
  return fill_(t, value);
}
Tensor zeros_(const Tensor& t) { return constant_(t, 0); }
Tensor ones_(const Tensor& t) { return constant_(t, 1); }

Tensor kaiming_uniform_(const Tensor& t, double a, Fan mode, Text nonlinearity) {
  if (t.numel() == 0) return t;  // no fan to divide by
  double bound = std::sqrt(3.0) * kaiming_std(t, a, mode, nonlinearity);
  return init::uniform_(t, -bound, bound);
}
Tensor kaiming_normal_(const Tensor& t, double a, Fan mode, Text nonlinearity) {
  return t.numel() == 0 ? t : init::normal_(t, 0., kaiming_std(t, a, mode, nonlinearity));
}
Tensor xavier_uniform_(const Tensor& t, double gain) {
  if (t.numel() == 0) return t;
  double bound = std::sqrt(3.0) * xavier_std(t, gain);
  return init::uniform_(t, -bound, bound);
}
Tensor xavier_normal_(const Tensor& t, double gain) {
  return t.numel() == 0 ? t : init::normal_(t, 0., xavier_std(t, gain));
}

}  // namespace vesta::nn::init
