// Gradient scaling on CUDA: the host's half. Lists go to the device in batches, one launch each; nothing waits.
#include <vesta/core/ops/amp.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/optim.h>
#include <vesta/cuda/kernels/amp.h>
#include <vesta/cuda/register.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {
namespace {

float* float_of(const Tensor& t) { return reinterpret_cast<float*>(t.impl()->data()); }

/// The launches over those tensors of a list that have one dtype.
class Batches {
 public:
  Batches(DType dtype, const Tensor& found_inf, const Tensor& inv_scale, StreamHandle stream)
      : dtype_(dtype), stream_(stream) {
    batch_.found_inf = float_of(found_inf), batch_.inv_scale = float_of(inv_scale);
  }
  void add(const Tensor& g) {
    const int64_t blocks = (g.numel() + kUnscaleChunk - 1) / kUnscaleChunk;
    if (blocks == 0) return;
    constexpr int64_t kMaxBlocks = 0x7fffffff;
    if (batch_.count == kUnscaleTensors || blocks + batch_.first_block[batch_.count] > kMaxBlocks) flush();
    const int i = batch_.count++;
    batch_.data[i] = g.impl()->data(), batch_.numel[i] = g.numel();
    batch_.first_block[i + 1] = batch_.first_block[i] + uint32_t(blocks);
  }
  void flush() {
    if (batch_.count) unscale(batch_, dtype_, stream_);
    batch_.count = 0;
  }

 private:
  DType dtype_;
  StreamHandle stream_;
  UnscaleBatch batch_;
};

void unscale_kernel(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  constexpr const char* op = "_amp_unscale_";
  check_amp_unscale(grads, found_inf, inv_scale);
  const int device = index_of(found_inf.device());
  DeviceGuard guard(device);
  const StreamHandle stream = current_stream(device).handle();
  for (DType d : {DType::float16, DType::bfloat16, DType::float32, DType::float64}) {
    Batches batches(d, found_inf, inv_scale, stream);
    std::vector<std::pair<const Tensor*, Tensor>> copies;  // for gradients with holes: written back
    for (const Tensor& g : grads) {
      if (g.dtype() != d) continue;
      if (!g.impl()->dense()) copies.emplace_back(&g, clone(g, "contiguous_format"));
      else g.impl()->bump(op);
      batches.add(g.impl()->dense() ? g : copies.back().second);
    }
    batches.flush();
    for (const auto& [g, copy] : copies) copy_into(*g, copy, op);
  }
  found_inf.impl()->bump(op);
}

void update_kernel(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf, double growth_factor,
                   double backoff_factor, int64_t growth_interval) {
  constexpr const char* op = "_amp_update_scale_";
  check_amp_update_scale(scale, growth_tracker, found_inf, growth_interval);
  const int device = index_of(scale.device());
  DeviceGuard guard(device);
  update_scale(float_of(scale), reinterpret_cast<int32_t*>(growth_tracker.impl()->data()), float_of(found_inf),
               growth_factor, backoff_factor, growth_interval, current_stream(device).handle());
  scale.impl()->bump(op);
  growth_tracker.impl()->bump(op);
}

}  // namespace

void register_amp() {
  ops::_amp_unscale_.set_kernel(DeviceType::cuda, unscale_kernel);
  ops::_amp_update_scale_.set_kernel(DeviceType::cuda, update_kernel);
}

}  // namespace vesta::cuda
