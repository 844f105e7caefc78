#include <vesta/core/cpu/norm_pixels.h>

#include <algorithm>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/dtype_set.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kChannels = 512;  // whose sums of a piece lie in L2
constexpr int64_t kPieceBytes = 1 << 18;  // of a piece that L2 keeps for a second pass
constexpr int64_t kTaskElements = 16384;  // elements that make a task worthwhile

int64_t pieces_of(const Pixels& p) { return std::max<int64_t>(1, ceil_div(p.inner, row_kernels(p.dtype).chain)); }

/// Computes two numbers of every channel for each piece, up to `chain` pixels of one sample: piece(offset in bytes,
/// pixels, first channel, channels, numbers, numbers, room) for `strip` channels at a time. Returns [batch, pieces, 2,
/// channels]. `room` is for `numbers` times as many numbers of the dtype of statistics as there are channels.
template <class F>
std::vector<double> over_pieces(const Pixels& p, int64_t strip, int64_t numbers, F piece) {
  const RowKernels& k = row_kernels(p.dtype);
  const int64_t pieces = pieces_of(p), item = itemsize(p.dtype), wide = p.dtype == DType::float64 ? 8 : 4;
  const int64_t strips = ceil_div(p.channels, strip);
  std::vector<double> parts(size_t(p.batch * pieces * 2 * p.channels));
  const int64_t work = std::max<int64_t>(1, std::min(k.chain, p.inner) * std::min(strip, p.channels));
  parallel_for(p.batch * pieces * strips, std::max<int64_t>(1, kTaskElements / work), [&](int64_t begin, int64_t end) {
    char* const room = static_cast<char*>(thread_scratch(Scratch::operand_a, size_t(numbers * strip * wide)));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i / strips, c = i % strips * strip;
      const int64_t first = t % pieces * k.chain, n = std::min(k.chain, p.inner - first);
      double* const to = parts.data() + t * 2 * p.channels + c;
      piece(((t / pieces * p.inner + first) * p.channels + c) * item, n, c, std::min(strip, p.channels - c), to,
            to + p.channels, room);
    }
  });
  return parts;
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

std::vector<Statistics> pixel_statistics(const Pixels& p, const char* x) {
  const RowKernels& k = row_kernels(p.dtype);
  const int64_t piece = std::min(k.chain, p.inner), pieces = pieces_of(p);
  // A piece is read twice, the second time from L2.
  const int64_t strip = std::clamp<int64_t>(kPieceBytes / (piece * itemsize(p.dtype)) / 16 * 16, 16, kChannels);
  const std::vector<double> parts =
      over_pieces(p, strip, 2 * k.slots + 1,
                  [&](int64_t at, int64_t n, int64_t, int64_t count, double* mean, double* squares, char* room) {
                    k.statistics_pixels(x + at, n, p.channels, count, mean, squares, room);
                  });
  std::vector<Statistics> all(size_t(p.channels));
  parallel_for(p.channels, std::max<int64_t>(1, kTaskElements / (p.batch * pieces)), [&](int64_t begin, int64_t end) {
    for (int64_t n = 0; n < p.batch; ++n) {
      for (int64_t c = begin; c < end; ++c) {
        Statistics sample;
        for (int64_t i = 0; i < pieces; ++i) {
          const double* const part = parts.data() + (n * pieces + i) * 2 * p.channels + c;
          sample.add({double(std::min(k.chain, p.inner - i * k.chain)), part[0], part[p.channels]});
        }
        all[size_t(c)].add(sample);
      }
    }
  });
  return all;
}

std::vector<PairOfSums> pixel_gradient_sums(const Pixels& p, const char* g, const char* x,
                                            const std::vector<double>& mean) {
  const RowKernels& k = row_kernels(p.dtype);
  const std::vector<char> means = narrowed(p, mean);
  const int64_t wide = p.dtype == DType::float64 ? 8 : 4, pieces = pieces_of(p);
  const std::vector<double> parts =
      over_pieces(p, kChannels, 2 * k.slots,
                  [&](int64_t at, int64_t n, int64_t c, int64_t count, double* a, double* b, char* room) {
                    k.gradient_sums_pixels(g + at, x + at, n, p.channels, count, means.data() + c * wide, a, b, room);
                  });
  std::vector<PairOfSums> sums(size_t(p.batch * p.channels), {0, 0});
  for (int64_t t = 0; t < p.batch * pieces; ++t) {
    const double* const part = parts.data() + t * 2 * p.channels;
    PairOfSums* const to = sums.data() + t / pieces * p.channels;
    for (int64_t c = 0; c < p.channels; ++c) to[c].first += part[c], to[c].second += part[p.channels + c];
  }
  return sums;
}

void affine_pixels(const Pixels& p, const char* x, const OfChannels& center, const OfChannels& scale,
                   const OfChannels& shift, char* y) {
  const std::vector<char> m = narrowed(p, center), a = narrowed(p, scale), b = narrowed(p, shift);
  over_pixels(p, [&](int64_t at, int64_t n) {
    row_kernels(p.dtype).affine_pixels(x + at, m.data(), a.data(), b.data(), y + at, n, p.channels);
  });
}

void combine_pixels(const Pixels& p, const char* g, const char* x, const OfChannels& center, const OfChannels& a,
                    const OfChannels& b, const OfChannels& c, char* gx) {
  const std::vector<char> m = narrowed(p, center), va = narrowed(p, a), vb = narrowed(p, b), vc = narrowed(p, c);
  over_pixels(p, [&](int64_t at, int64_t n) {
    row_kernels(p.dtype).combine_pixels(g + at, x + at, m.data(), va.data(), vb.data(), vc.data(), gx + at, n,
                                        p.channels);
  });
}

}  // namespace vesta::cpu
