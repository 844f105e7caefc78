// Running sums, products and extrema along a dimension, one element after the other. Sums are kept in a type wide
// enough that rounding does not add up: double for float32, float for 16-bit floats. Threads share lines, never one
// line.
#include <vesta/core/ops/scan.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <vesta/core/cpu/non_temporal.h>
#include <vesta/core/cpu/parallel.h>
#include <vesta/core/cpu/register.h>
#include <vesta/core/cpu/scan_kernels.h>
#include <vesta/core/cpu/tensor_memory.h>
#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/reduce.h>

namespace vesta::cpu {
namespace {

constexpr int64_t kScanGrain = 16384;  // elements a thread takes at a time
constexpr int64_t kLines = 32;     // lines scanned together

ScanKernels scan_kernels;

/// The map from an element type to the type of its running sum; integers wrap around.
template <class T>
struct Sum {
  using type = std::conditional_t<std::is_integral_v<T>, uint64_t, float>;
};
template <>
struct Sum<float> {
  using type = double;
};
template <>
struct Sum<double> {
  using type = double;
};
template <class R>
struct Sum<std::complex<R>> {
  using type = std::complex<double>;
};

template <class S, class T>
S widened(T v) {
  if constexpr (is_complex(dtype_of<T>)) return S(v.real(), v.imag());
  else return S(v);
}
template <class T, class S>
T narrowed(S v) {
  if constexpr (is_complex(dtype_of<T>)) return T(typename T::value_type(v.real()), typename T::value_type(v.imag()));
  else return T(v);
}

enum class Running : uint8_t { sum, product };

/// Adds up, or multiplies, the elements of each line.
template <Running op, class T>
void scan_lines(const ScanLines& s) {
  constexpr int way = op == Running::product;
  if constexpr (std::is_same_v<T, float>) return scan_kernels.of_float[way](s);
  if constexpr (std::is_same_v<T, double>) return scan_kernels.of_double[way](s);
  if constexpr (std::is_same_v<T, int64_t>) return scan_kernels.of_int64[way](s);
  using S = typename Sum<T>::type;
  for (int64_t line = 0; line < s.lines; ++line) {
    const T* x = static_cast<const T*>(s.x) + line * s.across;
    T* y = static_cast<T*>(s.y) + line * s.across;
    S value = op == Running::sum ? S(0) : S(1);
    for (int64_t i = 0; i < s.length; ++i, x += s.next, y += s.next) {
      const S v = widened<S>(*x);
      if constexpr (op == Running::sum) value += v;
      else if constexpr (is_complex(dtype_of<T>))
        value = {value.real() * v.real() - value.imag() * v.imag(), value.real() * v.imag() + value.imag() * v.real()};
      else value *= v;
      *y = narrowed<T>(value);
    }
  }
}

template <Running op>
Tensor running_kernel(const Tensor& input, int64_t dim, MaybeDType dtype) {
  const ScanPlan plan = scan_plan(input, dim, dtype, op == Running::sum ? "cumsum" : "cumprod");
  Tensor r = result_tensor(plan.input.sizes(), plan.input.dtype());
  if (r.numel() == 0) return r;
  const int64_t length = plan.length, inner = plan.inner, across = inner == 1 ? length : 1;
  const int64_t together = inner == 1 ? plan.outer : inner;  // lines that are `across` apart
  const int64_t sets = plan.outer * inner / together;
  // Long parts of rows are streams that the processor foresees (build/bin/bandwidth cumsum).
  const int64_t wide = together * sets / (2 * num_threads()) / kLines * kLines;
  const int64_t lines = across == 1 ? std::clamp<int64_t>(wide, kLines, kScanBeside) : kLines;
  const int64_t groups = (together + lines - 1) / lines;
  const bool non_temporal = bypasses_caches(r.numel() * itemsize(r.dtype()));
  visit<kNumbers>(r.dtype(), [&]<class T>() {
    const T* x = elements<T>(plan.input);
    T* y = elements<T>(r);
    parallel_for(sets * groups, std::max<int64_t>(1, kScanGrain / (length * lines)), [&](int64_t b, int64_t e) {
      for (int64_t g = b; g < e; ++g) {
        const int64_t line = g % groups * lines, at = g / groups * length * inner + line * across;
        scan_lines<op, T>({x + at, y + at, length, inner, std::min(lines, together - line), across, non_temporal});
      }
    });
  });
  return r;
}

/// Finds the extrema of the first elements of a line; of equals, or of several NaNs, the last one.
template <bool largest, class T>
void scan_extrema(const T* x, T* values, int64_t* places, int64_t length, int64_t next) {
  T best = x[0];
  int64_t place = 0;
  for (int64_t i = 0; i < length; ++i) {
    const T v = x[i * next];
    if (v != v || (best == best && (largest ? v >= best : v <= best))) best = v, place = i;
    values[i * next] = best, places[i * next] = place;
  }
}

template <bool largest>
TensorPair extrema_kernel(const Tensor& input, int64_t dim) {
  const ScanPlan plan = order_plan(input, dim, largest ? "cummax" : "cummin");
  Tensor values = result_tensor(input.sizes(), input.dtype()), places = result_tensor(input.sizes(), DType::int64);
  if (values.numel() == 0) return {values, places};
  const int64_t length = plan.length, inner = plan.inner;
  visit<kReals | kBool>(input.dtype(), [&]<class T>() {
    const T* const x = elements<T>(plan.input);
    T* const v = elements<T>(values);
    int64_t* const p = elements<int64_t>(places);
    parallel_for(plan.outer * inner, std::max<int64_t>(1, kScanGrain / length), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t at = line / inner * length * inner + line % inner;
        scan_extrema<largest>(x + at, v + at, p + at, length, inner);
      }
    });
  });
  return {values, places};
}

