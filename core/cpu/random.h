// Kernels of random numbers.
#pragma once
#include <vesta/core/dtype.h>
#include <vesta/core/random.h>

namespace vesta::cpu {

/// A run of elements, numbers first to first + n - 1 of a stream; `first` is a multiple of 4.
struct RandomRun {
  RandomStream stream;
  int64_t first, n;
  char* out;         // of element `first`
  const char* in;    // operand, if there is one
  bool* mask;        // dropout's second result
  double a, b;       // uniform: from, to; normal: mean, std; bernoulli: probability; dropout: to keep, scale
  double below;      // uniform: the largest value under `to`
  int64_t from;      // integers
  uint64_t range;    // 0 stands for 2^64
};

/// The kernels of one dtype; null where an op does not take it.
struct RandomKernels {
  void (*uniform)(const RandomRun&);
  void (*normal)(const RandomRun&);
  void (*integers)(const RandomRun&);
  void (*bernoulli)(const RandomRun&);     // probability `a`
  void (*bernoulli_of)(const RandomRun&);  // probabilities `in`
  void (*dropout)(const RandomRun&);
};

}  // namespace vesta::cpu
