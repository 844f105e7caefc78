#include <vesta/cuda/kernels/scan.cuh>

namespace vesta::cuda {

void run_scan_lines(const ScanLaunch& l) {
  if (l.kind != ScanKind::sums) return run_other_lines(l);
  visit_device<kReals>(l.dtype, [&]<class T>() { queue_scan_lines<T, Sums>(l); });
}

void run_scan_pieces(const ScanLaunch& l) {
  if (l.kind != ScanKind::sums) return run_other_pieces(l);
  visit_device<kReals>(l.dtype, [&]<class T>() { queue_scan_pieces<T, Sums>(l); });
}

}  // namespace vesta::cuda
