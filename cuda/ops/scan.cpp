// Running sums and extrema: short or many lines have a thread each, others a block for each of their pieces. The
// totals of pieces are scanned in turn and become the starting values of the pieces.
#include <vesta/core/ops/scan.h>

#include <vesta/core/ops/checks.h>
#include <vesta/core/ops/copy_values.h>
#include <vesta/core/ops/destination.h>
#include <vesta/core/ops/reduce.h>
#include <vesta/cuda/kernels/product_gradient.h>
#include <vesta/cuda/kernels/scan.h>
#include <vesta/cuda/ops/operands.h>
#include <vesta/cuda/register.h>

namespace vesta::cuda {
namespace {

/// Returns the dtype of totals.
DType sum_dtype(DType d, ScanKind kind) {
  if (kind == ScanKind::log_sums_backward) {
    return d == DType::float64 || d == DType::complex128 ? DType::complex128 : DType::complex64;
  }
  return !is_differentiable(d) ? DType::int64 : is_complex(d) || d == DType::float64 ? d : DType::float32;
}

/// Returns whether elements must be combined one after the other: a product of later ones alone may be infinite where
/// an earlier one is 0, and their product would be NaN.
bool goes_in_order(const ScanLaunch& l) { return l.kind == ScanKind::products && is_differentiable(l.dtype); }

void scan(ScanLaunch l, Device device) {
  if (scans_lines(l) || goes_in_order(l)) return run_scan_lines(l);
  const int64_t pieces = scan_pieces(l.length);
  if (pieces == 1) return run_scan_pieces(l);
  Tensor totals = empty_tensor({{l.outer, pieces, l.inner}}, sum_dtype(l.dtype, l.kind), device);
  ScanLaunch first = l, second = l;
  first.out = nullptr, first.totals = totals.data_ptr();
  run_scan_pieces(first);
  second.dtype = totals.dtype(), second.length = pieces, second.reverse = false;
  second.in = second.out = totals.data_ptr();
  scan(second, device);
  l.offsets = totals.data_ptr();
  run_scan_pieces(l);
}

Tensor run_scan(const Tensor& input, const ScanPlan& plan, ScanKind kind, bool reverse = false) {
  OperandDevice device(input);
  Tensor r = result_tensor(plan.input.sizes(), plan.input.dtype(), input.device());
  if (r.numel() == 0) return r;
  ScanLaunch l;
  l.dtype = r.dtype(), l.kind = kind, l.stream = device.stream();
  l.outer = plan.outer, l.length = plan.length, l.inner = plan.inner, l.reverse = reverse;
  if (kind == ScanKind::sums && is_complex(r.dtype())) {  // both parts are separate lines
    l.dtype = r.dtype() == DType::complex64 ? DType::float32 : DType::float64;
    l.inner *= 2;
  }
  l.in = plan.input.data_ptr(), l.out = r.data_ptr();
  scan(l, input.device());
  return r;
}

Tensor cumsum(const Tensor& input, int64_t dim, MaybeDType dtype) {
  return run_scan(input, scan_plan(input, dim, dtype, "cumsum"), ScanKind::sums);
}

Tensor reverse_cumsum(const Tensor& input, int64_t dim) {
  return run_scan(input, scan_plan(input, dim, {}, "cumsum"), ScanKind::sums, true);
}

Tensor cumprod(const Tensor& input, int64_t dim, MaybeDType dtype) {
  return run_scan(input, scan_plan(input, dim, dtype, "cumprod"), ScanKind::products);
}

Tensor logcumsumexp(const Tensor& input, int64_t dim) {
  if (input.is_complex()) return ops::logcumsumexp.body()(input, dim);
  check_floating(input, "logcumsumexp");
  return run_scan(input, order_plan(input, dim, "logcumsumexp"), ScanKind::log_sums);
}

Tensor logcumsumexp_backward(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  const auto same = [&](const Tensor& t) {
    return t.dtype() == input.dtype() && std::ranges::equal(t.sizes(), input.sizes());
  };
  if (!is_float(input.dtype()) || input.dim() == 0 || !same(grad) || !same(result)) {
    return ops::_logcumsumexp_backward.body()(grad, input, result, dim);
  }
  check_one_device("_logcumsumexp_backward", {&grad, &input, &result});
  const OperandDevice device(input);
  const ScanPlan plan = order_plan(input, dim, "_logcumsumexp_backward");
  const Tensor slopes = contiguous_values(grad), sums = contiguous_values(result);
  Tensor r = result_tensor(input.sizes(), input.dtype(), input.device());
  if (r.numel() == 0) return r;
  ScanLaunch l;
  l.dtype = r.dtype(), l.kind = ScanKind::log_sums_backward, l.stream = device.stream();
  l.outer = plan.outer, l.length = plan.length, l.inner = plan.inner, l.reverse = true;
  l.in = slopes.data_ptr(), l.input = plan.input.data_ptr(), l.result = sums.data_ptr(), l.out = r.data_ptr();
  scan(l, input.device());
  return r;
}

/// Elements and their indices, in memory that the stream owns when this dies.
struct PlacedTensors {
  Tensor values, places;
  PlacedTensors(IntSpan sizes, DType dtype, Device device)
      : PlacedTensors(empty_tensor(sizes, dtype, device), empty_tensor(sizes, DType::int64, device)) {}
  PlacedTensors(Tensor of_values, Tensor of_places) : values(std::move(of_values)), places(std::move(of_places)) {}
  Placed pointers() const { return {values.data_ptr(), places.data_ptr<int64_t>()}; }
};

void scan(ExtremaLaunch l, Device device) {
  if (scans_lines(l)) return run_extrema_lines(l);
  const int64_t pieces = scan_pieces(l.length);
  if (pieces == 1) return run_extrema_pieces(l);
  const PlacedTensors totals({{l.outer, pieces, l.inner}}, l.dtype, device);
  ExtremaLaunch first = l, second = l;
  first.out = {}, first.totals = totals.pointers();
  run_extrema_pieces(first);
  second.length = pieces;
  second.in = second.out = totals.pointers();
  scan(second, device);
  l.offsets = totals.pointers();
  run_extrema_pieces(l);
}

template <bool smallest>
TensorPair extrema(const Tensor& input, int64_t dim) {
  OperandDevice device(input);
  const ScanPlan plan = order_plan(input, dim, smallest ? "cummin" : "cummax");
  Tensor values = result_tensor(input.sizes(), input.dtype(), input.device());
  const PlacedTensors r(values, result_tensor(input.sizes(), DType::int64, input.device()));
  if (input.numel() == 0) return {r.values, r.places};
  ExtremaLaunch l;
  l.dtype = input.dtype(), l.stream = device.stream(), l.smallest = smallest;
  l.outer = plan.outer, l.length = plan.length, l.inner = plan.inner;
  l.in = {plan.input.data_ptr(), nullptr}, l.out = r.pointers();
  scan(l, input.device());
  return {r.values, r.places};
}

/// Runs a gradient of products along `dim`, or the op's composite for operands that kernels do not know.
template <auto& op>
Tensor product_gradient(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim,
                        void (*run)(const ProductGradient&), bool running) {
  const DType d = input.dtype();
  const int64_t at = input.dim() ? wrap_dim(dim, input.dim(), running ? "cumprod" : "prod") : 0;
  const int64_t n = input.dim() ? input.size(at) : 0, given = running || n == 0 ? input.numel() : input.numel() / n;
  if (n == 0 || grad.dtype() != d || result.dtype() != d || grad.numel() != given || result.numel() != given) {
    return op.body()(grad, input, result, dim);
  }
  const OperandDevice device(input);
  const Tensor x = contiguous_values(input), g = contiguous_values(grad), y = contiguous_values(result);
  Tensor out = empty_tensor(x.sizes(), d, x.device());
  ProductGradient l;
  l.dtype = d, l.stream = device.stream(), l.length = n;
  for (int64_t i = 0; i < input.dim(); ++i) (i < at ? l.outer : l.inner) *= i == at ? 1 : input.size(i);
  l.x = x.data_ptr(), l.grad = g.data_ptr(), l.result = y.data_ptr(), l.out = out.data_ptr();
  if (out.numel()) run(l);
  return out;
}
Tensor prod_backward(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  const int64_t n = input.dim() ? input.size(wrap_dim(dim, input.dim(), "_prod_backward")) : 0;
  if (n > 65536 && input.numel() / n < 128) {  // a block for each line would leave the device idle
    return ops::_prod_backward.body()(grad, input, result, dim);
  }
  return product_gradient<ops::_prod_backward>(grad, input, result, dim, run_product_gradient, false);
}
Tensor cumprod_backward(const Tensor& grad, const Tensor& input, const Tensor& result, int64_t dim) {
  return product_gradient<ops::_cumprod_backward>(grad, input, result, dim, run_running_product_gradient, true);
}

}  // namespace

void register_scan() {
  ops::cumsum.set_kernel(DeviceType::cuda, &cumsum);
  ops::_reverse_cumsum.set_kernel(DeviceType::cuda, &reverse_cumsum);
  ops::cumprod.set_kernel(DeviceType::cuda, &cumprod);
  ops::_prod_backward.set_kernel(DeviceType::cuda, &prod_backward);
  ops::_cumprod_backward.set_kernel(DeviceType::cuda, &cumprod_backward);
  ops::logcumsumexp.set_kernel(DeviceType::cuda, &logcumsumexp);
  ops::_logcumsumexp_backward.set_kernel(DeviceType::cuda, &logcumsumexp_backward);
  ops::cummax.set_kernel(DeviceType::cuda, &extrema<false>);
  ops::cummin.set_kernel(DeviceType::cuda, &extrema<true>);
}

}  // namespace vesta::cuda
