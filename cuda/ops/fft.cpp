// Fourier transforms by cuFFT (lib/cufft.h), and on the host where it is missing or refuses.
//
// Note [Memory of transforms]
// A call of cuFFT transforms up to three dimensions of signals that lie at one distance from each other, in operands
// whose strides nest (`Side`). A result is contiguous where that is one such call, or two for up to six dimensions;
// else its memory has the order [first dimensions, batch, last three], and the tensor is a view of it, as PyTorch's
// are. An operand that does not nest, or is not aligned as a complex number, is copied in the result's order first:
// into the result itself, where both are complex. Normalization is part of that copy, else a pass over the result.
//
// A complex-to-real call overwrites its input, and counts on a spectrum that is Hermitian: of the frequencies 0 and
// n / 2 of the last dimension, planes that are their own mirror images. The CPU transforms the other dimensions first
// and ignores imaginary parts there, which is to take the Hermitian part of these planes. So here the call gets a copy,
// whose planes are made Hermitian; a gradient, for one, is not.
#include <vesta/core/ops/fft.h>

#include <algorithm>
#include <optional>
#include <vector>

#include <vesta/core/ops/arithmetic.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/kernel_checks.h>
#include <vesta/core/ops/view.h>
#include <vesta/core/shape.h>
#include <vesta/cuda/kernels/fft.h>
#include <vesta/cuda/lib/cufft.h>
#include <vesta/cuda/ops/host.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {
using cufft::kMaxRank;

bool holds(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }
/// Returns those of `dims` along which a transform is more than a copy.
Dims worked_on(IntSpan dims, IntSpan sizes) {
  Dims left;
  for (int64_t d : dims) {
    if (sizes[size_t(d)] > 1) left.push_back(d);
  }
  return left;
}
Dims sorted(Dims dims) {
  std::sort(dims.begin(), dims.end());
  return dims;
}
/// Returns dims[first, last).
Dims part(const Dims& dims, size_t first, size_t last) { return IntSpan(dims).subspan(first, last - first); }

int type_of(DType d) {
  switch (d) {
    case DType::float32: return cufft::r_32f;
    case DType::float64: return cufft::r_64f;
    case DType::complex64: return cufft::c_32f;
    default: return cufft::c_64f;
  }
}

/// The signals of two operands: how many, and the distances from one to the next.
struct Batch {
  int64_t size = 1, in = 0, out = 0;
};
/// Joins the dimensions that are not in `dims` into one; nothing where that cannot be.
std::optional<Batch> batch_of(IntSpan sizes, const Dims& dims, IntSpan in, IntSpan out) {
  std::vector<Batch> axes;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1 && !holds(dims, int64_t(d))) axes.push_back({sizes[d], in[d], out[d]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Batch& a, const Batch& b) { return a.out > b.out; });
  Batch joined;
  for (const Batch& a : axes) {
    const bool continues = joined.in == a.in * a.size && joined.out == a.out * a.size;
    if (joined.size > 1 && !continues) return {};
    joined = {joined.size * a.size, a.in, a.out};
  }
  return joined;
}

/// Describes signals over `dims` that are `dist` apart; nothing where their strides do not nest.
std::optional<cufft::Side> side_of(IntSpan sizes, IntSpan strides, const Dims& dims, int64_t batch, int64_t dist) {
  const auto size = [&](size_t i) { return sizes[size_t(dims[i])]; };
  const auto stride = [&](size_t i) { return strides[size_t(dims[i])]; };
  cufft::Side side;
  side.stride = stride(dims.size() - 1);
  if (side.stride <= 0) return {};
  int64_t extent = side.stride * size(0);
  for (size_t i = dims.size() - 1; i > 0; --i) {
    if (stride(i - 1) % stride(i) != 0 || stride(i - 1) / stride(i) < size(i)) return {};
    side.embed[i] = stride(i - 1) / stride(i);
    extent *= side.embed[i];
  }
  side.embed[0] = size(0);
  side.dist = batch > 1 ? dist : extent;
  if (side.dist <= 0) return {};
  return side;
}

bool nests(IntSpan sizes, IntSpan strides, const Dims& dims) {
  const auto batch = batch_of(sizes, dims, strides, strides);
  return dims.empty() || (batch && side_of(sizes, strides, dims, batch->size, batch->out));
}

/// Returns whether cuFFT can use the address of an operand: aligned as the complex numbers of its precision.
bool is_aligned(const Tensor& t) {
  const size_t alignment = 2 * size_t(itemsize(real_type(t.dtype())));
  return reinterpret_cast<uintptr_t>(t.impl()->data()) % alignment == 0;
}

