#include <vesta/core/cpu/norm_pixels.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/rounding.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/dtype_set.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kChannels = 512;  // whose sums of a piece lie in L2
constexpr int64_t kPieceBytes = 1 << 18;  // of a piece that L2 keeps, should it be read twice
constexpr int64_t kPixelElements = 16384;  // elements that make a task worthwhile

int64_t pieces_of(const Pixels& p) { return std::max<int64_t>(1, ceil_div(p.inner, row_kernels(p.dtype).chain)); }

/// Computes two numbers of every channel for each piece, up to `chain` pixels of one sample: piece(offset in bytes,
/// pixels, first channel, channels, numbers, numbers) for `strip` channels at a time. Returns [batch, pieces, 2,
/// channels].
template <class F>
std::unique_ptr<double[]> over_pieces(const Pixels& p, int64_t strip, F piece) {
  const RowKernels& k = row_kernels(p.dtype);
  const int64_t pieces = pieces_of(p), item = itemsize(p.dtype);
  const int64_t strips = ceil_div(p.channels, strip);
  auto parts = std::make_unique_for_overwrite<double[]>(size_t(p.batch * pieces * 2 * p.channels));
  const int64_t work = std::max<int64_t>(1, std::min(k.chain, p.inner) * std::min(strip, p.channels));
  parallel_for(p.batch * pieces * strips, std::max<int64_t>(1, kPixelElements / work), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t t = i / strips, c = i % strips * strip;
      const int64_t first = t % pieces * k.chain, n = std::min(k.chain, p.inner - first);
      double* const to = parts.get() + t * 2 * p.channels + c;
      piece(((t / pieces * p.inner + first) * p.channels + c) * item, n, c, std::min(strip, p.channels - c), to,
            to + p.channels);
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

/// Calls f(first pixel's offset in bytes, pixels, whether the results at `to` are non_temporal) for pieces of all
/// samples, from the last one on: the last cache has it still where all were read before.
template <class F>
void over_pixels(const Pixels& p, const char* to, F f) {
  const int64_t row = p.channels * itemsize(p.dtype), all = p.batch * p.inner;
  const bool non_temporal = rows_bypass_caches(to, all, row);
  parallel_for(all, std::max<int64_t>(1, kPixelElements / p.channels), [&](int64_t begin, int64_t end) {
    f((all - end) * row, end - begin, non_temporal);
    if (non_temporal) finish_non_temporal();
  });
}

/// Calls f(first channel, channels) for channels that have `numbers` numbers each.
template <class F>
void over_channels(const Pixels& p, int64_t numbers, F f) {
  const int64_t grain = std::max<int64_t>(16, kPixelElements / std::max<int64_t>(1, numbers));
  parallel_for(p.channels, grain, [&](int64_t begin, int64_t end) { f(begin, end - begin); });
}

}  // namespace

void add_statistics(double count, double* mean, double* squares, double more, const double* more_mean,
                    const double* more_squares, int64_t channels) {
  if (count == 0) {
    std::copy_n(more_mean, channels, mean);
    std::copy_n(more_squares, channels, squares);
    return;
  }
  row_kernels(DType::float64).add_statistics(count, mean, squares, more, more_mean, more_squares, channels);
}

void pixel_statistics(const Pixels& p, const char* x, OfChannels& mean, OfChannels& squares) {
  const RowKernels& k = row_kernels(p.dtype);
  const int64_t piece = std::min(k.chain, p.inner), pieces = pieces_of(p);
  const int64_t strip = std::clamp<int64_t>(kPieceBytes / (piece * itemsize(p.dtype)) / 16 * 16, 16, kChannels);
  const auto parts =
      over_pieces(p, strip, [&](int64_t at, int64_t n, int64_t, int64_t count, double* means, double* sums) {
        k.statistics_pixels(x + at, n, p.channels, count, means, sums);
      });
  over_channels(p, p.batch * pieces, [&](int64_t c, int64_t count) {
    OfChannels sample_mean(static_cast<size_t>(count)), sample_squares(sample_mean.size());
    for (int64_t n = 0; n < p.batch; ++n) {
      double in_sample = 0;
      for (int64_t i = 0; i < pieces; ++i) {
        const double* const part = parts.get() + (n * pieces + i) * 2 * p.channels + c;
        const double more = double(std::min(k.chain, p.inner - i * k.chain));
        add_statistics(in_sample, sample_mean.data(), sample_squares.data(), more, part, part + p.channels, count);
        in_sample += more;
      }
      add_statistics(double(n * p.inner), mean.data() + c, squares.data() + c, in_sample, sample_mean.data(),
                     sample_squares.data(), count);
    }
  });
}

void pixel_gradient_sums(const Pixels& p, const char* g, const char* x, const OfChannels& mean, OfChannels& sum,
                         OfChannels& dot) {
  const RowKernels& k = row_kernels(p.dtype);
  const std::vector<char> means = narrowed(p, mean);
  const int64_t wide = p.dtype == DType::float64 ? 8 : 4, pieces = pieces_of(p);
  const auto parts =
      over_pieces(p, kChannels, [&](int64_t at, int64_t n, int64_t c, int64_t count, double* sums, double* dots) {
        k.gradient_sums_pixels(g + at, x + at, n, p.channels, count, means.data() + c * wide, sums, dots);
      });
  over_channels(p, p.batch * pieces, [&](int64_t begin, int64_t count) {
    OfChannels sums(static_cast<size_t>(count)), dots(sums.size());
    for (int64_t n = 0; n < p.batch; ++n) {
      std::ranges::fill(sums, 0), std::ranges::fill(dots, 0);
      for (int64_t i = 0; i < pieces; ++i) {
        const double* const part = parts.get() + (n * pieces + i) * 2 * p.channels + begin;
        for (int64_t c = 0; c < count; ++c) sums[size_t(c)] += part[c], dots[size_t(c)] += part[p.channels + c];
      }
      for (int64_t c = 0; c < count; ++c) {
        sum[size_t(begin + c)] += sums[size_t(c)], dot[size_t(begin + c)] += dots[size_t(c)];
      }
    }
  });
}

void affine_pixels(const Pixels& p, const char* x, const OfChannels& center, const OfChannels& scale,
                   const OfChannels& shift, char* y) {
  const std::vector<char> m = narrowed(p, center), a = narrowed(p, scale), b = narrowed(p, shift);
  over_pixels(p, y, [&](int64_t at, int64_t n, bool non_temporal) {
    row_kernels(p.dtype).affine_pixels(x + at, m.data(), a.data(), b.data(), y + at, n, p.channels, non_temporal);
  });
}

void combine_pixels(const Pixels& p, const char* g, const char* x, const OfChannels& center, const OfChannels& a,
                    const OfChannels& b, const OfChannels& c, char* gx) {
  const std::vector<char> m = narrowed(p, center), va = narrowed(p, a), vb = narrowed(p, b), vc = narrowed(p, c);
  over_pixels(p, gx, [&](int64_t at, int64_t n, bool non_temporal) {
    row_kernels(p.dtype).combine_pixels(g + at, x + at, m.data(), va.data(), vb.data(), vc.data(), gx + at, n,
                                        p.channels, non_temporal);
  });
}

}  // namespace vesta::cpu
