// Running products, and running sums of exponentials by their logarithms.
#include <vesta/cuda/kernels/scan.cuh>

namespace vesta::cuda {

void run_other_lines(const ScanLaunch& l) {
  if (l.kind == ScanKind::log_sums) {
    visit_device<kFloats>(l.dtype, [&]<class T>() { queue_scan_lines<T, LogSums>(l); });
  } else {
    visit_device<kNumbers>(l.dtype, [&]<class T>() { queue_scan_lines<T, Products>(l); });
  }
}

void run_other_pieces(const ScanLaunch& l) {
  if (l.kind == ScanKind::log_sums) {
    visit_device<kFloats>(l.dtype, [&]<class T>() { queue_scan_pieces<T, LogSums>(l); });
  } else {
    visit_device<kIntegers>(l.dtype, [&]<class T>() { queue_scan_pieces<T, Products>(l); });
  }
}

}  // namespace vesta::cuda
