#include <vesta/nn/utils/clip_grad.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/factory.h>
#include <vesta/core/ops/index.h>
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/core/ops/select.h>

namespace vesta::nn::utils {
namespace {

std::vector<Tensor> gradients(const char* op, const std::vector<Tensor>& parameters) {
  std::vector<Tensor> r;
  for (const Tensor& p : parameters) {
    VESTA_CHECK(p.defined(), value, op, ": expected parameters, got an undefined tensor.");
    if (Tensor g = p.grad(); g.defined()) r.push_back(g.detach());
  }
  return r;
}

/// Returns the p-norm of all elements; in float32 at least, since the squares of 16-bit floats overflow.
Tensor norm_of(const Tensor& given, double p) {
  const bool short_float = given.dtype() == DType::float16 || given.dtype() == DType::bfloat16;
  const Tensor x = short_float ? given.to(DType::float32) : given;
  if (std::isinf(p)) return x.numel() ? amax(abs(x)) : sum(x);
  if (p == 2 && !is_complex(x.dtype())) return sqrt(sum(mul(x, x)));
  return pow(sum(pow(abs(x), p)), 1 / p);
}

/// A device with its gradients.
using Groups = std::vector<std::pair<Device, std::vector<Tensor>>>;

/// Returns the gradients of each device, in order; empty where an op over lists does not take one of them.
Groups by_device(const std::vector<Tensor>& grads) {
  Groups r;
  for (const Tensor& g : grads) {
    if (g.is_sparse() || !is_float(g.dtype())) return {};
    auto group = std::ranges::find_if(r, [&](const auto& one) { return one.first == g.device(); });
    if (group == r.end()) group = r.insert(r.end(), {g.device(), {}});
    group->second.push_back(g);
  }
  return r;
}

}  // namespace

Tensor get_grad_norm(const std::vector<Tensor>& parameters, double norm_type) {
  VESTA_CHECK(norm_type != 0 && !std::isnan(norm_type) && norm_type > -std::numeric_limits<double>::infinity(), value,
              "get_grad_norm: expected a number but 0, got ", norm_type, " (norm_type).");
  const NoGrad off;
  const std::vector<Tensor> grads = gradients("get_grad_norm", parameters);
  if (grads.empty()) return zeros(IntList());
  std::vector<Tensor> norms;
  const Groups groups = by_device(grads);
  if (!groups.empty() && (norm_type == 1 || norm_type == 2 || std::isinf(norm_type))) {
    for (const auto& [device, list] : groups) norms.push_back(_list_norms(list, norm_type, true).to(grads[0].device()));
  } else {
    for (const Tensor& g : grads) norms.push_back(norm_of(g, norm_type).to(grads[0].device()));
  }
  return norms.size() == 1 ? norms[0] : norm_of(stack(norms), norm_type);
}

Tensor clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, double norm_type,
                       bool error_if_nonfinite) {
  const NoGrad off;
  Tensor total = get_grad_norm(parameters, norm_type);
  VESTA_CHECK(!error_if_nonfinite || std::isfinite(total.to(DType::float64).item<double>()), runtime,
              "clip_grad_norm_: The total norm of order ", norm_type,
              " for gradients from `parameters` is non-finite, so it cannot be clipped.");
  const std::vector<Tensor> grads = gradients("clip_grad_norm_", parameters);
  const Groups groups = by_device(grads);
  if (!groups.empty()) {  // the factor stays on the device: the host does not wait
    for (const auto& [device, list] : groups) _list_mul_(list, total.to(device), max_norm, true);
    return total;
  }
  const Tensor factor = clamp(Scalar(max_norm) / add(total, 1e-6), {}, 1.0);
  for (const Tensor& g : grads) {
    ops::mul(g, factor.to(g.device()), Out{&g, Out::inplace});
  }
  return total;
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double clip_value) {
  VESTA_CHECK(clip_value >= 0, value, "clip_grad_value_: expected clip_value >= 0, got ", clip_value, ".");
  const NoGrad off;
  for (const Tensor& g : gradients("clip_grad_value_", parameters)) clamp_out(g, g, -clip_value, clip_value);
}

}  // namespace vesta::nn::utils
