// Gradient scaling on the CPU.
#include <vesta/core/ops/amp.h>

#include <atomic>
#include <cmath>

#include <vesta/core/cpu/optim_kernels.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/optim.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kUnscaleGrain = 16384;  // elements a thread takes at a time, as in the optimizer steps

void unscale_kernel(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  constexpr const char* op = "_amp_unscale_";
  check_amp_unscale(grads, found_inf, inv_scale);
  const double factor = *inv_scale.data_ptr<float>();
  std::atomic<bool> finite{true};
  for (const Tensor& g : grads) {
    const Tensor dense = g.impl()->dense() ? g : clone(g, "contiguous_format");
    const int64_t item = itemsize(g.dtype());
    auto run = optim_kernels(g.dtype()).unscale;
    char* data = dense.impl()->data();
    parallel_for(g.numel(), kUnscaleGrain, [&](int64_t b, int64_t e) {
      if (!run(data + b * item, e - b, factor)) finite.store(false, std::memory_order_relaxed);
    });
    if (dense.is_same(g)) g.impl()->bump(op);
    else copy_into(g, dense, op);
  }
  if (finite) return;
  *found_inf.data_ptr<float>() = 1;
  found_inf.impl()->bump(op);
}

void update_kernel(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                   double backoff_factor, int64_t growth_interval) {
  constexpr const char* op = "_amp_update_scale_";
  check_amp_update_scale(scale, growth_tracker, found_inf, growth_interval);
  float& s = *scale.data_ptr<float>();
  int32_t& tracker = *growth_tracker.data_ptr<int32_t>();
  if (*found_inf.data_ptr<float>() != 0) {
    s = float(double(s) * backoff_factor), tracker = 0;
  } else if (++tracker >= growth_interval) {
    const float grown = float(double(s) * growth_factor);
    if (std::isfinite(grown)) s = grown;
    tracker = 0;
  }
  scale.impl()->bump(op);
  growth_tracker.impl()->bump(op);
}

}  // namespace

void register_amp() {
  ops::_amp_unscale_.set_kernel(DeviceType::cpu, unscale_kernel);
  ops::_amp_update_scale_.set_kernel(DeviceType::cpu, update_kernel);
}

}  // namespace vesta::cpu
