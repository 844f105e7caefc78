// Gradient scaling and clipping on CUDA: the host's half. Lists go to the device in batches, one launch each; nothing
// waits.
#include <vesta/core/ops/amp.h>

#include <vesta/core/ops/copy.h>
#include <vesta/core/ops/optim.h>
#include <vesta/core/ops/optim_call.h>
#include <vesta/cuda/kernels/amp.h>
#include <vesta/cuda/register.h>
#include <vesta/cuda/stream.h>

namespace vesta::cuda {
namespace {

float* float_of(const Tensor& t) { return reinterpret_cast<float*>(t.impl()->data()); }

/// The launches over those tensors of a list that have one dtype, in chunks of equal length.
template <class Launch>
class Batches {
 public:
  /// `launch` gets a batch and the number of blocks before it.
  Batches(int64_t chunk, Launch launch) : chunk_(chunk), launch_(launch) {}
  void add(char* data, int64_t n) {
    const int64_t blocks = (n + chunk_ - 1) / chunk_;
    if (blocks == 0) return;
    constexpr int64_t kMaxBlocks = 0x7fffffff;
    if (batch_.count == kBatchTensors || blocks + batch_.first_block[batch_.count] > kMaxBlocks) flush();
    const int i = batch_.count++;
    batch_.data[i] = data, batch_.numel[i] = n;
    batch_.first_block[i + 1] = batch_.first_block[i] + uint32_t(blocks);
  }
  void flush() {
    if (batch_.count == 0) return;
    launch_(batch_, before_);
    before_ += batch_.first_block[batch_.count];
    batch_.count = 0;
  }

 private:
  int64_t chunk_, before_ = 0;
  Launch launch_;
  TensorBatch batch_;
};

constexpr DType kListTypes[] = {DType::float16, DType::bfloat16, DType::float32, DType::float64};

/// Queues list *= f, dtype by dtype.
void scale_list(TensorList list, const ListFactor& f, float* found_inf, const char* op, StreamHandle stream) {
  DenseMemory memory(op);
  for (DType d : kListTypes) {
    Batches batches(kScaleChunk, [&](const TensorBatch& b, int64_t) { scale(op, b, d, f, found_inf, stream); });
    for (const Tensor& t : list) {
      if (t.dtype() == d) batches.add(memory.of(t), t.numel());
    }
    batches.flush();
  }
  memory.written(list);
}

void unscale_kernel(TensorList grads, const Tensor& found_inf, const Tensor& inv_scale) {
  constexpr const char* op = "_amp_unscale_";
  check_amp_unscale(grads, found_inf, inv_scale);
  const int device = index_of(found_inf.device());
  DeviceGuard guard(device);
  ListFactor f;
  f.by = float_of(inv_scale);
  scale_list(grads, f, float_of(found_inf), op, current_stream(device).handle());
  found_inf.impl()->bump(op);
}

void mul_kernel(TensorList tensors, MaybeTensor by, double factor, bool clip) {
  ListFactor f = check_list_mul(tensors, by, factor, clip);
  if (tensors.empty()) return;
  const int device = index_of(tensors[0].device());
  DeviceGuard guard(device);
  Tensor copy;  // of an element that is written, too
  for (const Tensor& t : tensors) {
    if (!by.defined() || t.impl()->storage() != by->impl()->storage()) continue;
    copy = clone(*by, "contiguous_format");
    f = check_list_mul(tensors, copy, factor, clip);
    break;
  }
  const StreamHandle stream = current_stream(device).handle();
  if (!overlapping(tensors)) return scale_list(tensors, f, nullptr, "_list_mul_", stream);
  for (size_t i = 0; i < tensors.size(); ++i) {
    scale_list(TensorList(tensors.subspan(i, 1)), f, nullptr, "_list_mul_", stream);
  }
}

void zero_kernel(TensorList tensors) {
  check_list_zero(tensors);
  if (tensors.empty()) return;
  const int device = index_of(tensors[0].device());
  DeviceGuard guard(device);
  const StreamHandle stream = current_stream(device).handle();
  DenseMemory memory("_list_zero_");
  Batches batches(kZeroChunk, [&](const TensorBatch& b, int64_t) { zero(b, stream); });
  for (const Tensor& t : tensors) batches.add(memory.of(t), t.numel() * itemsize(t.dtype()));
  batches.flush();
  memory.written(tensors);
}

int64_t norm_chunks(const Tensor& t) { return (t.numel() + kNormChunk - 1) / kNormChunk; }

/// Queues the sums of the chunks of all tensors, those of one dtype after those of another; returns them, and in
/// `first` where each tensor's begin.
Tensor chunk_sums(TensorList tensors, NormKind kind, std::vector<uint32_t>& first, StreamHandle stream) {
  int64_t total = 0;
  for (const Tensor& t : tensors) total += norm_chunks(t);
  VESTA_CHECK(total <= 0x7fffffff, runtime, "_list_norms: expected less than 2^44 elements in all.");
  Tensor sums = empty_tensor(IntSpan(&total, 1), DType::float64, tensors[0].device());
  double* at = reinterpret_cast<double*>(sums.impl()->data());
  DenseMemory memory("_list_norms");
  int64_t place = 0;
  for (DType d : kListTypes) {
    const int64_t begin = place;
    Batches batches(kNormChunk,
                    [&](const TensorBatch& b, int64_t before) { norm_parts(b, d, kind, at + begin + before, stream); });
    for (size_t i = 0; i < tensors.size(); ++i) {
      const Tensor& t = tensors[i];
      if (t.dtype() != d) continue;
      batches.add(memory.of(t), t.numel());
      first[i] = uint32_t(place);
      place += norm_chunks(t);
    }
    batches.flush();
  }
  return sums;
}

Tensor norms_kernel(TensorList tensors, double ord, bool total) {
  const NormKind kind = check_list_norms(tensors, ord);
  const int device = index_of(tensors[0].device());
  DeviceGuard guard(device);
  const StreamHandle stream = current_stream(device).handle();
  Tensor r = empty_norms(tensors, total);
  std::vector<uint32_t> first(tensors.size());
  const Tensor sums = chunk_sums(tensors, kind, first, stream);
  NormBatch batch;
  batch.sums = reinterpret_cast<const double*>(sums.impl()->data());
  if (r.dtype() == DType::float64) batch.wide = reinterpret_cast<double*>(r.impl()->data());
  else batch.result = float_of(r);
  if (total) {
    batch.count = 1, batch.last[0] = uint32_t(sums.numel());
    norms(batch, kind, stream);
    return r;
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const int k = batch.count++;
    batch.first[k] = first[i], batch.last[k] = first[i] + uint32_t(norm_chunks(tensors[i]));
    batch.place[k] = uint32_t(i);
    if (batch.count < kBatchTensors && i + 1 < tensors.size()) continue;
    norms(batch, kind, stream);
    batch.count = 0;
  }
  return r;
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
  ops::_list_norms.set_kernel(DeviceType::cuda, norms_kernel);
  ops::_list_mul_.set_kernel(DeviceType::cuda, mul_kernel);
  ops::_list_zero_.set_kernel(DeviceType::cuda, zero_kernel);
  ops::_amp_unscale_.set_kernel(DeviceType::cuda, unscale_kernel);
  ops::_amp_update_scale_.set_kernel(DeviceType::cuda, update_kernel);
}

}  // namespace vesta::cuda
