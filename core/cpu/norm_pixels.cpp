#include <vesta/core/cpu/norm_pixels.h>

#include <algorithm>

#include <vesta/core/cpu/copy.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/row_kernels.h>
#include <vesta/core/cpu/scratch.h>
#include <vesta/core/dtype_set.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kChannels = 32;  // of a task: a few cache lines of each pixel
constexpr int64_t kTaskElements = 16384;  // elements that make a task worthwhile

/// Transposes pixels [first, first + n) of an image, channels [c, c + count), into rows.
void read_rows(const Pixels& p, const char* image, int64_t first, int64_t n, int64_t c, int64_t count, char* rows) {
  const int64_t item = itemsize(p.dtype);
  transpose_matrix({.from = image + (first * p.channels + c) * item,
                    .to = rows,
                    .from_row = p.channels * item,
                    .to_row = n * item,
                    .rows = n,
                    .columns = count,
                    .item = item});
}

/// Calls sum(channel, row of the first image, row of the second, n) for the chains of every channel and sample, and
/// adds up what it returns. The second image may be null.
template <class F>
std::vector<PairOfSums> sum_chains(const Pixels& p, const char* a, const char* b, F sum) {
  std::vector<PairOfSums> sums(size_t(p.batch * p.channels), {0, 0});
  const int64_t chain = row_kernels(p.dtype).chain, item = itemsize(p.dtype);
  const int64_t cuts = (p.channels + kChannels - 1) / kChannels, bytes = p.inner * p.channels * item;
  const int64_t grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(1, p.inner * kChannels));
  parallel_for(p.batch * cuts, grain, [&](int64_t begin, int64_t end) {
    const int64_t room = kChannels * std::min(chain, p.inner) * item;
    char* const rows_a = static_cast<char*>(thread_scratch(Scratch::operand_a, size_t(room)));
    char* const rows_b = static_cast<char*>(thread_scratch(Scratch::operand_b, size_t(b ? room : 0)));
    for (int64_t t = begin; t < end; ++t) {
      const int64_t n = t / cuts, c0 = t % cuts * kChannels, count = std::min(kChannels, p.channels - c0);
      for (int64_t first = 0; first < p.inner; first += chain) {
        const int64_t length = std::min(chain, p.inner - first);
        read_rows(p, a + n * bytes, first, length, c0, count, rows_a);
        if (b) read_rows(p, b + n * bytes, first, length, c0, count, rows_b);
        for (int64_t c = 0; c < count; ++c) {
          const PairOfSums part = sum(c0 + c, rows_a + c * length * item, rows_b + c * length * item, length);
          PairOfSums& to = sums[size_t(n * p.channels + c0 + c)];
          to.first += part.first, to.second += part.second;
        }
      }
    }
  });
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

std::vector<PairOfSums> pixel_moments(const Pixels& p, const char* x, const std::vector<double>& shift) {
  const RowKernels& k = row_kernels(p.dtype);
  return sum_chains(p, x, nullptr, [&](int64_t c, const char* row, const char*, int64_t n) {
    PairOfSums s;
    k.moments(row, n, shift[size_t(c)], &s.first, &s.second);
    return s;
  });
}

std::vector<PairOfSums> pixel_gradient_sums(const Pixels& p, const char* g, const char* x,
                                            const std::vector<double>& mean) {
  const RowKernels& k = row_kernels(p.dtype);
  return sum_chains(p, g, x, [&](int64_t c, const char* of_g, const char* of_x, int64_t n) {
    PairOfSums s;
    k.gradient_sums(of_g, of_x, mean[size_t(c)], n, &s.first, &s.second);
    return s;
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
