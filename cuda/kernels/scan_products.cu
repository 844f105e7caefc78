// Running products, running sums of exponentials by their logarithms, and the gradient of those.
#include <vesta/cuda/kernels/scan.cuh>

namespace vesta::cuda {
namespace {

/// Calls f with the type of a gradient's elements, or of the totals of its pieces.
template <class F>
void visit_gradient(DType d, F&& f) {
  if (d == DType::complex64) f.template operator()<ScaledSum<float>>();
  else if (d == DType::complex128) f.template operator()<ScaledSum<double>>();
  else visit_device<kFloats>(d, f);
}

}  // namespace

void run_other_lines(const ScanLaunch& l) {
  if (l.kind == ScanKind::log_sums_backward) {
    visit_gradient(l.dtype, [&]<class T>() { queue_scan_lines<T, LogSumsGradient>(l); });
  } else if (l.kind == ScanKind::log_sums) {
    visit_device<kFloats>(l.dtype, [&]<class T>() { queue_scan_lines<T, LogSums>(l); });
  } else {
    visit_device<kNumbers>(l.dtype, [&]<class T>() { queue_scan_lines<T, Products>(l); });
  }
}

void run_other_pieces(const ScanLaunch& l) {
  if (l.kind == ScanKind::log_sums_backward) {
    visit_gradient(l.dtype, [&]<class T>() { queue_scan_pieces<T, LogSumsGradient>(l); });
  } else if (l.kind == ScanKind::log_sums) {
    visit_device<kFloats>(l.dtype, [&]<class T>() { queue_scan_pieces<T, LogSums>(l); });
  } else {
    visit_device<kIntegers>(l.dtype, [&]<class T>() { queue_scan_pieces<T, Products>(l); });
  }
}

}  // namespace vesta::cuda
