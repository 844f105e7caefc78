// Kernels over lists of gradients: one launch for many tensors, in which a block takes one chunk of one of them.
#include <vesta/cuda/kernels/amp.h>
#include <vesta/cuda/kernels/entries.cuh>
#include <vesta/cuda/kernels/teams.cuh>

namespace vesta::cuda {
namespace {

constexpr unsigned kThreads = kTeamThreads;

/// The chunk of this block.
template <class T>
struct Chunk {
  T* at;
  int n;
  bool aligned;
  VESTA_DEVICE Chunk(const TensorBatch& b, int64_t most) {
    int t = 0, high = b.count;
    while (high - t > 1) {
      const int middle = (t + high) / 2;
      if (b.first_block[middle] <= blockIdx.x) t = middle;
      else high = middle;
    }
    const int64_t begin = int64_t(blockIdx.x - b.first_block[t]) * most;
    const int64_t rest = b.numel[t] - begin;
    n = int(rest < most ? rest : most);
    at = reinterpret_cast<T*>(b.data[t]) + begin;
    aligned = reinterpret_cast<uintptr_t>(at) % 16 == 0;
  }
};

/// Multiplies one element; returns whether it was finite.
template <class T>
VESTA_DEVICE bool scale_one(T& x, compute_of<T> factor) {
  const compute_of<T> v = convert<compute_of<T>>(x);
  x = convert<T>(v * factor);
  return math::isfinite(v);
}

/// Multiplies the batch. All threads that find a value that is not finite write the same 1, so the order does not
/// matter. By 1 nothing changes, and nothing is read where nobody asks for infinities.
template <class T>
VESTA_KERNEL void scale_kernel(VESTA_CONSTANT_ARGUMENT TensorBatch b, ListFactor f, float* found_inf) {
  constexpr int N = int(16 / sizeof(T));
  const compute_of<T> factor = multiplier<compute_of<T>>(f);
  if (!found_inf && factor == compute_of<T>(1)) return;
  const Chunk<T> chunk(b, kScaleChunk);
  const int n = chunk.n, whole = chunk.aligned ? n / N * N : 0;
  bool finite = true;
  if (whole == kScaleChunk) {  // all packs of a thread are on the way before it scales one
    constexpr int kStep = int(kThreads) * N, kPacks = int(kScaleChunk) / kStep;
    Elements<T, N> packs[kPacks];
    T* const mine = chunk.at + int(threadIdx.x) * N;
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) packs[k] = *reinterpret_cast<const Elements<T, N>*>(mine + k * kStep);
    VESTA_UNROLL
    for (int k = 0; k < kPacks; ++k) {
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) finite = scale_one(packs[k].v[j], factor) && finite;
      *reinterpret_cast<Elements<T, N>*>(mine + k * kStep) = packs[k];
    }
    if (found_inf && !finite) *found_inf = 1.0f;
    return;
  }
  for (int i = int(threadIdx.x) * N; i < whole; i += int(kThreads) * N) {
    auto pack = *reinterpret_cast<Elements<T, N>*>(chunk.at + i);
    for (int j = 0; j < N; ++j) finite = scale_one(pack.v[j], factor) && finite;
    *reinterpret_cast<Elements<T, N>*>(chunk.at + i) = pack;
  }
  for (int i = whole + int(threadIdx.x); i < n; i += int(kThreads)) finite = scale_one(chunk.at[i], factor) && finite;
  if (found_inf && !finite) *found_inf = 1.0f;
}

VESTA_KERNEL void zero_kernel(VESTA_CONSTANT_ARGUMENT TensorBatch b) {
  constexpr int N = 16;
  const Chunk<char> chunk(b, kZeroChunk);
  const int whole = chunk.aligned ? chunk.n / N * N : 0;
  const Elements<char, N> zeros = {};
  for (int i = int(threadIdx.x) * N; i < whole; i += int(kThreads) * N) store_whole(chunk.at + i, zeros);
  for (int i = whole + int(threadIdx.x); i < chunk.n; i += int(kThreads)) chunk.at[i] = 0;
}

/// Combines two sums, or two magnitudes.
template <class C>
VESTA_DEVICE C combined(C a, C b, NormKind kind) {
  return kind == NormKind::greatest ? extremum(a, b) : a + b;
}

