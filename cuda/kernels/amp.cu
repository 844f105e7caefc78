// Kernels of gradient scaling.
#include <vesta/cuda/kernels/amp.h>
#include <vesta/cuda/kernels/types.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = 256;

template <class T, int N>
struct alignas(N * sizeof(T)) Pack {
  T v[N];
};

/// Unscales one element; returns whether it was finite.
template <class T>
VESTA_DEVICE bool unscale_one(T& g, compute_of<T> factor) {
  const compute_of<T> v = convert<compute_of<T>>(g);
  g = convert<T>(v * factor);
  return math::isfinite(v);
}

/// Unscales the batch: a block takes one chunk of one tensor. All threads that find a value that is not finite write
/// the same 1, so the order does not matter.
template <class T>
VESTA_KERNEL void unscale_kernel(UnscaleBatch b) {
  constexpr int N = int(16 / sizeof(T));
  int t = 0;
  while (blockIdx.x >= b.first_block[t + 1]) ++t;
  const int64_t begin = int64_t(blockIdx.x - b.first_block[t]) * kUnscaleChunk;
  const int64_t rest = b.numel[t] - begin;
  const int n = int(rest < kUnscaleChunk ? rest : kUnscaleChunk);
  T* g = reinterpret_cast<T*>(b.data[t]) + begin;
  const compute_of<T> factor = compute_of<T>(*b.inv_scale);
  const bool packs = reinterpret_cast<uintptr_t>(g) % 16 == 0;
  const int whole = packs ? n / N * N : 0;
  bool finite = true;
  for (int i = int(threadIdx.x) * N; i < whole; i += int(kThreads) * N) {
    auto pack = *reinterpret_cast<Pack<T, N>*>(g + i);
    for (int j = 0; j < N; ++j) finite = unscale_one(pack.v[j], factor) && finite;
    *reinterpret_cast<Pack<T, N>*>(g + i) = pack;
  }
  for (int i = whole + int(threadIdx.x); i < n; i += int(kThreads)) finite = unscale_one(g[i], factor) && finite;
  if (!finite) *b.found_inf = 1.0f;
}

VESTA_KERNEL void update_scale_kernel(float* scale, int32_t* tracker, const float* found_inf, double growth_factor,
                                      double backoff_factor, int64_t growth_interval) {
  if (threadIdx.x != 0) return;
  if (*found_inf != 0) {
    *scale = float(double(*scale) * backoff_factor), *tracker = 0;
    return;
  }
  const int32_t count = *tracker + 1;
  if (count < growth_interval) {
    *tracker = count;
    return;
  }
  const float grown = float(double(*scale) * growth_factor);
  if (math::isfinite(grown)) *scale = grown;
  *tracker = 0;
}

}  // namespace

void unscale(const UnscaleBatch& batch, DType dtype, StreamHandle stream) {
  visit_device<kFloats>(dtype, [&]<class T>() {
    LaunchShape shape;
    shape.grid[0] = batch.first_block[batch.count], shape.block[0] = kThreads, shape.stream = stream;
    launch_independent("_amp_unscale_", unscale_kernel<T>, shape, batch);
  });
}

void update_scale(float* scale, int32_t* tracker, const float* found_inf, double growth_factor, double backoff_factor,
                  int64_t growth_interval, StreamHandle stream) {
  launch_independent("_amp_update_scale_", update_scale_kernel, linear_shape(1, 32, stream), scale, tracker, found_inf,
                     growth_factor, backoff_factor, growth_interval);
}

}  // namespace vesta::cuda
