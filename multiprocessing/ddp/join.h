// The messages between ranks with different numbers of inputs: `DistributedDataParallel::join` is built on them.
//
// Every iteration of a rank that has inputs begins with an all_reduce of ones. A rank that is done sends zeros
// instead. So it learns how many are still at work, and mirrors what they send as long as there are any.
#pragma once
#include <vesta/core/ops/factory.h>
#include <vesta/multiprocessing/process_group.h>

namespace vesta::ddp {

/// Returns the sum of a number over the ranks: if each gives 1 or 0, the number of ranks at work.
inline double sum_over_ranks(ProcessGroup& group, double mine, Device device) {
  NoGrad off;
  const Tensor total = full({1}, Scalar(mine), DType::float32, device);
  group.all_reduce({total})->wait();
  return total.item<float>();
}

/// Returns the largest rank for which `candidate` is true, -1 if there is none.
inline int last_rank_that(ProcessGroup& group, bool candidate, Device device) {
  NoGrad off;
  Tensor marks = zeros({group.size()}, DType::float32, device);
  if (candidate) marks.select(0, group.rank()).fill_(Scalar(1.0));
  group.all_reduce({marks})->wait();
  for (int r = group.size() - 1; r >= 0; --r) {
    if (marks.select(0, r).item<float>() != 0) return r;
  }
  return -1;
}

}  // namespace vesta::ddp