/// A running sum of exponentials: of e^(x - top), where top is the largest x. Of exponentials none depends on another's
/// logarithm, so that the processor works on several elements at a time.
struct RunningExponentials {
  double top = -std::numeric_limits<double>::infinity(), rest = -1;  // the sum less 1: where top is 0, its digits count
  /// Adds e^x and returns the logarithm of all.
  double add(double x) {
    if (x > top) rest = (rest + 1) * std::exp(top - x), top = x;
    else rest += x == top ? 1 : std::exp(x - top);  // 1 of equal infinities
    return top + std::log1p(rest);
  }
};

Tensor logcumsumexp_kernel(const Tensor& input, int64_t dim) {
  if (input.is_complex()) return ops::logcumsumexp.body()(input, dim);
  check_floating(input, "logcumsumexp");
  const ScanPlan plan = order_plan(input, dim, "logcumsumexp");
  Tensor r = result_tensor(input.sizes(), input.dtype());
  if (r.numel() == 0) return r;
  const int64_t length = plan.length, inner = plan.inner;
  visit<kFloats>(input.dtype(), [&]<class T>() {
    const T* const x = elements<T>(plan.input);
    T* const y = elements<T>(r);
    parallel_for(plan.outer * inner, std::max<int64_t>(1, kScanGrain / (8 * length)), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t at = line / inner * length * inner + line % inner;
        RunningExponentials sum;
        for (int64_t i = 0; i < length; ++i) y[at + i * inner] = T(sum.add(double(x[at + i * inner])));
      }
    });
  });
  return r;
}

/// The sum of g_j e^(x_i - y_j) over j >= i, as a sum of g_j e^(y_i - y_j), which are no larger than g_j: y rises along
/// a line.
Tensor logcumsumexp_backward_kernel(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  const auto same = [&](const Tensor& t) {
    return t.dtype() == input.dtype() && std::ranges::equal(t.sizes(), input.sizes());
  };
  if (input.is_complex() || input.dim() == 0 || !same(grad) || !same(result)) {
    return ops::_logcumsumexp_backward.body()(grad, input, result, dim);
  }
  const ScanPlan plan = order_plan(input, dim, "_logcumsumexp_backward");
  const Tensor slopes = contiguous_values(grad), sums = contiguous_values(result);
  Tensor r = result_tensor(input.sizes(), input.dtype());
  if (r.numel() == 0) return r;
  const int64_t length = plan.length, inner = plan.inner;
  visit<kFloats>(input.dtype(), [&]<class T>() {
    const T *const x = elements<T>(plan.input), *const g = elements<T>(slopes), *const y = elements<T>(sums);
    T* const to = elements<T>(r);
    parallel_for(plan.outer * inner, std::max<int64_t>(1, kScanGrain / (8 * length)), [&](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t first = line / inner * length * inner + line % inner;
        double sum = 0, top = std::numeric_limits<double>::infinity();
        for (int64_t at = first + (length - 1) * inner; at >= first; at -= inner) {
          const double own = double(y[at]);
          sum = double(g[at]) + (own == top ? sum : sum * std::exp(own - top)), top = own;
          to[at] = T(sum == 0 ? 0.0 : sum * std::exp(double(x[at]) - own));
        }
      }
    });
  });
  return r;
}

}  // namespace

void register_scan() {
  VESTA_ON_ISA(register_scan_kernels, scan_kernels);
  ops::cumsum.set_kernel(DeviceType::cpu, running_kernel<Running::sum>);
  ops::cumprod.set_kernel(DeviceType::cpu, running_kernel<Running::product>);
  ops::logcumsumexp.set_kernel(DeviceType::cpu, logcumsumexp_kernel);
  ops::_logcumsumexp_backward.set_kernel(DeviceType::cpu, logcumsumexp_backward_kernel);
  ops::cummax.set_kernel(DeviceType::cpu, extrema_kernel<true>);
  ops::cummin.set_kernel(DeviceType::cpu, extrema_kernel<false>);
}

}  // namespace vesta::cpu
