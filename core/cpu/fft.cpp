// Fourier transforms of tensors: line after line, dimension after dimension, in the plans of fft_plan.h.
#include <vesta/core/cpu/fft_plan.h>

#include <algorithm>

#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/fft.h>
#include <vesta/core/ops/kernel_checks.h>

namespace vesta::cpu {
namespace {

using Complex = FftPlan::Complex;
constexpr DTypeSet kReal = set_of(DType::float32) | set_of(DType::float64);
constexpr int64_t kPointGrain = 16384;  // points, of all lines in one piece of a loop

/// The lines of a contiguous tensor along one dimension: line i begins at `begin(i)`, its elements are `inner` apart.
struct Lines {
  int64_t outer = 1, length, inner = 1;
  Lines(const Tensor& t, int64_t dim) : length(t.size(dim)) {
    for (int64_t d = 0; d < t.dim(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : t.size(d);
  }
  int64_t count() const { return outer * inner; }
  int64_t begin(int64_t line) const { return line / inner * length * inner + line % inner; }
};

/// Calls body(plan, line) for all lines; each piece of the loop has a copy of the plan.
template <class Plan, class Body>
void for_each_line(const Plan& plan, int64_t lines, int64_t length, const Body& body) {
  parallel_for(lines, std::max<int64_t>(1, kPointGrain / length), [&](int64_t from, int64_t to) {
    Plan own(plan);
    Body work(body);
    for (int64_t line = from; line < to; ++line) work(own, line);
  });
}

/// Transforms a contiguous complex tensor in place along one dimension and multiplies by `scale`.
void transform_along(const Tensor& x, int64_t dim, bool forward, double scale) {
  visit<kComplexes>(x.dtype(), [&]<class T>() {
    const Lines lines(x, dim);
    const int64_t n = lines.length;
    T* data = x.data_ptr<T>();
    for_each_line(FftPlan(n, forward), lines.count(), n,
                  [&, in = std::vector<Complex>(size_t(n)), out = std::vector<Complex>(size_t(n))](
                      FftPlan& plan, int64_t line) mutable {
                    T* first = data + lines.begin(line);
                    for (int64_t k = 0; k < n; ++k) in[size_t(k)] = Complex(first[k * lines.inner]);
                    plan.run(in.data(), out.data());
                    for (int64_t k = 0; k < n; ++k) first[k * lines.inner] = T(out[size_t(k)] * scale);
                  });
  });
}

/// Transforms along all of `dims` but the last `leave` ones; the last transform scales.
void transform_all(const Tensor& x, const Dims& dims, size_t leave, bool forward, double scale) {
  for (size_t i = 0; i + leave < dims.size(); ++i) {
    transform_along(x, dims[i], forward, i + leave + 1 == dims.size() ? scale : 1);
  }
}

Tensor c2c_kernel(const Tensor& input, IntList dim, int64_t normalization, bool forward) {
  const Dims dims = fft_dims(input, dim, true, "_fft_c2c");
  const double scale = fft_scale(normalization, input.sizes(), dims);
  Tensor x = empty_tensor(input.sizes(), input.dtype(), input.device());
  copy_values(x, input);
  if (x.numel()) transform_all(x, dims, 0, forward, scale);
  return x;
}

/// Transforms real lines along `dim` to half of their spectrum, which is scaled.
template <class T>
Tensor transform_real_lines(const Tensor& x, int64_t dim, double scale) {
  Dims sizes(x.sizes());
  const int64_t n = x.size(dim), half = n / 2 + 1;
  sizes[size_t(dim)] = half;
  Tensor y = empty_tensor(sizes, complex_type(x.dtype()), x.device());
  if (!y.numel()) return y;
  const Lines from(x, dim), to(y, dim);
  const T* data = x.data_ptr<T>();
  std::complex<T>* result = y.data_ptr<std::complex<T>>();
  std::vector<double> points(static_cast<size_t>(n));
  for_each_line(RealFftPlan(n), from.count(), n,
                [&, in = points, out = std::vector<Complex>(size_t(half))](RealFftPlan& plan, int64_t line) mutable {
                  const T* first = data + from.begin(line);
                  std::complex<T>* there = result + to.begin(line);
                  for (int64_t k = 0; k < n; ++k) in[size_t(k)] = double(first[k * from.inner]);
                  plan.run(in.data(), out.data());
                  for (int64_t k = 0; k < half; ++k) there[k * to.inner] = std::complex<T>(out[size_t(k)] * scale);
                });
  return y;
}

Tensor r2c_kernel(const Tensor& input, IntList dim, int64_t normalization, bool onesided) {
  const Dims dims = fft_dims(input, dim, false, "_fft_r2c");
  if (!onesided) {
    Tensor wide = empty_tensor(input.sizes(), complex_type(input.dtype()), input.device());
    copy_values(wide, input);
    return c2c_kernel(wide, dim, normalization, true);
  }
  const double scale = fft_scale(normalization, input.sizes(), dims);
  Tensor x = contiguous_values(input);
  Tensor y = visit<kReal>(x.dtype(), [&]<class T>() { return transform_real_lines<T>(x, dims.back(), scale); });
  if (y.numel()) transform_all(y, dims, 1, true, 1);
  return y;
}

/// Transforms halves of Hermitian spectra along `dim` back to `n` real points, which are scaled.
template <class T>
Tensor transform_halves(const Tensor& x, int64_t dim, int64_t n, double scale) {
  Dims sizes(x.sizes());
  sizes[size_t(dim)] = n;
  Tensor y = empty_tensor(sizes, real_type(x.dtype()), x.device());
  const Lines from(x, dim), to(y, dim);
  const std::complex<T>* data = x.data_ptr<std::complex<T>>();
  T* result = y.data_ptr<T>();
  for_each_line(FftPlan(n, false), to.count(), n,
                [&, in = std::vector<Complex>(size_t(n)), out = std::vector<Complex>(size_t(n))](FftPlan& plan,
                                                                                                 int64_t line) mutable {
                  const std::complex<T>* first = data + from.begin(line);
                  for (int64_t k = 0; k <= n / 2; ++k) {
                    const Complex z(first[k * from.inner]);
                    const bool own_mirror = k == 0 || 2 * k == n;  // real: PyTorch too ignores what is imaginary
                    if (!own_mirror) in[size_t(n - k)] = std::conj(z);
                    in[size_t(k)] = own_mirror ? Complex(z.real()) : z;
                  }
                  plan.run(in.data(), out.data());
                  for (int64_t k = 0; k < n; ++k)
                    result[to.begin(line) + k * to.inner] = T(out[size_t(k)].real() * scale);
                });
  return y;
}

Tensor c2r_kernel(const Tensor& input, IntList dim, int64_t normalization, int64_t last_dim_size) {
  const Dims dims = fft_dims(input, dim, true, "_fft_c2r");
  check_fft_c2r(input, dims.back(), last_dim_size);
  Dims sizes(input.sizes());
  sizes[size_t(dims.back())] = last_dim_size;
  const double scale = fft_scale(normalization, sizes, dims);
  Tensor x = empty_tensor(input.sizes(), input.dtype(), input.device());
  if (!x.numel()) return empty_tensor(sizes, real_type(input.dtype()), input.device());
  copy_values(x, input);
  transform_all(x, dims, 1, false, 1);
  return visit<kReal>(real_type(x.dtype()),
                      [&]<class T>() { return transform_halves<T>(x, dims.back(), last_dim_size, scale); });
}

}  // namespace

void register_fft() {
  ops::_fft_c2c.set_kernel(DeviceType::cpu, c2c_kernel);
  ops::_fft_r2c.set_kernel(DeviceType::cpu, r2c_kernel);
  ops::_fft_c2r.set_kernel(DeviceType::cpu, c2r_kernel);
}

}  // namespace vesta::cpu
