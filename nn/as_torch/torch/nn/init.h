// Initial values of parameters, in place and without recording; every function returns its tensor.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <tuple>
#include <variant>

#include <torch/types.h>

#include <vesta/core/ops/ops.h>
#include <vesta/nn/init.h>

namespace torch::nn::init {

using NonlinearityType =
    std::variant<enumtype::kLinear, enumtype::kConv1D, enumtype::kConv2D, enumtype::kConv3D, enumtype::kConvTranspose1D,
                 enumtype::kConvTranspose2D, enumtype::kConvTranspose3D, enumtype::kSigmoid, enumtype::kTanh,
                 enumtype::kReLU, enumtype::kLeakyReLU>;
using FanModeType = std::variant<enumtype::kFanIn, enumtype::kFanOut>;

namespace detail {
inline std::string name_of(const NonlinearityType& nonlinearity) {
  if (std::holds_alternative<enumtype::kTanh>(nonlinearity)) return "tanh";
  if (std::holds_alternative<enumtype::kReLU>(nonlinearity)) return "relu";
  if (std::holds_alternative<enumtype::kLeakyReLU>(nonlinearity)) return "leaky_relu";
  return "linear";
}
inline vesta::nn::init::Fan fan_of(const FanModeType& mode) {
  return std::holds_alternative<enumtype::kFanIn>(mode) ? vesta::nn::init::Fan::in : vesta::nn::init::Fan::out;
}
}  // namespace detail

/// Returns the factor by which initial values are larger in front of a nonlinearity.
inline double calculate_gain(NonlinearityType nonlinearity, double param = 0.01) {
  return vesta::nn::init::calculate_gain(detail::name_of(nonlinearity), param);
}
/// Returns (fan_in, fan_out) of a weight [out, in, ...].
inline std::tuple<int64_t, int64_t> _calculate_fan_in_and_fan_out(const Tensor& tensor) {
  const auto [in, out] = vesta::nn::init::fans(tensor);
  return {in, out};
}

inline Tensor constant_(Tensor tensor, Scalar value) {
  const vesta::NoGrad off;
  return vesta::fill_(tensor, value);
}
inline Tensor ones_(Tensor tensor) { return vesta::nn::init::ones_(tensor); }
inline Tensor zeros_(Tensor tensor) { return vesta::nn::init::zeros_(tensor); }
inline Tensor normal_(Tensor tensor, double mean = 0, double std = 1) {
  return vesta::nn::init::normal_(tensor, mean, std);
}
inline Tensor uniform_(Tensor tensor, double low = 0, double high = 1) {
  return vesta::nn::init::uniform_(tensor, low, high);
}
inline Tensor kaiming_normal_(Tensor tensor, double a = 0, FanModeType mode = torch::kFanIn,
                              NonlinearityType nonlinearity = torch::kLeakyReLU) {
  return vesta::nn::init::kaiming_normal_(tensor, a, detail::fan_of(mode), detail::name_of(nonlinearity));
}
inline Tensor kaiming_uniform_(Tensor tensor, double a = 0, FanModeType mode = torch::kFanIn,
                               NonlinearityType nonlinearity = torch::kLeakyReLU) {
  return vesta::nn::init::kaiming_uniform_(tensor, a, detail::fan_of(mode), detail::name_of(nonlinearity));
}
inline Tensor xavier_normal_(Tensor tensor, double gain = 1) { return vesta::nn::init::xavier_normal_(tensor, gain); }
inline Tensor xavier_uniform_(Tensor tensor, double gain = 1) { return vesta::nn::init::xavier_uniform_(tensor, gain); }

/// Fills a matrix with the identity.
inline Tensor eye_(Tensor matrix) {
  TORCH_CHECK(matrix.dim() == 2, "Only tensors with 2 dimensions are supported");
  const vesta::NoGrad off;
  return vesta::copy_(matrix, vesta::eye(matrix.size(0), matrix.size(1)));
}
/// Fills the weight of a convolution so that it passes channels through.
inline Tensor dirac_(Tensor tensor) {
  TORCH_CHECK(tensor.dim() >= 3 && tensor.dim() <= 5, "Only tensors with 3, 4, or 5 dimensions are supported");
  const vesta::NoGrad off;
  vesta::fill_(tensor, 0);
  for (int64_t channel = 0; channel < std::min(tensor.size(0), tensor.size(1)); ++channel) {
    Tensor middle = vesta::select(vesta::select(tensor, 0, channel), 0, channel);
    while (middle.dim() > 0) middle = vesta::select(middle, 0, middle.size(0) / 2);
    vesta::fill_(middle, 1);
  }
  return tensor;
}
/// Fills a tensor, read as a matrix, with orthogonal rows or columns (the fewer), times `gain`.
inline Tensor orthogonal_(Tensor tensor, double gain = 1) {
  TORCH_CHECK(tensor.dim() >= 2, "Only tensors with 2 or more dimensions are supported");
  if (tensor.numel() == 0) return tensor;
  const vesta::NoGrad off;
  const int64_t rows = tensor.size(0), columns = tensor.numel() / rows;
  const Tensor drawn = vesta::normal_(vesta::empty({rows, columns}, tensor.dtype(), tensor.device()), 0.0, 1.0);
  const auto turned = [&](const Tensor& x) { return rows < columns ? vesta::transpose(x, 0, 1) : x; };
  const auto [q, r] = vesta::linalg::qr(turned(drawn));
  const Tensor signs = vesta::sign(vesta::diagonal(r));
  vesta::copy_(tensor, vesta::reshape(turned(vesta::mul(q, signs)), tensor.sizes()));
  return vesta::copy_(tensor, vesta::mul(tensor, gain));
}
/// Fills a matrix with normal values and zeroes the fraction `sparsity` of each column.
inline Tensor sparse_(Tensor tensor, double sparsity, double std = 0.01) {
  TORCH_CHECK(tensor.dim() == 2, "Only tensors with 2 dimensions are supported");
  const auto zeros = int64_t(std::ceil(sparsity * double(tensor.size(0))));
  init::normal_(tensor, 0, std);
  const vesta::NoGrad off;
  for (int64_t column = 0; column < tensor.size(1); ++column) {
    const Tensor rows = vesta::narrow(vesta::randperm(tensor.size(0)), 0, 0, zeros).to(tensor.device());
    vesta::index_fill_(vesta::select(tensor, 1, column), 0, rows, 0);
  }
  return tensor;
}

}  // namespace torch::nn::init