/// Transforms x over `dims`, the innermost last, to y, which may be x; false where cuFFT cannot read x as it lies.
bool transform(const Tensor& x, const Tensor& y, const Dims& dims, bool is_forward) {
  const auto batch = batch_of(y.sizes(), dims, x.strides(), y.strides());
  if (!batch || !is_aligned(x)) return false;
  const auto in = side_of(x.sizes(), x.strides(), dims, batch->size, batch->in);
  const auto out = side_of(y.sizes(), y.strides(), dims, batch->size, batch->out);
  if (!in || !out) return false;
  cufft::Shape shape{.rank = int(dims.size()), .sizes = {}, .batch = batch->size, .in = *in, .out = *out};
  for (size_t i = 0; i < dims.size(); ++i) shape.sizes[i] = std::max(x.size(dims[i]), y.size(dims[i]));
  shape.in.type = type_of(x.dtype()), shape.out.type = type_of(y.dtype());
  cufft::transform(shape, is_forward, y.device(), x.impl()->data(), y.impl()->data());
  return true;
}

/// Does the same for a tensor that has been made for it.
void transform_own(const Tensor& x, const Tensor& y, const Dims& dims, bool is_forward) {
  if (dims.empty()) return;
  const bool done = transform(x, y, dims, is_forward);
  VESTA_ASSERT(done);  // what a transform makes for itself has a layout that cuFFT takes
}

/// A transform over up to six dimensions: cuFFT's calls, and the order of memory in which a result has these.
struct FftSteps {
  Dims outer, inner;  // the dimensions of the second call, and of the first one
  Dims order;  // of all dimensions, the outermost first

  FftSteps(IntSpan sizes, const Dims& dims)
      : outer(part(dims, 0, dims.size() - std::min(dims.size(), size_t(kMaxRank)))),
        inner(part(dims, outer.size(), dims.size())) {
    for (size_t d = 0; d < sizes.size(); ++d) order.push_back(int64_t(d));
    const Dims contiguous = contiguous_strides(sizes);
    if (nests(sizes, contiguous, inner) && nests(sizes, contiguous, outer)) return;
    order = outer;
    for (size_t d = 0; d < sizes.size(); ++d) {
      if (!holds(dims, int64_t(d))) order.push_back(int64_t(d));
    }
    for (int64_t d : inner) order.push_back(d);
  }
  /// Makes a tensor in that order.
  Tensor made(IntSpan sizes, DType dtype, Device device) const {
    Dims strides(sizes.size());
    int64_t step = 1;
    for (size_t i = order.size(); i-- > 0;) {
      strides[size_t(order[i])] = step;
      step *= sizes[size_t(order[i])];
    }
    return empty_tensor_strided(sizes, strides, dtype, device);
  }
  /// Makes the op's result: the tensor of out=, if cuFFT can write it.
  Tensor result(IntSpan sizes, DType dtype, Device device) const {
    if (std::is_sorted(order.begin(), order.end())) {
      Tensor r = result_tensor(sizes, dtype, device);
      if (is_aligned(r)) return r;
    }
    return made(sizes, dtype, device);
  }
};

/// Returns the real numbers that a tensor is made of.
Tensor numbers_of(const Tensor& t) { return is_complex(t.dtype()) ? view_as_real(t) : t; }
/// Multiplies by a number; parts of complex numbers apart, so that infinities stay so.
void scale_by(const Tensor& t, double factor) {
  if (factor == 1) return;
  const Tensor numbers = numbers_of(t);
  ops::mul(numbers, wrapped(factor), Out{&numbers, Out::inplace});
}
/// Writes x, real or of y's dtype, times a factor into y.
void copy_scaled(const Tensor& y, const Tensor& x, double factor) {
  if (factor == 1 || x.dtype() != y.dtype()) {
    copy_values(y, x);
    return scale_by(y, factor);
  }
  const Tensor numbers = numbers_of(y);
  ops::mul(numbers_of(x), wrapped(factor), Out{&numbers, Out::given});
}

/// Whose tensor a function returns: one for further work, or the op's result.
enum class Returns { temporary, result };

/// Transforms x, complex or real, over any number of dimensions to complex numbers.
Tensor transform_complex(Tensor x, IntSpan all, bool is_forward, double scale, Returns returns) {
  const DType dtype = complex_type(real_type(x.dtype()));
  Dims dims = sorted(worked_on(all, x.sizes()));
  for (;;) {
    const size_t later = dims.size() - std::min(dims.size(), size_t(2 * kMaxRank));
    const FftSteps steps(x.sizes(), part(dims, later, dims.size()));
    const double factor = later ? 1 : scale;
    Tensor y = later || returns == Returns::temporary ? steps.made(x.sizes(), dtype, x.device())
                                                      : steps.result(x.sizes(), dtype, x.device());
    if (is_complex(x.dtype()) && !steps.inner.empty() && transform(x, y, steps.inner, is_forward)) {
      transform_own(y, y, steps.outer, is_forward);
      scale_by(y, factor);
    } else {
      copy_scaled(y, x, factor);
      transform_own(y, y, steps.inner, is_forward);
      transform_own(y, y, steps.outer, is_forward);
    }
    if (!later) return y;
    x = y;
    dims = part(dims, 0, later);
  }
}

