// Fourier transforms of tensors, dimension after dimension: lines whose length has small factors in groups
// (fft_lanes.h), others one after the other in the plans of fft_plan.h.
#include <algorithm>

#include <vesta/core/cpu/fft_lanes.h>
#include <vesta/core/cpu/fft_plan.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/fft.h>
#include <vesta/core/ops/kernel_checks.h>

namespace vesta::cpu {
namespace {

using Complex = FftPlan::Complex;
constexpr DTypeSet kReal = set_of(DType::float32) | set_of(DType::float64);
constexpr int64_t kPointGrain = 16384;  // points, of all lines in one piece of a loop

/// Returns all of `all` but number `dim`.
Dims others(IntSpan all, int64_t dim) {
  Dims left;
  for (size_t d = 0; d < all.size(); ++d) {
    if (int64_t(d) != dim) left.push_back(all[d]);
  }
  return left;
}

/// Describes the lines of a tensor along `dim` in numbers of type T; `pairs`: each point is two neighbours of a real
/// tensor.
template <class T, class P>
FftSide<P> side_of(const Tensor& t, int64_t dim, bool pairs) {
  const int64_t parts = is_complex(t.dtype()) ? 2 : 1;
  Dims strides = others(t.strides(), dim);
  for (int64_t& s : strides) s *= parts;
  const int64_t step = t.strides()[size_t(dim)] * parts;
  P* data;
  if (parts == 2) data = reinterpret_cast<T*>(elements<std::complex<T>>(t));
  else data = elements<T>(t);
  return {data, pairs ? 2 * step : step, pairs ? step : 1, std::move(strides)};
}

/// Transforms the lines of x along `dim` into y, which may be x.
template <class T>
void transform_in_lanes(const Tensor& x, const Tensor& y, int64_t dim, FftKind kind, bool forward, double scale) {
  const bool to_real = kind == FftKind::to_pairs || kind == FftKind::to_odd_reals;
  const bool from_pairs = kind == FftKind::from_pairs, to_pairs = kind == FftKind::to_pairs;
  const int64_t n = to_real ? y.size(dim) : x.size(dim);
  transform_lines(FftJob<T>{.kind = kind,
                            .forward = forward,
                            .n = from_pairs || to_pairs ? n / 2 : n,
                            .out = to_pairs ? n / 2 : y.size(dim),
                            .sizes = others(y.sizes(), dim),
                            .from = side_of<T, const T>(x, dim, from_pairs),
                            .to = side_of<T, T>(y, dim, to_pairs),
                            .scale = T(scale)});
}

/// The lines of a tensor along one dimension, one by one: line i begins at `begin(i)`, its elements are `step` apart.
struct Lines {
  Dims sizes, strides;
  int64_t step;
  Lines(const Tensor& t, int64_t dim)
      : sizes(others(t.sizes(), dim)), strides(others(t.strides(), dim)), step(t.strides()[size_t(dim)]) {}
  int64_t count() const {
    int64_t n = 1;
    for (int64_t size : sizes) n *= size;
    return n;
  }
  int64_t begin(int64_t line) const { return offset_of_line(sizes, strides, line); }
};

/// Transforms line by line in a plan for n points: read() fills in a line's points, write() makes a result of one.
template <class In, class Out, class Plan, class Read, class Write>
void transform_by_plan(const Tensor& x, const Tensor& y, int64_t dim, int64_t n, const Plan& plan, const Read& read,
                       const Write& write) {
  const Lines from(x, dim), to(y, dim);
  const In* data = elements<In>(x);
  Out* result = elements<Out>(y);
  parallel_for(to.count(), std::max<int64_t>(1, kPointGrain / n), [&](int64_t begin, int64_t end) {
    Plan own(plan);
    std::vector<typename Plan::Point> in(static_cast<size_t>(n));
    std::vector<Complex> out(static_cast<size_t>(n));
    for (int64_t line = begin; line < end; ++line) {
      read(data + from.begin(line), from.step, in);
      own.run(in.data(), out.data());
      Out* const there = result + to.begin(line);
      for (int64_t k = 0; k < y.size(dim); ++k) there[k * to.step] = write(out[size_t(k)]);
    }
  });
}

/// Reads a line as it is.
constexpr auto read_line = []<class T, class P>(const T* first, int64_t step, std::vector<P>& in) {
  for (size_t k = 0; k < in.size(); ++k) in[k] = P(first[int64_t(k) * step]);
};

/// Transforms the lines of x along `dim`, complex or real, into y, which may be x, and multiplies by `scale`.
void transform_along(const Tensor& x, const Tensor& y, int64_t dim, bool forward, double scale) {
  visit<kReal>(real_type(x.dtype()), [&]<class T>() {
    using C = std::complex<T>;
    const int64_t n = x.size(dim);
    const bool real = !is_complex(x.dtype());
    if (has_small_factors(n)) {
      return transform_in_lanes<T>(x, y, dim, real ? FftKind::from_real : FftKind::complex, forward, scale);
    }
    const auto write = [&](Complex z) { return C(z * scale); };
    if (real) transform_by_plan<T, C>(x, y, dim, n, FftPlan(n, forward), read_line, write);
    else transform_by_plan<C, C>(x, y, dim, n, FftPlan(n, forward), read_line, write);
  });
}

/// Transforms x into y along all of `dims` but the last `leave` ones (one dimension at least); the last scales.
void transform_all(const Tensor& x, const Tensor& y, const Dims& dims, size_t leave, bool forward, double scale) {
  for (size_t i = 0; i + leave < dims.size(); ++i) {
    transform_along(i ? y : x, y, dims[i], forward, i + leave + 1 == dims.size() ? scale : 1);
  }
}

/// Transforms an operand, complex or real, to as many complex points.
Tensor transform_whole(const Tensor& input, const Dims& dims, int64_t normalization, bool forward) {
  const double scale = fft_scale(normalization, input.sizes(), dims);
  Tensor y = result_tensor(input.sizes(), complex_type(real_type(input.dtype())), input.device());
  if (y.numel()) transform_all(input, y, dims, 0, forward, scale);
  return y;
}

Tensor c2c_kernel(const Tensor& input, IntList dim, int64_t normalization, bool forward) {
  return transform_whole(input, fft_dims(input, dim, true, "_fft_c2c"), normalization, forward);
}

/// Transforms real lines along `dim` to half of their spectrum, which is scaled.
template <class T>
void transform_real_lines(const Tensor& x, const Tensor& y, int64_t dim, double scale) {
  const int64_t n = x.size(dim);
  if (n % 2 == 0 && has_small_factors(n / 2)) {
    return transform_in_lanes<T>(x, y, dim, FftKind::from_pairs, true, scale);
  }
  if (has_small_factors(n)) return transform_in_lanes<T>(x, y, dim, FftKind::from_real, true, scale);
  transform_by_plan<T, std::complex<T>>(x, y, dim, n, RealFftPlan(n), read_line,
                                        [&](Complex z) { return std::complex<T>(z * scale); });
}

Tensor r2c_kernel(const Tensor& input, IntList dim, int64_t normalization, bool onesided) {
  const Dims dims = fft_dims(input, dim, false, "_fft_r2c");
  if (!onesided) return transform_whole(input, dims, normalization, true);
  const double scale = fft_scale(normalization, input.sizes(), dims);
  Dims sizes(input.sizes());
  int64_t& size = sizes[size_t(dims.back())];
  size = size / 2 + 1;
  Tensor y = result_tensor(sizes, complex_type(input.dtype()), input.device());
  if (!y.numel()) return y;
  visit<kReal>(input.dtype(), [&]<class T>() { transform_real_lines<T>(input, y, dims.back(), scale); });
  transform_all(y, y, dims, 1, true, 1);
  return y;
}

/// Transforms halves of Hermitian spectra along `dim` back to real points, which are scaled.
template <class T>
void transform_halves(const Tensor& x, const Tensor& y, int64_t dim, double scale) {
  const int64_t n = y.size(dim);
  if (n % 2 == 0 && has_small_factors(n / 2)) return transform_in_lanes<T>(x, y, dim, FftKind::to_pairs, false, scale);
  if (n % 2 && has_small_factors(n)) return transform_in_lanes<T>(x, y, dim, FftKind::to_odd_reals, false, scale);
  const auto read = [n](const std::complex<T>* first, int64_t step, std::vector<Complex>& in) {
    for (int64_t k = 0; k <= n / 2; ++k) {
      const Complex z(first[k * step]);
      const bool own_mirror = k == 0 || 2 * k == n;  // real: PyTorch too ignores what is imaginary
      if (!own_mirror) in[size_t(n - k)] = std::conj(z);
      in[size_t(k)] = own_mirror ? Complex(z.real()) : z;
    }
  };
  transform_by_plan<std::complex<T>, T>(x, y, dim, n, FftPlan(n, false), read,
                                        [&](Complex z) { return T(z.real() * scale); });
}

Tensor c2r_kernel(const Tensor& input, IntList dim, int64_t normalization, int64_t last_dim_size) {
  const Dims dims = fft_dims(input, dim, true, "_fft_c2r");
  check_fft_c2r(input, dims.back(), last_dim_size);
  Dims sizes(input.sizes());
  sizes[size_t(dims.back())] = last_dim_size;
  const double scale = fft_scale(normalization, sizes, dims);
  Tensor y = result_tensor(sizes, real_type(input.dtype()), input.device());
  if (!y.numel()) return y;
  Tensor x = input;
  if (dims.size() > 1) {
    x = empty_tensor(input.sizes(), input.dtype(), input.device());
    transform_all(input, x, dims, 1, false, 1);
  }
  visit<kReal>(y.dtype(), [&]<class T>() { transform_halves<T>(x, y, dims.back(), scale); });
  return y;
}

}  // namespace

void register_fft() {
  choose_fft_kernels();
  ops::_fft_c2c.set_kernel(DeviceType::cpu, c2c_kernel);
  ops::_fft_r2c.set_kernel(DeviceType::cpu, r2c_kernel);
  ops::_fft_c2r.set_kernel(DeviceType::cpu, c2r_kernel);
}

}  // namespace vesta::cpu
