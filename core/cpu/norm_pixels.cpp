#include <vesta/core/cpu/norm_pixels.h>

#include <algorithm>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/dtype_set.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kChannels = 512;  // whose sums of a piece lie in L2
constexpr int64_t kTaskElements = 16384;  // elements that make a task worthwhile

/// Computes the sums of every channel and sample: piece(offset in bytes, pixels, first channel, channels, sums, sums,
/// room) sums up to `chain` pixels. Pieces of a sample are added in order.
template <class F>
std::vector<PairOfSums> sum_pieces(const Pixels& p, F piece) {
  const RowKernels& k = row_kernels(p.dtype);
  const int64_t pieces = std::max<int64_t>(1, (p.inner + k.chain - 1) / k.chain), item = itemsize(p.dtype);
  const int64_t most = std::min(kChannels, p.channels), wide = p.dtype == DType::float64 ? 8 : 4;
  const size_t tasks = size_t(p.batch * pieces), channels = size_t(p.channels);
  std::vector<double> parts(tasks * 2 * channels);
  const int64_t work = std::max<int64_t>(1, std::min(k.chain, p.inner) * p.channels);
  parallel_for(int64_t(tasks), std::max<int64_t>(1, kTaskElements / work), [&](int64_t begin, int64_t end) {
    char* const room = static_cast<char*>(thread_scratch(Scratch::operand_a, size_t(2 * k.slots * most * wide)));
    for (int64_t t = begin; t < end; ++t) {
      const int64_t first = t % pieces * k.chain, n = std::min(k.chain, p.inner - first);
      double* const sums = parts.data() + size_t(t) * 2 * channels;
      for (int64_t c = 0; c < p.channels; c += kChannels) {
        piece(((t / pieces * p.inner + first) * p.channels + c) * item, n, c, std::min(kChannels, p.channels - c),
              sums + c, sums + channels + c, room);
      }
    }
  });
  std::vector<PairOfSums> sums(size_t(p.batch) * channels, {0, 0});
  for (size_t t = 0; t < tasks; ++t) {
    const double* const part = parts.data() + t * 2 * channels;
    PairOfSums* const to = sums.data() + t / size_t(pieces) * channels;
    for (size_t c = 0; c < channels; ++c) to[c].first += part[c], to[c].second += part[channels + c];
  }
  return sums;
}

/// Returns one number per channel in the dtype of statistics.
std::vector<char> narrowed(const Pixels& p, const std::vector<double>& v) {
  const bool wide = p.dtype == DType::float64;
  std::vector<char> out(v.size() * (wide ? 8 : 4));
  if (wide) std::ranges::copy(v, reinterpret_cast<double*>(out.data()));
  else std::ranges::transform(v, reinterpret_cast<float*>(out.data()), [](double d) { return float(d); });
  return out;
}

/// Calls f(first pixel's offset in bytes, pixels) for pieces of all samples.
template <class F>
void over_pixels(const Pixels& p, F f) {
  const int64_t row = p.channels * itemsize(p.dtype);
  parallel_for(p.batch * p.inner, std::max<int64_t>(1, kTaskElements / p.channels),
               [&](int64_t begin, int64_t end) { f(begin * row, end - begin); });
}

}  // namespace

std::vector<PairOfSums> pixel_moments(const Pixels& p, const char* x, const std::vector<double>& shift, bool squares) {
  const RowKernels& k = row_kernels(p.dtype);
  const std::vector<char> shifts = narrowed(p, shift);
  const int64_t wide = p.dtype == DType::float64 ? 8 : 4;
  return sum_pieces(p, [&](int64_t at, int64_t n, int64_t c, int64_t count, double* a, double* b, char* room) {
    k.moments_pixels(x + at, n, p.channels, count, shifts.data() + c * wide, a, squares ? b : nullptr, room);
  });
}

std::vector<PairOfSums> pixel_gradient_sums(const Pixels& p, const char* g, const char* x,
                                            const std::vector<double>& mean) {
  const RowKernels& k = row_kernels(p.dtype);
  const std::vector<char> means = narrowed(p, mean);
  const int64_t wide = p.dtype == DType::float64 ? 8 : 4;
  return sum_pieces(p, [&](int64_t at, int64_t n, int64_t c, int64_t count, double* a, double* b, char* room) {
    k.gradient_sums_pixels(g + at, x + at, n, p.channels, count, means.data() + c * wide, a, b, room);
  });
}

void affine_pixels(const Pixels& p, const char* x, const std::vector<double>& scale, const std::vector<double>& shift,
                   char* y) {
  const std::vector<char> a = narrowed(p, scale), b = narrowed(p, shift);
  over_pixels(p, [&](int64_t at, int64_t n) {
    row_kernels(p.dtype).affine_pixels(x + at, a.data(), b.data(), y + at, n, p.channels);
  });
}

void combine_pixels(const Pixels& p, const char* g, const char* x, const std::vector<double>& a,
                    const std::vector<double>& b, const std::vector<double>& c, char* gx) {
  const std::vector<char> va = narrowed(p, a), vb = narrowed(p, b), vc = narrowed(p, c);
  over_pixels(p, [&](int64_t at, int64_t n) {
    row_kernels(p.dtype).combine_pixels(g + at, x + at, va.data(), vb.data(), vc.data(), gx + at, n, p.channels);
  });
}

}  // namespace vesta::cpu