Tensor c2c(const Tensor& input, IntList dim, int64_t normalization, bool is_forward) {
  const Dims dims = fft_dims(input, dim, true, "_fft_c2c");
  const double scale = fft_scale(normalization, input.sizes(), dims);
  if (!input.numel()) return result_tensor(input.sizes(), input.dtype(), input.device());
  return transform_complex(input, dims, is_forward, scale, Returns::result);
}

Tensor r2c(const Tensor& input, IntList dim, int64_t normalization, bool onesided) {
  const Dims dims = fft_dims(input, dim, false, "_fft_r2c");
  const double scale = fft_scale(normalization, input.sizes(), dims);
  const DType dtype = complex_type(input.dtype());
  const int64_t n = input.size(dims.back());
  Dims sizes(input.sizes());
  if (onesided) sizes[size_t(dims.back())] = n / 2 + 1;
  if (!input.numel()) return result_tensor(sizes, dtype, input.device());
  if (!onesided || n == 1) return transform_complex(input, dims, true, scale, Returns::result);
  Dims worked = sorted(worked_on(part(dims, 0, dims.size() - 1), sizes));
  worked.push_back(dims.back());
  const size_t later = worked.size() - std::min(worked.size(), size_t(2 * kMaxRank));
  const FftSteps steps(sizes, part(worked, later, worked.size()));
  const Tensor y = later ? steps.made(sizes, dtype, input.device()) : steps.result(sizes, dtype, input.device());
  if (transform(input, y, steps.inner, true)) {
    if (!later) scale_by(y, scale);
  } else {
    const Tensor x = steps.made(input.sizes(), input.dtype(), input.device());
    copy_scaled(x, input, later ? 1 : scale);
    transform_own(x, y, steps.inner, true);
  }
  transform_own(y, y, steps.outer, true);
  return later ? transform_complex(y, part(worked, 0, later), true, scale, Returns::result) : y;
}

/// Makes the planes of halves of spectra Hermitian that are their own mirror images; `n`: the size of the whole.
void make_hermitian(const Tensor& half, const Dims& dims, int64_t n) {
  const auto batch = batch_of(half.sizes(), dims, half.strides(), half.strides());
  HermitianPlanes l;
  l.dtype = half.dtype(), l.stream = stream_of(half), l.data = half.impl()->data();
  l.batch = batch->size, l.dist = batch->out;
  for (size_t i = 0; i + 1 < dims.size(); ++i) {
    l.sizes[i] = half.size(dims[i]), l.strides[i] = half.strides()[size_t(dims[i])];
  }
  l.planes = n % 2 ? 1 : 2, l.next = n / 2 * half.strides()[size_t(dims.back())];
  run_hermitian_planes(l);
}

Tensor c2r(const Tensor& input, IntList dim, int64_t normalization, int64_t n) {
  const Dims dims = fft_dims(input, dim, true, "_fft_c2r");
  check_fft_c2r(input, dims.back(), n);
  Dims sizes(input.sizes());
  sizes[size_t(dims.back())] = n;
  const double scale = fft_scale(normalization, sizes, dims);
  const DType dtype = real_type(input.dtype());
  if (!input.numel()) return result_tensor(sizes, dtype, input.device());
  const Dims others = sorted(worked_on(part(dims, 0, dims.size() - 1), sizes));
  if (n == 1) {
    const Tensor x = others.empty() ? input : transform_complex(input, others, false, 1, Returns::temporary);
    Tensor y = result_tensor(sizes, dtype, input.device());
    copy_scaled(y, select(view_as_real(x), -1, 0), scale);
    return y;
  }
  const size_t earlier = others.size() - std::min(others.size(), size_t(kMaxRank - 1));
  Dims inner = part(others, earlier, others.size());
  inner.push_back(dims.back());
  const Tensor x = earlier ? transform_complex(input, part(others, 0, earlier), false, 1, Returns::temporary) : input;
  const FftSteps steps(sizes, inner);
  const Tensor half = steps.made(x.sizes(), x.dtype(), x.device());
  copy_scaled(half, x, scale);
  const OperandDevice device(half);
  make_hermitian(half, inner, n);
  Tensor y = steps.result(sizes, dtype, input.device());
  transform_own(half, y, inner, false);
  return y;
}

template <auto& op, auto f, class R, class... A>
void register_transform(Op<R(A...)>& o) {
  o.set_kernel(DeviceType::cuda, &run_or_on_host<op, f, cufft::expect_library, R, A...>);
}

}  // namespace

void register_fft() {
  register_transform<ops::_fft_c2c, c2c>(ops::_fft_c2c);
  register_transform<ops::_fft_r2c, r2c>(ops::_fft_r2c);
  register_transform<ops::_fft_c2r, c2r>(ops::_fft_c2r);
}

}  // namespace vesta::cuda