/// Sums a chunk. Thread t has the packs t, t + 256, ...; element j of each adds to number j, loaded whole or not.
template <class T>
VESTA_KERNEL void norm_parts_kernel(VESTA_CONSTANT_ARGUMENT TensorBatch b, NormKind kind, double* sums) {
  using C = compute_of<T>;
  constexpr int N = int(16 / sizeof(T)), kAtOnce = 4, kStep = int(kThreads) * N;
  static_assert(kNormChunk % (kAtOnce * kStep) == 0);
  const Chunk<T> chunk(b, kNormChunk);
  C parts[N] = {};
  const auto add = [&](const Elements<T, N>& pack) {
    C v[N];
    widen(pack, v);
    VESTA_UNROLL
    for (int j = 0; j < N; ++j) {
      parts[j] = combined(parts[j], kind == NormKind::squares ? v[j] * v[j] : math::abs(v[j]), kind);
    }
  };
  const int mine = int(threadIdx.x) * N;
  if (chunk.aligned && chunk.n == kNormChunk) {
    VESTA_ROLLED
    for (int i = mine; i < kNormChunk; i += kAtOnce * kStep) {
      Elements<T, N> packs[kAtOnce];
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) packs[k] = *reinterpret_cast<const Elements<T, N>*>(chunk.at + i + k * kStep);
      VESTA_UNROLL
      for (int k = 0; k < kAtOnce; ++k) add(packs[k]);
    }
  } else {
    VESTA_ROLLED
    for (int i = mine; i < chunk.n; i += kStep) {
      Elements<T, N> pack;
      VESTA_UNROLL
      for (int j = 0; j < N; ++j) pack.v[j] = i + j < chunk.n ? chunk.at[i + j] : convert<T>(C(0));
      add(pack);
    }
  }
  VESTA_UNROLL
  for (int width = N / 2; width > 0; width /= 2) {
    VESTA_UNROLL
    for (int j = 0; j < width; ++j) parts[j] = combined(parts[j], parts[j + width], kind);
  }
  const C sum = block_reduce(parts[0], [kind](C x, C y) { return combined(x, y, kind); }, 0);
  if (threadIdx.x == 0) sums[blockIdx.x] = double(sum);
}

/// Makes a norm of its sums: a block each.
VESTA_KERNEL void norms_kernel(VESTA_CONSTANT_ARGUMENT NormBatch b, NormKind kind) {
  double part = 0;
  VESTA_ROLLED
  for (uint32_t i = b.first[blockIdx.x] + threadIdx.x; i < b.last[blockIdx.x]; i += kThreads) {
    part = combined(part, b.sums[i], kind);
  }
  const double sum = block_reduce(part, [kind](double x, double y) { return combined(x, y, kind); }, 0);
  if (threadIdx.x != 0) return;
  const double norm = kind == NormKind::squares ? math::sqrt(sum) : sum;
  const uint32_t place = b.place[blockIdx.x];
  if (b.wide) b.wide[place] = norm;
  else b.result[place] = float(norm);
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

void scale(const char* name, const TensorBatch& batch, DType dtype, const ListFactor& f, float* found_inf,
           StreamHandle stream) {
  visit_device<kFloats>(dtype, [&]<class T>() {
    launch_independent(name, scale_kernel<T>,
                       linear_shape(uint64_t(batch.first_block[batch.count]) * kThreads, kThreads, stream), batch, f,
                       found_inf);
  });
}

void norm_parts(const TensorBatch& batch, DType dtype, NormKind kind, double* sums, StreamHandle stream) {
  visit_device<kFloats>(dtype, [&]<class T>() {
    launch_block("_list_norms parts", norm_parts_kernel<T>,
                 linear_shape(uint64_t(batch.first_block[batch.count]) * kThreads, kThreads, stream), batch, kind,
                 sums);
  });
}

void norms(const NormBatch& batch, NormKind kind, StreamHandle stream) {
  launch_block("_list_norms", norms_kernel, linear_shape(uint64_t(batch.count) * kThreads, kThreads, stream), batch,
               kind);
}

void zero(const TensorBatch& batch, StreamHandle stream) {
  launch_independent("_list_zero_", zero_kernel,
                     linear_shape(uint64_t(batch.first_block[batch.count]) * kThreads, kThreads, stream), batch);
}

void update_scale(float* scale, int32_t* tracker, const float* found_inf, double growth_factor, double backoff_factor,
                  int64_t growth_interval, StreamHandle stream) {
  launch_independent("_amp_update_scale_", update_scale_kernel, linear_shape(1, 32, stream), scale, tracker, found_inf,
                     growth_factor, backoff_factor, growth_interval);
}

}  // namespace vesta::cuda
